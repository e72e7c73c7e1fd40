"""The studies by name."""

from typing import Any

from scoreline.runtime.registry import unknown_name
from studies.friedlander2012 import Friedlander2012
from studies.ghanbari2018 import Ghanbari2018
from studies.narasimhan2015 import Narasimhan2015
from studies.study import Study
from studies.zhang2010 import Zhang2010
from studies.zhang2012 import Zhang2012

STUDIES: dict[str, type[Study]] = {
    study.name: study for study in (Zhang2010, Zhang2012, Narasimhan2015, Friedlander2012, Ghanbari2018)
}


def get_study(name: Any) -> type[Study]:
    """Return a study by its name."""
    if name not in STUDIES:
        raise unknown_name("study", name, list(STUDIES))
    return STUDIES[name]
