"""Loads: how people write them, their shapes, and when each row falls due."""
