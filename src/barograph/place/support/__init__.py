"""Shared parts of the placers: the cluster and topologies as arrays, links, heaps, cost of a placement."""
