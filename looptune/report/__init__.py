"""The results as tables, figures and pages."""
