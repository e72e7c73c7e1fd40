"""skops keeps classifiers whole, and asks for no types but ours."""

import numpy as np
import pytest
import skops.io
from export_models import rows
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cases import for_each
from scoreline import MeasureClassifier, MeasureClassifierCV
from scoreline.measures import get_measure

pytestmark = pytest.mark.slow
X, Y = rows(300)


def streamed(clf):
    for start in range(0, 200, 100):
        clf.partial_fit(X[start : start + 100], Y[start : start + 100], classes=[False, True])
    return clf


FITS = {
    "ranking": lambda: MeasureClassifier(),
    "counts": lambda: MeasureClassifier("f1"),
    "parameters": lambda: MeasureClassifier("fbeta", {"beta": 2.0}),
    "measure object": lambda: MeasureClassifier(get_measure("fbeta", {"beta": 2.0})),
    "probabilities": lambda: MeasureClassifier("f1", probability=True, random_state=0),
    "operating point": lambda: MeasureClassifier("precision_at_recall", {"recall": 0.5}),
    "at k": lambda: MeasureClassifier("precision_at_k", {"k": 20}),
    "smoothed": lambda: MeasureClassifier("prbep", solver="smoothed"),
    "cutting planes": lambda: MeasureClassifier("accuracy", solver="bundle_ocas"),
    "amp": lambda: MeasureClassifier("f1", solver="amp"),
    "hybrid": lambda: MeasureClassifier("accuracy", solver="hybrid", risk="logistic"),
    "moments": lambda: MeasureClassifier(solver="moments"),
    "spade": lambda: MeasureClassifier("gmean", solver="spade", random_state=0),
    "stamp": lambda: MeasureClassifier("f1", solver="stamp", random_state=0),
    "search": lambda: MeasureClassifierCV("f1", alphas=[0.1, 0.01], cv=3),
    "search of a ranking": lambda: MeasureClassifierCV(alphas=[0.1, 0.01], cv=3),
    "search for an object": lambda: MeasureClassifierCV(get_measure("fbeta", {"beta": 2.0}), alphas=[0.1, 0.01], cv=3),
}
STREAMS = ["moments", "spade", "stamp"]


def round_trip(clf):
    """Return the classifier from its bytes, trusting only what is ours."""
    content = skops.io.dumps(clf)
    unknown = skops.io.get_untrusted_types(data=content)
    assert all(name.startswith("scoreline.") for name in unknown), unknown
    return skops.io.loads(content, trusted=unknown)


def check(clf, loaded):
    assert np.array_equal(loaded.decision_function(X), clf.decision_function(X))
    assert np.array_equal(loaded.predict(X), clf.predict(X))
    assert loaded.score(X, Y) == clf.score(X, Y)
    assert vars(loaded).keys() == vars(clf).keys()


@for_each("name", FITS)
@pytest.mark.filterwarnings("ignore")
def test_fits(name):
    clf = FITS[name]().set_params(scaling="standard").fit(X, Y)
    check(clf, round_trip(clf))


@for_each("name", STREAMS)
def test_streams_go_on(name):
    clf = streamed(FITS[name]())
    loaded = round_trip(clf)
    check(clf, loaded)
    for fitted in (clf, loaded):
        fitted.partial_fit(X[200:], Y[200:])
    check(clf, loaded)


def test_pipeline():
    pipe = make_pipeline(StandardScaler(), MeasureClassifier("f1")).fit(X, Y)
    assert np.array_equal(round_trip(pipe).decision_function(X), pipe.decision_function(X))
