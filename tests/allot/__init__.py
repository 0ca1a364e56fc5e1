"""Allotters: worked numbers and laws."""
