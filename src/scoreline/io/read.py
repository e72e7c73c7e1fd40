"""read_data: any file, frame or folder as a matrix and labels."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scoreline.io.encoding import MIN_CATEGORY_ROWS, Encoding
from scoreline.io.mapped_folder import open_mapped
from scoreline.io.sources import LEARNT, Dataset, given_options, open_source


def read_data(
    source: Any,
    label: Any = None,
    *,
    positive: Any = None,
    categories: Iterable[str] = (),
    drop: Iterable[str] = (),
    missing: Iterable[str] = (),
    impute: str | None = "mean",
    indicators: bool = True,
    min_category_rows: int = MIN_CATEGORY_ROWS,
    max_categories: int | None = None,
    encoding: Encoding | None = None,
    separator: str | None = None,
    zero_based: bool | str = "auto",
    n_features: int | None = None,
) -> Dataset:
    r"""Read a data set: LIBSVM text, CSV, Parquet, Arrow, NumPy files, frames in memory, folders made by `convert`.

    Parameters
    ----------
    source : path or frame
        By its suffix: .csv and .tsv (also followed by .gz, .bz2, .xz, .zst), .parquet or .pq, .arrow, .feather or .ipc, .npy,
        .npz (arrays X and y, or what `scipy.sparse.save_npz` writes and y); a folder is opened by `open_mapped`; anything else
        is LIBSVM text (plain, .gz, .bz2, .xz). Or a pandas or polars frame, or a pyarrow table.
    label : str or int, optional
        Name of the column of labels of a table; number of that column for .npy.
    positive : label, optional
        The class that is to be found: y is True for it and False for all others. By default labels stay as they are, and the
        larger one in sorted order is positive.
    categories : iterable of str
        Columns of a table that are categories though they hold numbers or dates.
    drop : iterable of str
        Columns of a table that are left out.
    missing : iterable of str
        Texts of a table that stand for missing values, like "?"; the encoding keeps them. CSV has its usual ones besides:
        empty, NA, N/A, n/a, NaN, nan, NULL, null.
    impute : {"mean", "zero", "none", None}
        The value of missing numbers in a table; missing categories become a category of their own. "none" or None: missing
        values are an error.
    indicators : bool
        Give each number column in which values are missing a second feature, which is 1 where the value is missing.
    min_category_rows : int
        In a column of more than 50 categories, categories with fewer rows than this become one feature together. 1: all
        categories stay apart.
    max_categories : int, optional
        Most distinct values of a column of categories (100,000).
    encoding : Encoding, optional
        The encoding of the training table, for a table to predict: its features in its order. Categories that it does not
        know are no feature, with a warning. Without `label`, y is None.
    separator : str, optional
        Character between the values of CSV; by default a comma, a tab for .tsv.
    zero_based, n_features
        For LIBSVM text, see `read_libsvm`.

    Returns
    -------
    Dataset
        X, y, names of the features and the encoding of a table.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from scoreline.io import read_data
    >>> path = pathlib.Path(tempfile.mkdtemp(), "loans.csv")
    >>> _ = path.write_text("income,home,outcome\n41,rent,repaid\n18,own,default\n52,own,repaid\n")
    >>> data = read_data(path, "outcome", positive="default")
    >>> data.names, data.y.tolist()
    (['income', 'home=own', 'home=rent'], [False, True, False])
    """
    options: dict[str, Any] = {
        "categories": categories, "drop": drop, "missing": missing, "max_categories": max_categories,
        "encoding": encoding, "separator": separator, "zero_based": None if zero_based == "auto" else zero_based,
        "n_features": n_features,
    }  # fmt: skip
    given = given_options(options)
    learnt = {"impute": impute or "none", "indicators": indicators, "min_category_rows": min_category_rows}
    given |= {name: value for name, value in learnt.items() if value != LEARNT[name]}
    if isinstance(source, (str, Path)) and Path(source).is_dir():
        if given or label is not None or positive is not None:
            name = next(iter(given), "label" if label is not None else "positive")
            raise ValueError(f"{name}=... was settled when {source} was converted; open it without")
        return open_mapped(source)
    opened = open_source(source, label=label, positive=positive, **given)
    X, y = opened.whole()
    return Dataset(X, y, opened.names, opened.encoding, opened.class_names)
