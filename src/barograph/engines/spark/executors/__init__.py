"""Executors come and go: the port to what starts and ends them, its two kinds, and nodes that leave through it."""
