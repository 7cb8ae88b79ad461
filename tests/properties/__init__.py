"""Properties of random programs, schedules and files, and of deliberately broken ones."""
