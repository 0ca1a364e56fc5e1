"""Scalers: worked numbers and laws."""
