"""Brings a program of a user's own under Barograph: the settings for its session, and its queries as kept ones."""
