"""Models on disk, for `MeasureClassifier.save` and `load_model`. A file holds plain values, and loading it runs no code."""

import inspect
import platform
import warnings
from typing import Any

import numpy as np
import scipy
import sklearn

from scoreline.features import FittedFeatures
from scoreline.features.registry import features_record, restored_features
from scoreline.fitting.parameters import Parameters
from scoreline.fitting.row_by_row import RowStream
from scoreline.io.encoding import Encoding
from scoreline.io.model_archive import read_archive, write_archive
from scoreline.measures import CountsBasedMeasure, Measure
from scoreline.measures.promises import Promise
from scoreline.measures.registry import all_measures, get_measure
from scoreline.monitoring import Reference
from scoreline.operators import StringFeatures
from scoreline.operators.column_maps import ColumnMap
from scoreline.operators.moments import ClassMoments
from scoreline.penalties import Penalty
from scoreline.penalties.registry import all_penalties, get_penalty
from scoreline.runtime.types import AnyArray

KIND, VERSION = "scoreline model", 1
ESTIMATOR = "MeasureClassifier"
NO_CODE = "a model file contains no code"
RENAMED = {"cut": "threshold", "cut_rank_error_": "threshold_rank_error_"}  # names in files of earlier versions
ALWAYS = (
    "solver_",
    "risk_",
    "cost_",
    "trained_intercept_",
    "n_iter_",
    "objective_",
    "lower_bound_",
    "gap_",
    "status_",
    "_penalty",
)
NUMBER, TEXT, NUMBERS = (float, int), (str,), (float, int, type(None))
KINDS = {  # types of attributes that are printed, compared or computed with
    **dict.fromkeys(("solver_", "risk_", "status_"), (TEXT, "text")),
    **dict.fromkeys(("objective_", "lower_bound_", "gap_", "level_bound_"), (NUMBERS, "a number or None")),
    **dict.fromkeys(
        ("cost_", "trained_intercept_", "n_passes_", "threshold_rank_error_", "_penalty"), (NUMBER, "a number")
    ),
    "calibration_gain_": (NUMBER, "a number"),
    "rejected_": ((str, type(None)), "text or None"),
    "n_iter_": ((int,), "a whole number"),
    "uses_base_scores_": ((bool,), "True or False"),
    "history_": ((dict,), "a dict"),
}


