"""xgboost's linear booster on pairs: gblinear with rank:pairwise, all rows one query."""

import json
from typing import Any

import numpy as np

from rivals.base import RANKING, Linear, Rival


class XgboostLinear(Rival):
    """lambda = alpha; efforts are rounds."""

    name, package, module = "xgboost gblinear rank:pairwise", "xgboost", "xgboost"
    efforts = (10, 30, 100)
    default = 100
    measures = RANKING

    def version(self) -> str:
        """Return the version of the module: it comes from one of several distributions."""
        import xgboost

        return f"xgboost {xgboost.__version__}"

    def prepare(self, X: Any, y: np.ndarray) -> Any:
        """Make its matrix."""
        import xgboost

        matrix = xgboost.DMatrix(X, label=(y > 0).astype(np.int32))
        matrix.set_group([len(y)])
        return matrix

    def fit(self, data: Any, alpha: float, effort: Any, measure: str) -> Linear:
        """Boost for `effort` rounds."""
        import xgboost

        options = {
            "booster": "gblinear",
            "objective": "rank:pairwise",
            "lambda": alpha,
            "verbosity": 0,
            "nthread": 1,
            "seed": 0,
        }
        booster = xgboost.train(options, data, num_boost_round=effort)
        return Linear(np.array(json.loads(booster.get_dump(dump_format="json")[0])["weight"], dtype=float))


RIVALS = (XgboostLinear(),)
