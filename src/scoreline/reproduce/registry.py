"""The studies by name."""

from typing import Any

from scoreline.reproduce.friedlander2012 import Friedlander2012
from scoreline.reproduce.ghanbari2018 import Ghanbari2018
from scoreline.reproduce.narasimhan2015 import Narasimhan2015
from scoreline.reproduce.study import Study
from scoreline.reproduce.zhang2010 import Zhang2010
from scoreline.reproduce.zhang2012 import Zhang2012
from scoreline.runtime.registry import unknown_name

STUDIES: dict[str, type[Study]] = {
    study.name: study for study in (Zhang2010, Zhang2012, Narasimhan2015, Friedlander2012, Ghanbari2018)
}


def get_study(name: Any) -> type[Study]:
    """Return a study by its name."""
    if name not in STUDIES:
        raise unknown_name("study", name, list(STUDIES))
    return STUDIES[name]
