"""From a file to predictions: a CSV with text categories, a model on disk, and data that stay on disk.

python examples/files.py [--rows 20000]
"""

import argparse
import csv
import tempfile
import warnings
from pathlib import Path

import numpy as np

from scoreline import MeasureClassifier, load_model
from scoreline.data import convert, open_mapped, read_data

COLUMNS = ("amount", "hour", "country", "device", "outcome")


def write_payments(path: Path, rows: int, seed: int, countries: tuple[str, ...] = ("AT", "DE", "FR", "US")) -> None:
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


def main(rows: int = 20_000) -> float:
    """Train from a CSV file, save, load, predict another file; then train from disk. Return the test measure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_payments(folder / "train.csv", rows, seed=0)
        write_payments(folder / "new.csv", rows // 4, seed=1, countries=("DE", "FR", "US", "CH"))

        data = read_data(folder / "train.csv", "outcome", positive="fraud")
        print(f"{data.X.shape[0]} rows, {data.y.mean():.1%} fraud, features: {', '.join(data.names)}")
        clf = MeasureClassifier("average_precision", scaling="standard").fit(data.X, data.y)
        clf.save(folder / "model.npz", data.encoding)
        size = (folder / "model.npz").stat().st_size

        loaded = load_model(folder / "model.npz")
        with warnings.catch_warnings(record=True) as caught:  # the country CH does not occur in training
            warnings.simplefilter("always")
            new = read_data(folder / "new.csv", "outcome", positive="fraud", encoding=loaded.encoding_)
        print(f"a warning: {str(caught[0].message).partition(': ')[2]}")
        score = loaded.score(new.X, new.y)
        print(f"model of {size} bytes; average precision on new rows {score:.3f}, by chance {new.y.mean():.3f}")

        mapped = open_mapped(convert(folder / "train.csv", folder / "train", label="outcome", positive="fraud"))
        again = MeasureClassifier("average_precision", scaling="standard").fit(mapped.X, mapped.y)
        print(f"trained from disk: same coefficients {np.array_equal(again.coef_, clf.coef_)}")
        return score


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    main(parser.parse_args().rows)
