"""Parts of the bench of interference."""
