"""`read_data` reads any file, frame or folder as a matrix and labels."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scoreline.io.columns import arrow
from scoreline.io.encoding import MIN_CATEGORY_ROWS, Encoding
from scoreline.io.mapped_folder import open_mapped
from scoreline.io.sources import LEARNT, Dataset, given_options, open_source
from scoreline.io.tables import open_table


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
        A pandas or polars frame, a pyarrow table, or a path. The suffix of a path tells the format: .csv and .tsv (also
        followed by .gz, .bz2, .xz, .zst), .parquet or .pq, .arrow, .feather or .ipc, .npy, or .npz. An .npz file holds the
        arrays X and y, or the arrays of `scipy.sparse.save_npz` and y. A folder is opened by `open_mapped`. Any other file
        is read as LIBSVM text (plain, .gz, .bz2, .xz).
    label : str or int, optional
        Name of the label column of a table, or its number in an .npy file.
    positive : label, optional
        The positive class: y is True for it and False for all others. By default labels are not changed, and the larger one
        in sorted order is positive.
    categories : iterable of str
        Columns of a table that are categories though they hold numbers or dates.
    drop : iterable of str
        Columns of a table that are left out.
    missing : iterable of str
        Texts of a table that stand for missing values, like "?"; they become part of the encoding. In CSV files, empty
        values, NA, N/A, n/a, NaN, nan, NULL and null are always missing.
    impute : {"mean", "zero", "none", None}
        The value for missing numbers in a table; missing texts become a category. With "none" or None, missing values are an
        error.
    indicators : bool
        Add a feature to each number column with missing values, which is 1 where the value is missing.
    min_category_rows : int
        In a column of more than 50 categories, categories with fewer rows than this share one feature. With 1 every category
        has a feature.
    max_categories : int, optional
        Largest number of distinct values in a category column (100,000).
    encoding : Encoding, optional
        The encoding of the training table, for a table to test on or to predict. Unknown categories set no feature, with a
        warning. Without `label`, y is None.
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
            raise ValueError(f"{name}=... was chosen when {source} was converted; open it without")
        return open_mapped(source)
    opened = open_source(source, label=label, positive=positive, **given)
    X, y = opened.all_rows()
    return Dataset(X, y, opened.names, opened.encoding, opened.class_names)


def read_columns(source: Any, encoding: Encoding, *, missing: Iterable[str] = (), separator: str | None = None) -> Any:
    """Read the columns of a table that an encoding knows as they are, for features that take text and missing values.

    Parameters
    ----------
    source : path or frame
        As for `read_data`.
    encoding : Encoding
        Says which columns are numbers and which are categories, and which texts stand for missing values.
    missing, separator : as in `read_data`
        How to read the table.

    Returns
    -------
    pyarrow.Table
        Columns of float64 and of text, with null for missing values.
    """
    pa = arrow()
    table = open_table(source, missing=(*missing, *encoding.missing), separator=separator)
    names = [column.name for column in encoding.columns]
    text = [column.name for column in encoding.columns if column.kind == "category"]
    parts, rows = [], 0
    with table.named():
        for batch in table.batches(names, text=text):
            parts.append(pa.RecordBatch.from_pydict(encoding.columns_of(batch, rows)))
            rows += batch.num_rows
    if not rows:
        raise ValueError(f"{table.name} holds no rows, expected at least one")
    return pa.Table.from_batches(parts)
