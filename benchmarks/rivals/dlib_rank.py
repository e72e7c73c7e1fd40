"""dlib's trainer of a ranking support vector machine: the pairwise hinge by cutting planes."""

from typing import Any

import numpy as np

from rivals.base import RANKING, Linear, Rival


class DlibRank(Rival):
    """c = 1 / alpha, as its risk is a mean over pairs; efforts are epsilons, the default is 0.001."""

    name, package, module = "dlib rank", "dlib-bin", "dlib"
    efforts = (0.1, 0.01, 0.001)
    default = 0.001
    measures = RANKING

    def prepare(self, X: Any, y: np.ndarray) -> Any:
        """Make dlib's sparse vectors: one query, the positives relevant."""
        import dlib

        pair = dlib.sparse_ranking_pair()
        ends = X.indptr.tolist()
        for i, label in enumerate(y.tolist()):
            row, part = dlib.sparse_vector(), slice(ends[i], ends[i + 1])
            row.extend([dlib.pair(j, v) for j, v in zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True)])
            (pair.relevant if label > 0 else pair.nonrelevant).append(row)
        return pair, X.shape[1]

    def fit(self, data: Any, alpha: float, effort: Any, measure: str) -> Linear:
        """Train, and read the weights out of its list of pairs."""
        import dlib

        pair, features = data
        trainer = dlib.svm_rank_trainer_sparse()
        trainer.c, trainer.epsilon = 1.0 / alpha, effort
        w = np.zeros(features)
        for item in trainer.train(pair).weights:
            w[item.first] = item.second
        return Linear(w)


RIVALS = (DlibRank(),)