class LostMeasure(CountsBasedMeasure):
    """Stands for a measure that was a function of the user, whose name is all that a file keeps."""

    summary = "a function of the user that was not saved"
    range = (-np.inf, np.inf)

    def __init__(self, name: str):
        self.name = name  # type: ignore[misc]  # of its own, where others have that of the class

    @property
    def risks(self) -> Any:  # type: ignore[override]  # an attribute of the base class
        """Raise: without the function there is nothing to train for."""
        raise ValueError(
            f"measure {self.name!r} was a function of yours, and {NO_CODE}: pass it again, load_model(path, measure=...)"
        )

    def from_counts(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        """Raise: the function is not known."""
        return self.risks


def save_model(clf: Any, path: Any, encoding: Encoding | None) -> None:
    """Write a classifier to a file: see `MeasureClassifier.save`."""
    if not any(getattr(clf, name, None) is not None for name in ("coef_", "_moments", "_stream")):
        raise ValueError("this classifier has learnt nothing yet: call fit or partial_fit before save")
    if type(clf).__name__ != ESTIMATOR or not type(clf).__module__.startswith("scoreline."):
        raise TypeError(f"save keeps a MeasureClassifier, and this is a {type(clf).__name__}; {NO_CODE}")
    encoding = getattr(clf, "encoding_", None) if encoding is None else encoding
    if encoding is not None and encoding.n_features != clf.n_features_in_:
        raise ValueError(
            f"encoding has {encoding.n_features} features, the classifier {clf.n_features_in_}: pass the one of its X"
        )
    stream, moments = getattr(clf, "_stream", None), getattr(clf, "_moments", None)
    content = {
        "estimator": ESTIMATOR,
        "versions": _versions(),
        "parameters": {name: _parameter(name, value) for name, value in clf.get_params(deep=False).items()},
        "trained": {name: _plain(value) for name, value in vars(clf).items() if _is_trained(name)},
        "encoding": None if encoding is None else encoding.to_json(),
        "moments": None if moments is None else moments.record(),
        "stream": None if stream is None else stream.record(),
    }
    write_archive(path, KIND, VERSION, content)


def restored_model(classifier: Any, path: Any, measure: Measure | None) -> Any:
    """Return an object of the class from a file: see `load_model`."""
    content = read_archive(path, KIND, VERSION)
    try:
        parameters, trained = (
            {RENAMED.get(name, name): value for name, value in content[part].items()}
            for part in ("parameters", "trained")
        )
        known = inspect.signature(classifier.__init__).parameters
        unknown = sorted(set(parameters) - set(known)) + sorted(name for name in trained if not _is_trained(name))
        if content["estimator"] != ESTIMATOR or unknown:
            raise ValueError(f"unknown content {content['estimator']!r} {unknown}")
        parameters["measure"] = _measure(parameters["measure"], measure)
        parameters["features"] = restored_features(parameters.get("features", "linear"))
        if isinstance(parameters.get("penalty"), dict):
            parameters["penalty"] = get_penalty(parameters["penalty"]["name"], parameters["penalty"]["params"])
        clf = classifier(**parameters)
        if isinstance(clf.measure, LostMeasure):  # all that can be checked without the function
            Parameters.of(classifier(**{**parameters, "measure": "f1", "measure_params": None}))
        else:
            Parameters.of(clf)
        clf.__dict__.update(trained)
        clf.__dict__.setdefault("uses_base_scores_", False)  # files of earlier versions have none
        if trained.get("column_map_") is not None:  # files of earlier versions have none
            clf.__dict__["column_map_"] = ColumnMap.restored(trained["column_map_"], clf.n_features_in_)
        if trained.get("feature_map_") is not None:
            clf.__dict__["feature_map_"] = FittedFeatures.restored(trained["feature_map_"])
        if trained.get("reference_") is not None:
            clf.__dict__["reference_"] = Reference.restored(trained["reference_"])
        if trained.get("promise_") is not None:
            clf.__dict__["promise_"] = Promise(**trained["promise_"])
        if trained.get("string_features_") is not None:
            width = StringFeatures(**trained["string_features_"]).width
            if width != clf.n_features_in_:
                raise ValueError(f"the string features are {width}, the model has {clf.n_features_in_}")
        _check_trained(clf)
        if content["encoding"] is not None:
            clf.encoding_ = Encoding.from_json(content["encoding"])
            if clf.encoding_.n_features != clf.n_features_in_:
                raise ValueError(
                    f"the encoding has {clf.encoding_.n_features} features, the model {clf.n_features_in_}"
                )
        clf._moments = (
            None if content["moments"] is None else ClassMoments.restored(content["moments"], clf.n_features_in_)
        )
        clf._stream = None if content["stream"] is None else RowStream.restored(content["stream"], clf.n_features_in_)
        if clf._stream is not None:
            _check_stream(clf._stream)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path} is not a complete model: {type(error).__name__}: {error!s:.300}") from error
    return clf


