"""Barograph's own placer: few nodes, little traffic between them, and only moves that are worth their pause."""
