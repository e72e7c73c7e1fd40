"""Data from files, folders on disk, and generators."""

from scoreline.data.dataset import Dataset
from scoreline.data.encoding import Encoding
from scoreline.data.libsvm import read_libsvm
from scoreline.data.mapped import convert, open_mapped
from scoreline.data.mapped_parts import open_on_workers
from scoreline.data.named import load_named, named_sets
from scoreline.data.read import read_data
from scoreline.data.synthetic import HardExample, hard_for_cutting_planes, make_imbalanced
from scoreline.data.tables import read_table

__all__ = [
    "Dataset",
    "Encoding",
    "HardExample",
    "convert",
    "hard_for_cutting_planes",
    "load_named",
    "make_imbalanced",
    "named_sets",
    "open_mapped",
    "open_on_workers",
    "read_data",
    "read_libsvm",
    "read_table",
]
