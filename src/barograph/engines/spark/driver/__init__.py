"""The driver process: the supervisor of its queries, and the local endpoint that other processes use."""
