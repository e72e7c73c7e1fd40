"""What every room may use: threads, memory, compilation, logging, checks, registries, optional packages, types.

Nothing here knows of labels, scores or models.
"""
