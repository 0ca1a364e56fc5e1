"""The command line, as its user meets it."""
