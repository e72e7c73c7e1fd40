"""Data sets by name: from a folder, from the cache, or downloaded from the LIBSVM collection on request."""

import csv
import os
import string
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from scoreline.io.download import cache_folder, check_cached, check_sum, fetch_into_cache
from scoreline.io.libsvm import as_integers, read_libsvm
from scoreline.runtime.checks import check_number
from scoreline.runtime.registry import unknown_name
from scoreline.runtime.types import AnyArray

BASE_URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
MAX_NAME_BYTES = 200  # file systems allow 255, which includes the suffix and a temporary prefix
ENDINGS = (".svm", ".svm.xz", ".svm.gz", ".svm.bz2")


class NamedSet(NamedTuple):
    """The known shape of a data set; a file that disagrees is read with a warning, because collections change."""

    name: str
    file: str | None  # in the LIBSVM collection; None for a set that is made by hand (docs/datasets.md says how)
    features: int  # columns of X; the highest index in the file can be lower
    rows: int


def _known_sets() -> Iterator[NamedSet]:
    """Yield the sets of named_sets.csv, which has no checksums because no original files were available."""
    for row in csv.DictReader(Path(__file__).with_name("named_sets.csv").read_text("utf-8").splitlines()):
        yield NamedSet(row["name"], row["file"] or None, int(row["features"]), int(row["rows"]))


KNOWN = {known.name: known for known in _known_sets()}


def named_sets(folder: Any = None) -> list[str]:
    """Return the names that `load_named` knows, and those of the files in the folder.

    Parameters
    ----------
    folder : path, optional
        A folder of files NAME.svm, also .xz, .gz or .bz2; by default the one in the environment variable SCORELINE_DATA.

    Returns
    -------
    list of str
        Sorted names. Those that are not in the folder or the cache need a download, or are made by hand.
    """
    place = _data_folder(folder)
    names = set(KNOWN)
    for path in place.iterdir() if place is not None and place.is_dir() else ():
        ending = next((end for end in ENDINGS if path.name.endswith(end)), None)
        if ending and not path.name.startswith("."):
            names.add(path.name.removesuffix(ending))
    return sorted(names)


def load_named(
    name: str,
    *,
    folder: Any = None,
    download: bool = False,
    base_url: str | None = None,
    sha256: str | None = None,
    n_features: int | None = None,
    timeout: float = 30.0,
) -> tuple[Any, AnyArray]:
    r"""Load a data set by its name: from a folder, else from the cache, else, if asked to, from the LIBSVM collection.

    The cache is the folder in the environment variable SCORELINE_CACHE, by default `scoreline` in $XDG_CACHE_HOME or
    ~/.cache. Nothing is downloaded unless `download` is True.

    No checksums of the original files are built in, so the first download is trusted. Its SHA-256 is written next to it
    (FILE.sha256), and every later load or download must agree with it. This detects a file that was changed or truncated
    later, but not one that was wrong from the start; pass `sha256` if you know it. A download enters the cache only after
    it was read to its end.

    Parameters
    ----------
    name : str
        A name in `named_sets()`, or the NAME of a file NAME.svm (also .xz, .gz, .bz2) in the folder.
    folder : path, optional
        Where to look first; by default the folder in the environment variable SCORELINE_DATA, if it is set. Checksums are
        not recorded for files in this folder.
    download : bool
        Whether to fetch a set that is not on this machine. Progress goes to the logger "scoreline".
    base_url : str, optional
        Address of the folder that holds the files, for a mirror.
    sha256 : str, optional
        The checksum that the file must have, wherever it is found.
    n_features : int, optional
        Columns of X; by default the known number for this set. Pass it for the test part of your own set.
    timeout : float
        Seconds without data after which the connection counts as broken. There is one more attempt.

    Returns
    -------
    tuple
        X, a `scipy.sparse.csr_array`, and the labels of the file, as int64 if they are integers. Some sets have +1 and -1,
        others 1 and 2 or 0 and 1.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from scoreline.io.named import load_named
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "tiny.svm").write_text("+1 1:0.5 3:2\n-1 2:1\n")
    >>> X, y = load_named("tiny", folder=folder)
    >>> X.shape, y.tolist()
    ((2, 3), [1, -1])
    """
    _check_name(name)
    check_number("timeout", timeout, above=0)
    sha256 = None if sha256 is None else _checked_sum(sha256)
    known = KNOWN.get(name)
    if n_features is not None:
        check_number("n_features", n_features, least=1 if known is None else known.features, integer=True)
    if folder is not None and not Path(folder).expanduser().is_dir():
        raise ValueError(f"folder={str(folder)!r} is not a folder; make it, or leave folder out")
    place = _data_folder(folder)
    if place is not None and (path := _found(name, place)):
        if sha256 is not None:
            check_sum(path, sha256, "replace the file by the one that is meant")
        return _read(path, name, n_features)
    cache = cache_folder()
    if path := _found(name, cache):
        check_cached(path, sha256)
        return _read(path, name, n_features)
    places = " and ".join(str(p) for p in (place, cache) if p is not None)
    file = _published_file(name, places, folder)
    base = (BASE_URL if base_url is None else base_url).rstrip("/")
    by_hand = f"get {base}/{file} by hand and put it into {place or cache} under the name {file}"
    if not download:
        files = ", ".join(_candidates(name))
        raise FileNotFoundError(f"{name} is not in {places} (looked for {files}); pass download=True, or {by_hand}")
    try:
        return fetch_into_cache(
            f"{base}/{file}",
            cache / file,
            lambda path: _read(path, name, n_features),
            sha256=sha256,
            timeout=timeout,
        )
    except ValueError as error:
        raise ValueError(f"{error}. Or {by_hand}") from error
    except ConnectionError as error:
        raise ConnectionError(f"{error}. Try again later, or {by_hand}") from error


