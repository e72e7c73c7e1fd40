"""Sets of the LIBSVM collection, from the folder SCORELINE_DATA or the cache; nothing is downloaded."""

from typing import Any

from benchmark_utils import stored_sets
from benchopt import BaseDataset

NAMES = ["a9a", "ijcnn1", "letter", "covtype", "reuters-mfx"]
PRESENT = [name for name in NAMES if stored_sets().has(name)]
if not PRESENT:
    raise ImportError(f"none of {', '.join(NAMES)} is on this machine; set SCORELINE_DATA to a folder that has one")


class Dataset(BaseDataset):
    """A set by its name; the larger label is the positive class."""

    name = "libsvm"
    parameters = {"set": PRESENT}
    test_config = {"set": PRESENT[0]}

    def get_data(self) -> dict[str, Any]:
        """Return CSR rows and labels 1 and -1."""
        X, y = stored_sets().raw(self.set)
        return {"X": X, "y": y}
