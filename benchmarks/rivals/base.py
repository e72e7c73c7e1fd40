"""What an adapter is: it turns rows, labels and a strength of the penalty into the coefficients that its library finds."""

import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.datasets import dump_svmlight_file

RANKING, COUNTS = ("roc_auc", "prbep"), ("f1", "min_tpr_tnr")
MEASURES = RANKING + COUNTS


class Linear(NamedTuple):
    """Scores are X w + b. `threshold` says that b is a threshold chosen for the measure; else the protocol sets one."""

    w: np.ndarray
    b: float = 0.0
    threshold: bool = False


class Rival(ABC):
    """A way to train a linear classifier.

    Attributes
    ----------
    name : str
        How tables call it.
    package : str
        The distribution whose version is recorded.
    module : str
        What is imported to see whether it is there.
    efforts : tuple
        Values of its stopping rule, from the loosest to the tightest: every one is a fit of its own.
    default : one of efforts
        The one that its library takes unless told otherwise, or nearest to it: alpha is chosen with it.
    measures : tuple of str
        The measures it is run for.
    aware : bool
        Whether the measure changes what it fits; if not, one fit serves all measures.
    """

    name: str
    package: ClassVar[str]
    module: ClassVar[str]
    efforts: tuple[Any, ...]
    default: Any
    measures: tuple[str, ...] = MEASURES
    aware: ClassVar[bool] = False

    def missing(self) -> str | None:
        """Return why it cannot run here, or None."""
        return None if find_spec(self.module) else f"not installed: {self.package}"

    def version(self) -> str:
        """Return name and version of what is measured."""
        try:
            return f"{self.package} {version(self.package)}"
        except PackageNotFoundError:
            return f"{self.package}, version unknown"

    def refuses(self, rows: int, features: int) -> str | None:
        """Return why data of this shape are not for it, or None."""
        return None

    def prepare(self, X: Any, y: np.ndarray) -> Any:
        """Return CSR rows and labels (1 and -1) in the form it wants; off the clock."""
        return X, y

    @abstractmethod
    def fit(self, data: Any, alpha: float, effort: Any, measure: str) -> Linear:
        """Minimise alpha/2 |w|² + mean loss, or what is nearest to it; on the clock."""


class Binary(Rival):
    """A program that reads a LIBSVM file and writes a model: found on PATH, its time has the reading of the file in it."""

    binary: ClassVar[str]
    says: ClassVar[str]  # what its help prints, so that another program of the same name is not taken for it
    measures = RANKING
    queries = False  # whether every row carries qid:1

    def missing(self) -> str | None:
        """Return why it cannot run here, or None."""
        if shutil.which(self.binary) is None:
            return f"not on PATH: {self.binary}"
        done = subprocess.run([self.binary], capture_output=True, text=True, check=False, timeout=10, input="")
        return None if self.says in done.stdout + done.stderr else f"{shutil.which(self.binary)} is another program"

    def version(self) -> str:
        """Return the path, since these programs do not tell."""
        return f"{self.package} ({Path(shutil.which(self.binary) or self.binary).name})"

    def prepare(self, X: Any, y: np.ndarray) -> Any:
        """Write the rows into a temporary folder, which goes with the process."""
        folder = tempfile.TemporaryDirectory(prefix="rival-")
        query = np.ones(len(y), dtype=int) if self.queries else None
        dump_svmlight_file(X, y, str(Path(folder.name, "train")), zero_based=False, query_id=query)
        return folder, X.shape[0], X.shape[1]

    def run(self, data: Any, *options: str) -> str:
        """Run the program on the file; return the text of the model."""
        folder = Path(data[0].name)
        line = [self.binary, *options, *self.files(folder)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode != 0 or not (folder / "model").exists():
            raise RuntimeError(f"{' '.join(line)} failed: {(done.stdout + done.stderr)[-300:]}")
        return (folder / "model").read_text()

    def files(self, folder: Path) -> list[str]:
        """Return the arguments that name the files of rows and model."""
        return [str(folder / "train"), str(folder / "model")]
