"""What every package uses: source places, errors, plugins, settings. Imports nothing of looptune's."""
