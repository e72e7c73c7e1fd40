"""Shared utilities: threads, memory, compilation, logging, checks, registries, optional packages, types.

Nothing here depends on labels, scores or models.
"""
