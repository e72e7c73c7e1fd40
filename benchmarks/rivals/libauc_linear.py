"""LibAUC's AUC margin loss on a linear layer (optional: it wants PyTorch, and rows as a dense tensor)."""

from importlib.util import find_spec
from typing import Any

import numpy as np

from rivals.base import Linear, Rival

BATCH, ENTRIES = 256, 2**28  # numbers that the dense tensor may have


class LibAuc(Rival):
    """weight_decay = alpha; efforts are passes, the step is the one its examples use (0.1), halfway a tenth of it."""

    name, package, module = "LibAUC", "libauc", "libauc"
    efforts = (2, 10, 20)
    default = 20
    measures = ("roc_auc",)

    def missing(self) -> str | None:
        """Return why it cannot run here, or None."""
        return super().missing() or (None if find_spec("torch") else "not installed: torch")

    def refuses(self, rows: int, features: int) -> str | None:
        """Refuse what does not fit as a dense tensor."""
        return "too large as a dense tensor" if rows * features > ENTRIES else None

    def prepare(self, X: Any, y: np.ndarray) -> Any:
        """Make dense single-precision tensors."""
        import torch

        return torch.from_numpy(X.toarray().astype(np.float32)), torch.from_numpy((y > 0).astype(np.float32))

    def fit(self, data: Any, alpha: float, effort: Any, measure: str) -> Linear:
        """Take `effort` passes with batches that have the share of positives of the data."""
        import torch
        from libauc.losses import AUCMLoss
        from libauc.optimizers import PESG

        X, y = data
        torch.manual_seed(0)
        layer, loss = torch.nn.Linear(X.shape[1], 1), AUCMLoss(device="cpu")
        steps = PESG(
            layer.parameters(), loss_fn=loss, lr=0.1, momentum=0.9, margin=1.0, weight_decay=alpha, device="cpu"
        )
        for k in range(effort):
            if effort > 1 and k == effort // 2:
                steps.update_regularizer(decay_factor=10)
            for rows in torch.randperm(len(y)).split(BATCH):
                if 0 < y[rows].sum() < len(rows):
                    value = loss(torch.sigmoid(layer(X[rows]).ravel()), y[rows])
                    steps.zero_grad()
                    value.backward()
                    steps.step()
        return Linear(layer.weight.detach().numpy().ravel().astype(float), float(layer.bias))


RIVALS = (LibAuc(),)
