"""Commands that steer running drivers and show what their controllers decide."""
