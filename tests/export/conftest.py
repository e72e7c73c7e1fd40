"""Fixtures of the databases that run exported statements."""

from databases import database, postgres

__all__ = ["database", "postgres"]
