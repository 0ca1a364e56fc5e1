"""Tests of the migrate stage."""
