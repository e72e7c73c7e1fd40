"""
From a file to predictions
==========================

A CSV file with text categories goes in; a model on disk comes out, which reads other files the same way. The same rows are
then trained from disk, as one would with a file that does not fit into memory.
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
# Texts become one feature a category. ``positive`` names the class to be found.

data = read_data(folder / "train.csv", "outcome", positive="fraud")
print(f"{data.X.shape[0]:,} rows, {data.y.mean():.1%} fraud, features: {', '.join(data.names)}")
clf = MeasureClassifier("average_precision", scaling="standard").fit(data.X, data.y)

# %%
# Save, load, predict
# -------------------
# The model file keeps the encoding of the columns with it. A category that training has not seen is reported.

clf.save(folder / "model.npz", data.encoding)
loaded = load_model(folder / "model.npz")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    new = read_data(folder / "new.csv", "outcome", positive="fraud", encoding=loaded.encoding_)
print(f"said of the new file: {str(caught[0].message).partition(': ')[2]}")
print(f"model of {(folder / 'model.npz').stat().st_size:,} bytes")
print(f"average precision on new rows {loaded.score(new.X, new.y):.3f}, by chance {new.y.mean():.3f}")

# %%
# Train from disk
# ---------------
# ``convert`` reads a file once, block by block; the folder it makes is mapped into memory and not loaded.

mapped = open_mapped(convert(folder / "train.csv", folder / "train", label="outcome", positive="fraud"))
again = MeasureClassifier("average_precision", scaling="standard").fit(mapped.X, mapped.y)
print(f"trained from disk: same coefficients {np.array_equal(again.coef_, clf.coef_)}")

# %%
# What the model looks at
# -----------------------
# Large amounts and payments from the US raise the score and late hours lower it, as the made-up data were made. The device
# was drawn at random and has little weight.

WeightsDisplay.from_estimator(loaded, names=data.names, column_scale=data.X.std(axis=0)).plot()
plt.show()
temporary.cleanup()
