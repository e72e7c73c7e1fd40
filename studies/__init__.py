"""The tables and figures of the papers behind the solvers, made again: one study per file, found by `registry`.

Part of the repository, not of the package: `make reproduce NAME=zhang2012` runs a study.
"""

from studies.registry import STUDIES, get_study
from studies.runner import reproduce
from studies.study import Cell, Claim, Findings, Study, Table

__all__ = ["STUDIES", "Cell", "Claim", "Findings", "Study", "Table", "get_study", "reproduce"]
