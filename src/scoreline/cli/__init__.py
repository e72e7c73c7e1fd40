"""The command line: `scoreline train data.csv --label outcome --measure f1`."""

from scoreline.cli.main import main

__all__ = ["main"]
