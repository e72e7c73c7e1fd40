"""Rivals of scoreline for benchmarks/side_by_side.py: an adapter file each, found by `registry.all_rivals`."""
