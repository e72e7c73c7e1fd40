"""sofia-ml on PATH: Pegasos steps on random pairs (loop_type roc)."""

from pathlib import Path
from typing import Any

import numpy as np

from rivals.base import Binary, Linear


class Sofia(Binary):
    """--lambda is alpha; efforts are steps."""

    name, package, binary, says = "sofia-ml", "sofia-ml", "sofia-ml", "--learner_type"
    efforts = (100_000, 1_000_000, 10_000_000)
    default = 1_000_000

    def fit(self, data: Any, alpha: float, effort: Any, measure: str) -> Linear:
        """Take `effort` steps; its model is the intercept and one number a feature."""
        text = self.run(
            data, "--learner_type", "pegasos", "--loop_type", "roc", "--lambda", repr(alpha), "--iterations", str(effort),
            "--dimensionality", str(data[2] + 1), "--random_seed", "1",
        )  # fmt: skip
        numbers = np.array(text.split(), dtype=float)
        return Linear(numbers[1:], float(numbers[0]))

    def files(self, folder: Path) -> list[str]:
        """Return the arguments that name the files of rows and model."""
        return ["--training_file", str(folder / "train"), "--model_out", str(folder / "model")]


RIVALS = (Sofia(),)
