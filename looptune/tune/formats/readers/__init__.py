"""Files of other tools, and those that looptune exports for them, read as recordings; one file each."""
