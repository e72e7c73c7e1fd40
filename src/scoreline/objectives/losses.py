"""The losses for PyTorch, which is imported when one is made."""

from typing import Any

from scoreline.measures import Measure
from scoreline.objectives.surrogate import Surrogate
from scoreline.runtime.checks import check_number
from scoreline.runtime.optional import require


def torch_loss(
    measure: str | Measure = "roc_auc",
    measure_params: dict[str, Any] | None = None,
    *,
    risk: str = "auto",
    ramp: float = 1.0,
    cost: Any = "auto",
    memory: int = 0,
) -> Any:
    """Return a loss for PyTorch that trains a network for a measure: a module called with scores, labels and weights.

    Value and gradient are exact, in O(n log n): no matrix of pairs is made, and no pairs are sampled. Scores are a
    tensor of shape (n,) or (n, 1) in float16, bfloat16, float32 or float64, on the CPU or a CUDA device. The value has
    at least float32, and the arithmetic float64. Labels are 1 and 0, or +1 and -1, or booleans.

    A batch of one class has no pairs: its loss is 0, with a gradient of 0. Draw batches with rows of both classes, or
    use `memory`.

    The gradient can be differentiated again for squared pairs (the default for "roc_auc"), the logistic loss and the
    squared hinge. `torch.compile` leaves the loss out of the graph that it compiles.

    Parameters
    ----------
    measure : str or Measure, default="roc_auc"
        What you report. `list_measures()` returns the names.
    measure_params : dict, default=None
        Parameters of a measure given by name, for example {"beta": 2.0} for "fbeta".
    risk : str, default="auto"
        The convex surrogate. "auto" is `Surrogate`'s choice; "roc_area" is the hinge over pairs.
    ramp : float, default=1.0
        Width of the ramp that smooths a risk with kinks, in margins; 0 for none.
    cost : "auto" or float, default="auto"
        For count-based measures: cost of an error on a positive relative to one on a negative. "auto" is
        `cost_of_errors` of the scores in every batch.
    memory : int, default=0
        Number of scores per class that are remembered from earlier batches, in training mode. The loss is that of
        batch and memory together. Only the batch has gradients, multiplied for each class by the weight of all its
        rows over that of its rows in the batch. They estimate the gradient of the loss of all data. `reset()` forgets
        the scores; `eval()` ignores them.

    Returns
    -------
    torch.nn.Module
        Call it with (scores, labels) or (scores, labels, weights).

    Examples
    --------
    >>> from scoreline.objectives import torch_loss
    >>> loss = torch_loss("roc_auc")  # doctest: +SKIP
    >>> loss(network(rows), labels).backward()  # doctest: +SKIP
    """
    surrogate = Surrogate(measure, measure_params, risk, ramp, cost)
    check_number("memory", memory, least=0, integer=True)
    require("torch", "torch", "torch_loss")
    from scoreline.objectives.torch_module import ScoreLoss

    return ScoreLoss(surrogate, int(memory))
