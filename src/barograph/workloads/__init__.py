"""Streaming queries whose results can be checked exactly, and the load they run on."""
