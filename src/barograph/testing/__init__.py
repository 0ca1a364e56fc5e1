"""Fixtures that ship with the product: a real local cluster for tests and benches."""
