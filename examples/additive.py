"""
Additive models of a table
==========================

A linear model cannot say that income peaks in the middle of a life. An additive model can: its score is a sum of one smooth
function per column, and of functions of a few pairs of columns. It is trained with the same certificate, and it can be read.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from scoreline import MeasureClassifierCV
from scoreline.report import ShapeDisplay

# %%
# A made-up census: numbers, a category, missing values, and an effect of two columns at once.

rng = np.random.default_rng(0)
n = 4000
people = pd.DataFrame({
    "age": rng.integers(17, 90, n).astype(float), "hours": np.clip(rng.normal(40, 12, n), 1, 99).round(),
    "education": rng.integers(1, 17, n).astype(float), "work": rng.choice(["private", "state", "self", "none"], n),
})  # fmt: skip
score = 3.0 - ((people.age - 48) / 15) ** 2 + 0.2 * people.education + 0.8 * (people.work == "self")
score += 0.01 * (people.education - 8) * (people.hours - 40) + rng.logistic(0, 1, n)
y = score > np.quantile(score, 0.76)
people.loc[rng.random(n) < 0.1, "hours"] = np.nan
train, test, y_train, y_test = train_test_split(people, y, stratify=y, random_state=0)

# %%
# Which features pay is chosen by the same folds that choose alpha.

clf = MeasureClassifierCV("roc_auc", features="auto", alphas=[1.0, 0.1, 0.01, 0.001], cv=3).fit(train, y_train)
print(f"{clf.features_} features, alpha {clf.alpha_:g}, AUC of new rows {clf.score(test, y_test):.3f}")
print(f"proved within {clf.gap_ / clf.lower_bound_:.1%} of the optimum")

# %%
# What the model says, the most important first. Importance is how far the AUC of new rows falls without the function.

for shape in clf.shape_functions(test, y_test):
    print(f"{shape.name:20s} {shape.importance:.3f}")

figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
shapes = clf.shape_functions()
for ax, columns in zip(axes, (1, 2), strict=True):
    first = next(shape for shape in shapes if len(shape.columns) == columns)
    ShapeDisplay(first).plot(ax)
plt.show()
