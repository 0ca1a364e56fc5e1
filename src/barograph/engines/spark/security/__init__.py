"""What keeps other users of the machine out: the secret of an embedded cluster, and what is open to whom."""
