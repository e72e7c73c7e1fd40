"""From the arguments of a verb to data: files, folders, and the built-in sets that need no file."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from scoreline._blocks import BlockVector
from scoreline._registry import unknown_name
from scoreline.cli.output import Output, reported
from scoreline.data import Dataset, make_imbalanced, read_data
from scoreline.data.mapped import HEADER
from scoreline.data.mapped_writer import UnfitError, check_width

BUILT_IN = "demo:"
NOTHING: tuple[str, ...] = ()


def read(
    options: Any, output: Output, path: str | None = None, *, encoding: Any = None, n_features: int | None = None
) -> Dataset:
    """Read the file that a verb names, with its options; `encoding` and `n_features` are those of a model."""
    path = options.file if path is None else path
    if path.startswith(BUILT_IN):
        return built_in(path.removeprefix(BUILT_IN))
    _check_path(path)
    if encoding is not None and Path(path).is_dir():  # it was encoded when it was converted
        data = read_data(path)
        if data.names != encoding.names:
            raise ValueError(
                f"{path} has other features than the model was trained with; convert it from the same columns"
            )
        return data
    given: dict[str, Any] = {"label": getattr(options, "label", None), "positive": getattr(options, "positive", None)}
    given |= {name: getattr(options, name, NOTHING) for name in ("categories", "drop", "missing")}
    given |= {name: getattr(options, name, None) for name in ("impute", "separator", "zero_based")}
    if encoding is not None:
        given |= {"encoding": encoding, "categories": (), "drop": (), "impute": None}
        given["label"] = given["label"] or None
    given = {name: value for name, value in given.items() if value is not None and value != ()}
    if n_features is not None and encoding is None and _is_text(path):
        given["n_features"] = n_features
    with output.progress(f"reading {path}") as progress, reported(progress), output.messages():
        data = read_data(path, **given)
    try:
        check_width(data.X.shape[1])
    except UnfitError as error:
        raise ValueError(f"{path}: {error}") from None
    return data


def _check_path(path: str) -> None:
    """Raise for what is there but is neither a file nor a folder of `convert`."""
    place = Path(path)
    if place.is_dir() and not (place / HEADER).exists():
        raise ValueError(f"{path} is a folder without {HEADER}, expected a file, or a folder made by scoreline convert")
    if place.exists() and not place.is_dir() and not place.is_file():
        raise ValueError(f"{path} is no plain file, and data are read more than once; write them to a file first")


def _is_text(path: str) -> bool:
    """Tell whether a path is that of LIBSVM text, as `read_data` decides."""
    from scoreline.data.sources import ARRAYS, TABLES

    suffixes = [suffix.lower() for suffix in Path(path).suffixes[-2:]]
    return not Path(path).is_dir() and not set(suffixes) & {*TABLES, *ARRAYS}


def built_in(name: str) -> Dataset:
    """Return a set that needs no file: breast-cancer and digits of scikit-learn, fraud made up."""
    if name == "fraud":
        X, y = make_imbalanced(random_state=0)
        return Dataset(X, y, [f"signal {k}" for k in range(X.shape[1])])
    if name == "breast-cancer":
        from sklearn.datasets import load_breast_cancer

        found = load_breast_cancer()
        return Dataset(found.data, np.where(found.target == 0, "malignant", "benign"), found.feature_names.tolist())
    if name == "digits":
        from sklearn.datasets import load_digits

        found = load_digits()
        return Dataset(found.data, found.target == 8, [f"pixel {k}" for k in range(found.data.shape[1])])
    raise unknown_name("demo", name, ["fraud", "breast-cancer", "digits"])


def scaling_of(options: Any, X: Any) -> str | None:
    """Return the scaling that was asked for, or the one that suits the storage."""
    if options.scaling == "auto":
        stores_zeros = getattr(X, "stores_zeros", not sp.issparse(X))
        return "standard" if stores_zeros else "maxabs"
    return None if options.scaling == "none" else str(options.scaling)


def labels_of(data: Dataset) -> Any:
    """Return the labels, or raise if the file has none."""
    if data.y is None:
        raise ValueError("the file has no labels; name their column with --label")
    return data.y


def classes_of(y: Any) -> Any:
    """Return the different labels; those of rows on a cluster come here block by block."""
    if isinstance(y, BlockVector):
        y = np.concatenate(y.layout.gather(np.unique, y))
    return np.unique(np.asarray(y))


def two_classes(data: Dataset) -> Any:
    """Return the labels, or raise unless there are two classes."""
    classes = classes_of(labels_of(data))
    if len(classes) == 2:
        return data.y
    shown = ", ".join(map(str, classes[:5].tolist())) + (", ..." if len(classes) > 5 else "")
    if len(classes) == 1:
        raise ValueError(f"the labels have one class only ({shown}), expected two: both kinds of rows are needed")
    raise ValueError(
        f"the labels have {len(classes)} classes ({shown}), expected two; --positive names the one to find against all others"
    )