def _checked_sum(sha256: Any) -> str:
    """Return a checksum in small letters, or raise if it is not one."""
    text = str(sha256).lower()
    if len(text) != 64 or set(text) - set(string.hexdigits):
        raise ValueError(f"sha256={text!r} must be 64 hexadecimal digits")
    return text


def _published_file(name: str, places: str, folder: Any) -> str:
    """Return the file of a set in the LIBSVM collection, or raise if it has none."""
    known = KNOWN.get(name)
    if known is None:
        raise ValueError(
            f"{unknown_name('name', name, named_sets(folder))} A file {name}.svm in {places} is found too."
        )
    if known.file is None:
        raise FileNotFoundError(
            f"{name} is not in {places}, and is not part of the LIBSVM collection; docs/datasets.md says how to make "
            f"{name}.svm. Put it into a folder and pass that as folder, or set SCORELINE_DATA"
        )
    return known.file


def is_available(name: str, folder: Any = None) -> bool:
    """Tell whether `load_named` would find a data set in the folder or in the cache, without reading it."""
    _check_name(name)
    place = _data_folder(folder)
    return (place is not None and _found(name, place) is not None) or _found(name, cache_folder()) is not None


def _check_name(name: Any) -> None:
    """Raise if the name could be a path that leads out of the folder."""
    path = not isinstance(name, str) or not name or name.startswith(".") or ".." in name or set(name) & set("/\\:\0")
    if path or len(os.fsencode(name)) > MAX_NAME_BYTES:
        raise ValueError(
            f"name={name!r:.100} must be the name of a data set like 'a9a', not a path; read_libsvm takes paths"
        )


def _data_folder(folder: Any) -> Path | None:
    folder = os.environ.get("SCORELINE_DATA") if folder is None else folder
    return Path(folder).expanduser() if folder else None


def _candidates(name: str) -> list[str]:
    """Return the file names to look for: NAME.svm, plain or compressed, then the original file, packed or unpacked."""
    known, files = KNOWN.get(name), [name + ending for ending in ENDINGS]
    return files if known is None or known.file is None else [*files, *dict.fromkeys((known.file, name))]


def _found(name: str, folder: Path) -> Path | None:
    return next((folder / file for file in _candidates(name) if (folder / file).is_file()), None)


def _read(path: Path, name: str, n_features: int | None) -> tuple[Any, AnyArray]:
    """Read a file with at least the known number of columns; warn if its shape differs from the known one."""
    known = KNOWN.get(name)
    width = known or KNOWN.get(name.removesuffix(".t"))  # a test part has the columns of its training part
    X, y = read_libsvm(path, n_features=n_features)
    if n_features is None and width is not None and X.shape[1] < width.features:
        X = type(X)((X.data, X.indices, X.indptr), shape=(X.shape[0], width.features))
    if known is not None and (X.shape[0] != known.rows or (n_features is None and X.shape[1] != known.features)):
        warnings.warn(
            f"{path} has {X.shape[0]} rows and {X.shape[1]} features, {name} is known with {known.rows} and "
            f"{known.features}: the file is cut off, or another version or data set",
            UserWarning,
            stacklevel=3,
        )
    return X, as_integers(y)
