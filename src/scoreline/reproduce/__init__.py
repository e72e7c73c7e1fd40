"""The tables and figures of the papers behind the solvers, made again: one study a file, found by `registry`."""

from scoreline.reproduce.registry import STUDIES, get_study
from scoreline.reproduce.runner import reproduce
from scoreline.reproduce.study import Cell, Claim, Findings, Study, Table

__all__ = ["STUDIES", "Cell", "Claim", "Findings", "Study", "Table", "get_study", "reproduce"]
