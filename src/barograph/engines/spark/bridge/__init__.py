"""The connection to the plug-in: calls into it, what it reports, and what is remembered of the reports."""
