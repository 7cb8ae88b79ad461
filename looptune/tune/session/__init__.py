"""A tuning session, from the request to the winner."""
