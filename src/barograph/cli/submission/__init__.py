"""``barograph submit``: the command, and the call of spark-submit that it makes."""
