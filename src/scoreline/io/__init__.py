"""Data from files, folders on disk, and generators."""

from scoreline.io.encoding import Encoding
from scoreline.io.libsvm import read_libsvm
from scoreline.io.mapped_folder import convert, convert_sequences, open_mapped, open_sequences
from scoreline.io.named import load_named, named_sets
from scoreline.io.read import read_columns, read_data
from scoreline.io.sources import Dataset
from scoreline.io.synthetic import HardExample, hard_for_cutting_planes, make_imbalanced

__all__ = [
    "Dataset",
    "Encoding",
    "HardExample",
    "convert",
    "convert_sequences",
    "hard_for_cutting_planes",
    "load_named",
    "make_imbalanced",
    "named_sets",
    "open_mapped",
    "open_sequences",
    "read_columns",
    "read_data",
    "read_libsvm",
]