def _versions() -> dict[str, str]:
    from scoreline import __version__

    return {
        "scoreline": __version__, "python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }  # fmt: skip


def _plain(value: Any) -> Any:
    """Return a fitted attribute as what an archive holds."""
    if isinstance(value, (ColumnMap, FittedFeatures, Reference)):
        return value.record()
    return value._asdict() if isinstance(value, Promise) else value


def _is_trained(name: str) -> bool:
    """Tell whether an attribute is one that training has set: a name with an underscore at its end, or the penalty."""
    return (name.endswith("_") and not name.startswith("_") and name != "encoding_") or name == "_penalty"


def _parameter(name: str, value: Any) -> Any:
    """Return a parameter without code."""
    if name == "measure" and isinstance(value, Measure):
        own = all_measures().get(value.name)
        if own is not type(value):
            return {"function": value.name}
        arguments = [argument for argument in inspect.signature(own).parameters if hasattr(value, argument)]
        return {"name": value.name, "params": {argument: getattr(value, argument) for argument in arguments}}
    if name == "penalty" and isinstance(value, Penalty):
        if all_penalties().get(getattr(value, "name", "")) is not type(value):
            raise TypeError(
                f"penalty={value!r:.100} is a class of yours, and {NO_CODE}; use one of {list(all_penalties())}"
            )
        return {"name": value.name, "params": dict(vars(value))}
    if name == "solver_params" and isinstance(value, dict):
        dropped = sorted(key for key in value if key in ("callbacks", "checkpoint", "early_stopping"))
        if dropped:
            warnings.warn(f"solver_params {dropped} are not saved: {NO_CODE}", UserWarning, stacklevel=3)
        return {key: item for key, item in value.items() if key not in dropped}
    if name == "random_state" and not (value is None or isinstance(value, (int, np.integer))):
        warnings.warn(f"random_state={value!r} is not saved: {NO_CODE}; use a number", UserWarning, stacklevel=3)
        return None
    if name == "features":
        return features_record(value)
    return value


def _measure(saved: Any, given: Measure | None) -> Any:
    """Return the measure of a file, or the one that was given in its place."""
    name = saved if isinstance(saved, str) else saved.get("function") or saved["name"]
    if given is not None:
        if not isinstance(given, Measure) or given.name != name:
            raise ValueError(f"measure={given!r} must be the measure {name!r} that the model was trained for")
        return given
    if isinstance(saved, str):
        return saved
    return LostMeasure(name) if "function" in saved else get_measure(name, saved["params"])


def _check_trained(clf: Any) -> None:
    """Raise unless the attributes that `predict` and reports rest on are of their types and fit together."""
    p = clf.n_features_in_
    if type(p) is not int or p < 1 or not _are_classes(clf.classes_):
        raise ValueError("classes_ or n_features_in_ is invalid")
    features = getattr(clf, "feature_map_", None)
    if features is not None and features.n_columns != p:
        raise ValueError(f"feature_map_ has {features.n_columns} columns, the model {p}")
    width = p if features is None else features.n_features
    if hasattr(clf, "coef_") and not (_is_vector(clf.coef_, (1, width)) and _is_vector(clf.intercept_, (1,))):
        raise ValueError(f"coef_ or intercept_ does not hold finite numbers for {width} features")
    if hasattr(clf, "coef_"):
        absent = [name for name in ALWAYS if not hasattr(clf, name)]
        if absent:
            raise ValueError(f"{absent[0]} is not there")
    for name, (kinds, words) in KINDS.items():
        value = getattr(clf, name, None)
        if hasattr(clf, name) and (type(value) not in kinds or (type(value) is float and np.isnan(value))):
            raise ValueError(f"{name}={value!r:.100} must be {words}")
    if hasattr(clf, "calibration_") and not (_is_vector(clf.calibration_, (2,)) and clf.calibration_[0] > 0.0):
        raise ValueError("calibration_ does not hold a slope above 0 and an offset")
    ends = getattr(clf, "calibration_range_", None)
    if ends is not None and not (
        isinstance(ends, np.ndarray) and ends.dtype == np.float64 and ends.shape == (2,) and bool(ends[0] < ends[1])
    ):
        raise ValueError("calibration_range_ does not hold a lower and an upper end")
    names = getattr(clf, "feature_names_in_", None)
    if names is not None and not (
        isinstance(names, np.ndarray) and names.shape == (p,) and all(isinstance(name, str) for name in names)
    ):
        raise ValueError(f"feature_names_in_ does not hold a text for each of {p} features")


def _are_classes(classes: Any) -> bool:
    """Tell whether these are two different labels, both numbers or both texts."""
    if not (isinstance(classes, np.ndarray) and classes.shape == (2,) and classes.dtype.kind in "biufUO"):
        return False
    low, high = classes.tolist()
    plain = (isinstance(low, str) and isinstance(high, str)) or (
        isinstance(low, (bool, int, float)) and isinstance(high, (bool, int, float)) and np.isfinite([low, high]).all()
    )
    return bool(plain and low != high)


def _check_stream(stream: RowStream) -> None:
    """Raise unless the numbers of a stream are numbers."""
    counts = (stream.seed, stream.blocks)
    totals = stream.class_totals
    shares = (*totals, stream.unit) if isinstance(totals, tuple) and len(totals) == 2 else ()
    are_counts = all(type(value) is int and 0 <= value < 2**63 for value in counts)
    finite = all(isinstance(value, (int, float)) and 0.0 <= float(value) < np.inf for value in shares)
    if not (are_counts and finite and shares and stream.unit > 0 and isinstance(stream.problem, dict)):
        raise ValueError("the numbers of the stream are invalid")
    for sketch in (sketch for pair in stream.scores.generations for sketch in pair):
        numbers = [
            sketch.weight,
            *(number for part in (sketch.loose, *sketch.parts) for number in (part.error, part.depth)),
        ]
        if not all(isinstance(number, (int, float)) and 0.0 <= float(number) < np.inf for number in numbers):
            raise ValueError("the weights of the stream's scores are invalid")
        for part in (sketch.loose, *sketch.parts):
            fits = isinstance(part.points, np.ndarray) and _is_vector(part.points, part.points.shape)
            if not (fits and part.points.ndim == 1 and _is_vector(part.weights, part.points.shape)):
                raise ValueError("the scores of the stream are invalid")


def _is_vector(value: Any, shape: tuple[int, ...]) -> bool:
    array: AnyArray = value
    return (
        isinstance(value, np.ndarray)
        and array.dtype == np.float64
        and array.shape == shape
        and bool(np.isfinite(array).all())
    )
