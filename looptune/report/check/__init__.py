"""What ``looptune check`` prints."""
