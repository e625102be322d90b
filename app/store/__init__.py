"""What the app looks things up in."""
