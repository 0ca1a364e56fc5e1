"""Benchmarks behind each performance claim: ``make bench ONLY=name``. JSON on stdout, exit 1 if a bar is missed."""
