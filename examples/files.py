"""
Get from a file to predictions
==============================

This example reads a CSV file with text categories, trains, and saves a model that reads other files in the same way. Then it
trains on the same rows from disk, as you would with a file that does not fit into memory.
"""

import csv
import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from scoreline import MeasureClassifier, load_model
from scoreline.io import convert, open_mapped, read_data
from scoreline.report import WeightsDisplay

COLUMNS = ("amount", "hour", "country", "device", "outcome")


def write_payments(path, rows, seed, countries=("AT", "DE", "FR", "US")):
    """Write made-up payments; a few per cent are fraud, more of them at night, abroad and with large amounts."""
    rng = np.random.default_rng(seed)
    amount, hour = rng.lognormal(3.0, 1.0, rows).round(2), rng.integers(0, 24, rows)
    country, device = rng.choice(countries, rows), rng.choice(["phone", "desktop", "tablet"], rows)
    risk = -5.5 + 0.5 * np.log(amount) + 1.2 * (hour < 6) + 0.9 * (country == "US") + rng.logistic(0.0, 0.7, rows)
    outcome = np.where(risk > 0.0, "fraud", "fine")
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(zip(amount, hour, country, device, outcome, strict=True))


temporary = tempfile.TemporaryDirectory()  # gone when the script ends
folder = Path(temporary.name)
write_payments(folder / "train.csv", 20_000, seed=0)
write_payments(folder / "new.csv", 5_000, seed=1, countries=("DE", "FR", "US", "CH"))

# %%
# Read and train
# --------------
# A text column becomes one feature per category. ``positive`` names the class you want to detect.

data = read_data(folder / "train.csv", "outcome", positive="fraud")
print(f"{data.X.shape[0]:,} rows, {data.y.mean():.1%} fraud, features: {', '.join(data.names)}")
clf = MeasureClassifier("average_precision", scaling="standard").fit(data.X, data.y)

# %%
# Save, load, predict
# -------------------
# The model file contains the encoding of the columns. Categories that training has not seen are reported.

clf.save(folder / "model.npz", data.encoding)
loaded = load_model(folder / "model.npz")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    new = read_data(folder / "new.csv", "outcome", positive="fraud", encoding=loaded.encoding_)
print(f"warning about the new file: {str(caught[0].message).partition(': ')[2]}")
print(f"model file: {(folder / 'model.npz').stat().st_size:,} bytes")
print(f"average precision on new rows {loaded.score(new.X, new.y):.3f}, share of positives {new.y.mean():.3f}")

# %%
# Train from disk
# ---------------
# ``convert`` reads a file once, block by block. The folder that it writes is mapped into memory and not loaded.

mapped = open_mapped(convert(folder / "train.csv", folder / "train", label="outcome", positive="fraud"))
again = MeasureClassifier("average_precision", scaling="standard").fit(mapped.X, mapped.y)
print(f"trained from disk: same coefficients {np.array_equal(again.coef_, clf.coef_)}")

# %%
# Which features matter
# ---------------------
# Large amounts and payments from the US raise the score, and late hours lower it, as in the formula that generated the
# data. The device was drawn at random and has little weight.

WeightsDisplay.from_estimator(loaded, names=data.names, column_scale=data.X.std(axis=0)).plot()
plt.show()
temporary.cleanup()
