"""Forecasters: worked numbers and laws."""
