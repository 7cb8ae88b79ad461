"""What was found as tables, figures and pages."""
