"""Data for the arguments of a command: files, folders, and built-in sets."""

import shlex
import warnings
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from scoreline.cli.output import Output, reported
from scoreline.io import Dataset, make_imbalanced, read_data
from scoreline.io.mapped_folder import HEADER, check_width, source_name
from scoreline.io.sources import ARRAYS, UnfitError
from scoreline.io.tables import TABLES, unpacked_suffix
from scoreline.runtime.optional import require
from scoreline.runtime.registry import unknown_name
from scoreline.runtime.vectors import room_module

BUILT_IN = "demo:"
SECONDS_TO_CONNECT = 10
LEARNT_OPTIONS = ("categories", "drop", "impute", "indicators", "min_category_rows")  # how columns become features
FILE_OPTIONS = ("label", "positive", "missing", "separator", "zero_based")  # how the file is read


def reading_options(options: Any) -> dict[str, Any]:
    """Return the given options of reading as arguments of `read_data`."""
    given = {name: getattr(options, name, None) for name in (*FILE_OPTIONS, *LEARNT_OPTIONS)}
    return {name: value for name, value in given.items() if value is not None and value != ()}


def read(
    options: Any,
    output: Output,
    path: str | None = None,
    *,
    encoding: Any = None,
    n_features: int | None = None,
    like: str | None = None,
    excluded: Collection[str] = (),
    notes: bool = True,
) -> Dataset:
    """Read the file of a command, with its options except those in `excluded`.

    `encoding` and `n_features` are those of a model or of training rows, and `like` is its path. `notes` say how columns became
    features.
    """
    path = options.file if path is None else path
    if path.startswith(BUILT_IN):
        return built_in(path.removeprefix(BUILT_IN))
    _check_path(path)
    if encoding is not None and Path(path).is_dir():  # it was encoded when it was converted
        data = read_data(path)
        if data.names != encoding.names:
            raise _other_features(path, like)
        return data
    given = {name: value for name, value in reading_options(options).items() if name not in excluded}
    if encoding is not None:
        given = {name: value for name, value in given.items() if name not in LEARNT_OPTIONS} | {"encoding": encoding}
    if n_features is not None and encoding is None and is_text(path):
        given["n_features"] = n_features
    with output.progress(f"reading {path}") as progress, reported(progress.update), output.messages(notes):
        data = read_data(path, **given)
    try:
        check_width(width_of(data.X))
    except UnfitError as error:
        raise ValueError(f"{path}: {error}") from None
    return data


def _other_features(path: str, like: str | None) -> ValueError:
    """Return the error of a folder that was not converted with the encoding of the training rows."""
    head = f"{path} has other features than the model was trained with"
    source = source_name(path)
    again = shlex.join(["scoreline", "convert", source, path, "--like", like or "MODEL", "--overwrite"])
    if like is None:
        return ValueError(f"{head}; give {source} itself, or convert it with the encoding of a saved model: {again}")
    return ValueError(f"{head}; convert it with the same encoding: {again}")


def _check_path(path: str) -> None:
    """Raise if the path exists but is neither a file nor a folder of `convert`."""
    place = Path(path)
    if place.is_dir() and not (place / HEADER).exists():
        raise ValueError(f"{path} is a folder without {HEADER}, expected a file, or a folder made by scoreline convert")
    if place.exists() and not place.is_dir() and not place.is_file():
        raise ValueError(f"{path} is not a regular file, and data are read more than once; write them to a file first")


def width_of(X: Any) -> int:
    """Return the number of columns of X, also where it holds codes of them."""
    features = getattr(X, "feature_map", None)
    return int(X.shape[1]) if features is None else int(features.n_columns)


def is_table(path: str) -> bool:
    """Tell whether `read_data` reads a path as a table."""
    return not Path(path).is_dir() and unpacked_suffix(Path(path)) in TABLES


def is_text(path: str) -> bool:
    """Tell whether `read_data` reads a path as LIBSVM text."""
    return not Path(path).is_dir() and not is_table(path) and Path(path).suffix.lower() not in ARRAYS


def built_in(name: str) -> Dataset:
    """Return a built-in set: breast-cancer and digits of scikit-learn, or generated fraud data."""
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
    """Return the requested scaling, or the one that suits the storage."""
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
    """Return the distinct labels; on a cluster, those of each block are gathered."""
    if getattr(y, "scores", None) == "blocks":
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
        f"the labels have {len(classes)} classes ({shown}), expected two; name the positive class with --positive, and all "
        "others become negative"
    )


@contextmanager
def connected(address: str, output: Output) -> Iterator[Any]:
    """Connect to a scheduler, or start workers on this machine, and disconnect at the end."""
    distributed = require("distributed", "dask", "--dask")
    with ExitStack() as stack:
        if address == "local":
            cluster = stack.enter_context(distributed.LocalCluster(dashboard_address=None, processes=True))
            client = stack.enter_context(distributed.Client(cluster))
        else:
            try:
                known = {"scheduler_file": address} if Path(address).is_file() else {"address": address}
                client = stack.enter_context(distributed.Client(**known, timeout=SECONDS_TO_CONNECT))
            except (OSError, ValueError) as error:
                raise ValueError(
                    f"--dask {address}: no Dask scheduler answers there ({type(error).__name__}); expected an address like "
                    "tcp://10.0.0.1:8786, a file that a scheduler wrote, or local for workers on this machine"
                ) from error
        threads = client.nthreads()
        output.note(f"{len(threads)} workers with {sum(threads.values())} threads at {client.scheduler.address}")
        yield client


def read_on_cluster(options: Any, output: Output, client: Any) -> Dataset:
    """Open folders on the workers, or read any other file here and send its rows to the workers."""
    place = Path(options.file)
    if place.is_dir():
        inner = sorted(path.parent for path in place.glob(f"*/{HEADER}"))
        if (place / HEADER).exists() or inner:
            folders = [place] if (place / HEADER).exists() else inner
            opened: Dataset = room_module("blocks", "mapped_parts").open_on_workers(folders, client)
            return opened
    data = read(options, output)
    if not hasattr(data.X, "__array__") and not hasattr(data.X, "indptr"):
        raise ValueError(f"{options.file} has no rows that can be sent to workers; convert it to a folder first")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")  # intended with --dask
        operator = room_module("blocks", "dask_operator").distribute(data.X, client)
        return data._replace(X=operator, y=None if data.y is None else operator.aligned(data.y))
