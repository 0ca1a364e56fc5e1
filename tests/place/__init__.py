"""Placers: worked numbers and laws."""
