"""Why runs of a query fail, and what is done about it: restart, wait, or give up."""
