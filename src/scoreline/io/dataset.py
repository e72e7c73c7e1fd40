"""What a reader returns: a matrix, labels, names of features, and how columns of a table became them."""

from typing import Any, NamedTuple

from scoreline.io.encoding import Encoding
from scoreline.runtime.types import AnyArray


class Dataset(NamedTuple):
    """A data set: `clf.fit(data.X, data.y)`.

    Attributes
    ----------
    X : ndarray, scipy.sparse.csr_array or Operator
        Examples in rows; an Operator for a folder that stays on disk.
    y : ndarray or None
        Their labels; None where a table to predict has none.
    names : list of str or None
        Names of the features, if they have any.
    encoding : Encoding or None
        How columns of a table became features; `MeasureClassifier.save` keeps it with a model.
    class_names : list of str or None
        What False and True stand for, where `positive` made labels so: all other labels, and the one that was named.
    """

    X: Any
    y: AnyArray | None
    names: list[str] | None = None
    encoding: Encoding | None = None
    class_names: list[str] | None = None
