"""Data that ships with Barograph."""
