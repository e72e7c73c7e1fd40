"""The module that `torch_loss` returns. PyTorch must be installed to import this file."""

from typing import Any, TypeAlias

import numpy as np
import torch

from scoreline.objectives.surrogate import Surrogate
from scoreline.risks.logistic import LogisticRisk
from scoreline.risks.roc_area_squared import SquaredRocAreaRisk
from scoreline.risks.squared_hinge import SquaredHingeRisk
from scoreline.scores import space_of

Tensor: TypeAlias = Any  # torch.Tensor, which type checkers may not know


class ScoreLoss(torch.nn.Module):
    """The surrogate of a measure as a loss of scores; see `torch_loss`."""

    remembered_scores: Tensor
    remembered_signs: Tensor
    remembered_weights: Tensor

    def __init__(self, surrogate: Surrogate, memory: int = 0):
        super().__init__()
        self.surrogate = surrogate
        self.memory = memory
        self.reset()

    def reset(self) -> None:
        """Forget the scores of earlier batches."""
        for name in ("scores", "weights"):
            self.register_buffer(f"remembered_{name}", torch.empty(0, dtype=torch.float64), persistent=False)
        self.register_buffer("remembered_signs", torch.empty(0, dtype=torch.int8), persistent=False)

    def extra_repr(self) -> str:
        """Return measure, risk and memory for `repr`."""
        return f"{self.surrogate.measure.label}, risk={self.surrogate.risk.name!r}, memory={self.memory}"

    @torch.compiler.disable  # type: ignore[untyped-decorator]  # PyTorch has no type for it
    def forward(self, scores: Tensor, labels: Any, sample_weight: Any = None) -> Tensor:
        """Return the loss of the scores.

        Parameters
        ----------
        scores : tensor of shape (n,) or (n, 1)
            Scores of the rows, larger for the positive class.
        labels : tensor of shape (n,) or (n, 1)
            1 and 0, or +1 and -1, or booleans.
        sample_weight : tensor of n weights, optional
            Non-negative weights of the rows.

        Returns
        -------
        tensor without dimensions
            The loss.
        """
        z = _flat("scores", scores, None)
        sign = _signs(_flat("labels", labels, z))
        weight = None if sample_weight is None else _flat("sample_weight", sample_weight, z).double()
        known = z.detach().double(), sign, weight
        if self.training and self.memory > 0:
            known = self._with_memory(*known)
        if not _both_classes(*known[1:]):
            return (0.0 * z).sum().to(torch.promote_types(z.dtype, torch.float32))
        found: Tensor = _Value.apply(z, self.surrogate, *known)
        return found

    def _with_memory(self, z: Tensor, sign: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the batch followed by the remembered rows, and remember the batch."""
        own = torch.ones_like(z) if weight is None else weight
        past = (self.remembered_scores, self.remembered_signs, self.remembered_weights)
        rows = [torch.cat([new, old.to(new.device)]) for new, old in zip((z, sign, own), past, strict=True)]
        newest = [torch.nonzero(rows[1] == side)[: self.memory, 0] for side in (1, -1)]
        rest = torch.cat(newest)
        self.remembered_scores, self.remembered_signs, self.remembered_weights = (each[rest] for each in rows)
        unweighted = weight is None and bool((past[2] == 1.0).all())
        return rows[0], rows[1], None if unweighted else rows[2]


class _Value(torch.autograd.Function):
    """Value of the surrogate; backward multiplies the gradient, which was computed with it."""

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, surrogate: Surrogate, known: Tensor, sign: Tensor, weight: Tensor | None
    ) -> Tensor:
        prepared, scores = _prepared(surrogate, known, sign, weight)
        found = prepared.evaluate(scores)
        grad = torch.as_tensor(getattr(found.grad, "array", found.grad), device=z.device)
        factor = _class_factors(sign, weight, len(z)) if len(z) < len(known) else None
        grad = grad if factor is None else grad[: len(z)] * factor
        ctx.save_for_backward(z, known, sign, weight, grad, factor)
        ctx.surrogate, ctx.cost = surrogate, found.cost
        return torch.tensor(found.value, dtype=torch.promote_types(z.dtype, torch.float32), device=z.device)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Any, ...]:
        z, known, sign, weight, grad, factor = ctx.saved_tensors
        slope = _Gradient.apply(z, ctx.surrogate, known, sign, weight, grad, factor, ctx.cost)
        return (upstream.to(slope.dtype) * slope).to(z.dtype), None, None, None, None


class _Gradient(torch.autograd.Function):
    """The gradient, in float64; backward multiplies by the Hessian."""

    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        surrogate: Surrogate,
        known: Tensor,
        sign: Tensor,
        weight: Tensor | None,
        grad: Tensor,
        factor: Tensor | None,
        cost: float,
    ) -> Tensor:
        ctx.save_for_backward(known, sign, weight, factor)
        ctx.surrogate, ctx.cost, ctx.dtype = surrogate, cost, z.dtype
        return grad.clone()

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Any, ...]:
        known, sign, weight, factor = ctx.saved_tensors
        rest = torch.zeros(len(known) - len(upstream), dtype=torch.float64, device=upstream.device)
        direction = torch.cat([upstream if factor is None else factor * upstream, rest])
        product = hessian_product(ctx.surrogate, known, sign, weight, ctx.cost, direction)[: len(upstream)]
        return product.to(ctx.dtype), None, None, None, None, None, None, None


def hessian_product(
    surrogate: Surrogate, z: Tensor, sign: Tensor, weight: Tensor | None, cost: float, direction: Tensor
) -> Tensor:
    """Return the Hessian in the scores times a direction, for risks that have one everywhere."""
    risk, positive = surrogate.risk, sign > 0
    s = torch.ones_like(z) if weight is None else weight
    if isinstance(risk, SquaredRocAreaRisk):
        return _pair_product(z, positive, s, direction)
    s = torch.where(positive, cost * s, s)
    margins = torch.where(positive, z, -z)
    if isinstance(risk, LogisticRisk):
        second = torch.sigmoid(margins) * torch.sigmoid(-margins)
    elif isinstance(risk, SquaredHingeRisk):
        second = (margins < 1.0).double()
    else:
        raise RuntimeError(
            f"the gradient of risk {risk.name!r} cannot be differentiated again. "
            "Use risk='roc_area_squared', 'logistic' or 'squared_hinge'."
        )
    return s * second / s.sum() * direction


def _pair_product(z: Tensor, positive: Tensor, s: Tensor, direction: Tensor) -> Tensor:
    """Return sum over pairs with 1 - z_i + z_j > 0 of s_i s_j (d_i - d_j) for positives i, minus it for negatives j."""
    above, below = torch.nonzero(positive)[:, 0], torch.nonzero(~positive)[:, 0]
    i, j = above[torch.argsort(z[above])], below[torch.argsort(z[below])]
    first = torch.searchsorted(z[j], z[i] - 1.0, right=True)  # negatives from here on are on a ramp with the positive
    last = torch.searchsorted(
        first, torch.arange(1, len(j) + 1, device=z.device)
    )  # positives before here, for each negative

    def sums(values: Tensor) -> Tensor:
        return torch.cat([torch.zeros(1, dtype=values.dtype, device=values.device), torch.cumsum(values, 0)])

    of_negatives, moved_negatives = sums(s[j]), sums(s[j] * direction[j])
    of_positives, moved_positives = sums(s[i]), sums(s[i] * direction[i])
    out = torch.zeros_like(z)
    out[i] = s[i] * (
        direction[i] * (of_negatives[-1] - of_negatives[first]) - moved_negatives[-1] + moved_negatives[first]
    )
    out[j] = s[j] * (direction[j] * of_positives[last] - moved_positives[last])
    return out / (of_positives[-1] * of_negatives[-1])


def _prepared(surrogate: Surrogate, z: Tensor, sign: Tensor, weight: Tensor | None) -> tuple[Surrogate, Any]:
    """Return the surrogate with labels and weights, and the scores, where the tensors are."""
    if z.device.type == "cpu":
        s = None if weight is None else weight.numpy()
        return surrogate.prepare(sign.numpy(), s), z.numpy()
    return on_device(surrogate, z, sign, weight)


def on_device(surrogate: Surrogate, z: Tensor, sign: Tensor, weight: Tensor | None) -> tuple[Surrogate, Any]:
    """Return the same in the score space of devices."""
    from scoreline.gpu.vector import DeviceVector

    s, scores = None if weight is None else DeviceVector(weight), DeviceVector(z)
    return surrogate.prepare(DeviceVector(sign), s, space_of(scores)), scores


def _class_factors(sign: Tensor, weight: Tensor | None, batch: int) -> Tensor:
    """Return for each row of the batch the weight of its class in batch and memory over that in the batch."""
    factor = torch.ones(batch, dtype=torch.float64, device=sign.device)
    s = torch.ones(len(sign), dtype=torch.float64, device=sign.device) if weight is None else weight
    for side in (1, -1):
        rows = sign == side
        own, everything = s[:batch][rows[:batch]].sum(), s[rows].sum()
        factor[rows[:batch]] = everything / own if own > 0.0 else 0.0
    return factor


def _flat(name: str, values: Any, scores: Tensor | None) -> Tensor:
    """Return a vector on the device of the scores, or raise."""
    if scores is None and not (isinstance(values, torch.Tensor) and values.is_floating_point()):
        raise TypeError(f"{name} must be a tensor of floats, got {getattr(values, 'dtype', type(values).__name__)}.")
    tensor = torch.as_tensor(values) if scores is None else torch.as_tensor(values, device=scores.device).detach()
    if tensor.ndim == 2 and tensor.shape[1] == 1:
        tensor = tensor[:, 0]
    if tensor.ndim != 1 or (scores is not None and tensor.shape != scores.shape):
        expected = "(n,) or (n, 1)" if scores is None else str(tuple(scores.shape))
        raise ValueError(f"{name} have shape {tuple(tensor.shape)}, expected {expected}.")
    return tensor


def _signs(labels: Tensor) -> Tensor:
    """Return +1 and -1, or raise for other labels."""
    positive = labels > 0
    if not bool(((labels == 1) | (labels == 0) | (labels == -1)).all()):
        wrong = np.unique(labels.detach().cpu().double().numpy())[:5].tolist()
        raise ValueError(f"labels must be 1 and 0, or +1 and -1; got {wrong}.")
    return torch.where(positive, 1, -1).to(torch.int8)


def _both_classes(sign: Tensor, weight: Tensor | None) -> bool:
    counted = sign if weight is None else sign[weight != 0.0]
    return bool((counted > 0).any()) and bool((counted < 0).any())
