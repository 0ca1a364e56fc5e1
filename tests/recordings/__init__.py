"""Recorded clusters: how files are read, and what is refused."""
