"""The studies by name."""

from typing import Any

from scoreline._registry import unknown_name
from scoreline.reproduce.study import Study
from scoreline.reproduce.zhang2010 import Zhang2010
from scoreline.reproduce.zhang2012 import Zhang2012

STUDIES: dict[str, type[Study]] = {study.name: study for study in (Zhang2010, Zhang2012)}


def get_study(name: Any) -> type[Study]:
    """Return a study by its name."""
    if name not in STUDIES:
        raise unknown_name("study", name, list(STUDIES))
    return STUDIES[name]
