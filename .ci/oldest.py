"""Print the lower limits of pyproject.toml as exact versions, for `pip install -c`: what the package and its extras need.

Tools of tests and documentation are not held back: they never reach a user. Two packages that come with others are, because
their newest versions do not go with the others' oldest: pandas refuses SciPy before 1.14, and ONNX writes files that ONNX
Runtime 1.22 does not read.
"""

import re
import tomllib
from pathlib import Path

COMPANIONS = {"onnx": "1.17.0", "pandas": "2.2.2"}
EXTRAS = ("boost", "cli", "dask", "gpu", "io", "onnx", "plot", "torch")

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
wanted = [*project["dependencies"], *(line for extra in EXTRAS for line in project["optional-dependencies"][extra])]
pins = dict(COMPANIONS)
for line in wanted:
    name, limit = re.fullmatch(r"([A-Za-z0-9_-]+)(?:\[[^\]]*\])?>=([0-9.]+)", line).groups()
    pins[name] = limit
print("\n".join(f"{name}=={limit}" for name, limit in sorted(pins.items())))
