"""The loss for PyTorch: value and gradient against autograd of the literal formula, types, devices, memory, compilation."""

import copy
import pickle

import numpy as np
import pytest

from scoreline.objectives import Surrogate, torch_loss
from tiers import tiered

torch = pytest.importorskip("torch")
torch_module = pytest.importorskip("scoreline.objectives.torch_module")


def made(n=60, seed=0, dtype=torch.float64):
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 3 == 0).astype(int)
    z = np.round(rng.standard_normal(n) + y, 1)
    return torch.tensor(z, dtype=dtype, requires_grad=True), torch.tensor(y), torch.tensor(rng.integers(1, 4, n))


def literal(z, y, weight=None):
    """Return the squared ROC area by the matrix of all pairs."""
    s = torch.ones_like(z) if weight is None else weight
    t = torch.clamp(1.0 - z[y > 0][:, None] + z[y <= 0][None, :], min=0.0)
    pairs = s[y > 0][:, None] * s[y <= 0][None, :]
    return (pairs * t**2).sum() / (2.0 * pairs.sum())


@pytest.fixture
def as_if_on_a_device(monkeypatch):
    """Send CPU tensors the way of CUDA tensors: through the score space of devices."""
    monkeypatch.setattr(torch_module, "_prepared", torch_module.on_device)


MEASURES = ("roc_auc", "partial_roc_auc", "average_precision", "prbep", "f1", "recall_at_precision", "accuracy")


@pytest.mark.parametrize("measure", tiered(MEASURES, strength=1))
@pytest.mark.parametrize("weighted", [False, True])
def test_value_and_gradient_are_those_of_the_surrogate(measure, weighted):
    z, y, weight = made()
    given = (weight,) if weighted else ()
    loss = torch_loss(measure)(z, y, *given)
    (3.0 * loss).backward()
    found = Surrogate(measure).prepare(y.numpy(), weight.numpy() if weighted else None).evaluate(z.detach().numpy())
    assert float(loss) == pytest.approx(found.value)
    np.testing.assert_allclose(z.grad.numpy(), 3.0 * found.grad)


def test_the_matrix_of_all_pairs():
    z, y, weight = made()
    ours, own = (torch.autograd.grad(loss(z, y, weight), z)[0] for loss in (torch_loss("roc_auc"), literal))
    torch.testing.assert_close(ours, own)


@pytest.mark.parametrize("measure", tiered(MEASURES, strength=1))
def test_the_path_of_cuda_tensors(measure, as_if_on_a_device):
    test_value_and_gradient_are_those_of_the_surrogate(measure, True)


def test_memory_on_the_path_of_cuda_tensors(as_if_on_a_device):
    test_memory_stands_for_the_other_rows()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_types_and_shapes(dtype):
    z, y, _ = made(dtype=dtype)
    expected = torch.autograd.grad(literal(z.double(), y), z)[0]
    for scores, labels in (
        (z, y),
        (z[:, None], y[:, None]),
        (z, y.float()),
        (z, 2 * y - 1),
        (z, y > 0),
        (z, y.numpy()),
    ):
        loss = torch_loss("roc_auc")(scores, labels)
        assert loss.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
        assert loss.shape == ()
        grad = torch.autograd.grad(loss, z)[0]
        assert grad.dtype == dtype
        torch.testing.assert_close(grad, expected)


@pytest.mark.parametrize(("measure", "risk"), [("roc_auc", "auto"), ("f1", "auto"), ("f1", "squared_hinge")])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_can_be_differentiated_again(measure, risk, weighted):
    z, y, weight = made(seed=1)
    z = (
        z.detach() + 0.01 * torch.randn(len(z), generator=torch.Generator().manual_seed(0))
    ).requires_grad_()  # no kink
    given = (weight,) if weighted else ()
    cost = "auto" if measure == "roc_auc" else 2.0
    loss = torch_loss(measure, risk=risk, cost=cost)
    assert torch.autograd.gradcheck(lambda x: loss(x, y, *given), (z,))
    assert torch.autograd.gradgradcheck(lambda x: loss(x, y, *given), (z,))
    if measure == "roc_auc":
        own, other = (torch.autograd.functional.hessian(lambda x, f=f: f(x, y, *given), z) for f in (loss, literal))
        torch.testing.assert_close(own, other)


def test_what_has_no_second_derivative_says_so():
    z, y, _ = made()
    (slope,) = torch.autograd.grad(torch_loss("roc_auc", risk="roc_area")(z, y), z, create_graph=True)
    with pytest.raises(RuntimeError, match="cannot be differentiated again"):
        slope.sum().backward()


def test_memory_stands_for_the_other_rows():
    """The gradient of a batch is that of a positive against all negatives, new and remembered, and the other way round."""
    z, y, weight = made()
    loss = torch_loss("roc_auc", memory=1000)
    loss(z[:30], y[:30], weight[:30])
    value = loss(z[30:], y[30:], weight[30:])
    assert float(value) == pytest.approx(float(literal(z, y, weight)))
    (found,) = torch.autograd.grad(value, z)
    assert (found[:30] == 0).all()
    (full,) = torch.autograd.grad(literal(z, y, weight), z)
    for side in (0, 1):
        rows = (y == side) & (torch.arange(60) >= 30)
        share = weight[rows].sum() / weight[y == side].sum()
        torch.testing.assert_close(found[rows] * share, full[rows])


def test_memory_is_limited_and_can_be_left():
    z, y, _ = made()
    loss = torch_loss("roc_auc", memory=5)
    for start in range(0, 60, 20):
        loss(z[start : start + 20], y[start : start + 20])
    signs, scores = loss.remembered_signs, loss.remembered_scores
    assert [(signs == side).sum() for side in (1, -1)] == [5, 5]
    assert not scores.requires_grad
    assert set(scores.tolist()) <= set(z[40:].tolist())  # the newest
    loss.eval()
    assert float(loss(z, y)) == pytest.approx(float(literal(z, y)))
    torch.testing.assert_close(loss.remembered_scores, scores)
    loss.train()
    loss.reset()
    assert len(loss.remembered_scores) == 0
    assert "remembered_scores" not in loss.state_dict()
    one_class = loss(z[y == 0], y[y == 0])
    one_class.backward()
    assert float(one_class) == 0.0
    assert (z.grad == 0).all()
    assert float(loss(z[y == 1], y[y == 1])) > 0.0  # the negatives are remembered


def test_a_batch_of_one_class_has_no_loss():
    z, y, weight = made()
    for rows in (y == 0, y == 1):
        loss = torch_loss("f1")(z[rows], y[rows])
        loss.backward()
        assert float(loss) == 0.0
    assert float(torch_loss("roc_auc")(z, y, weight * (y == 1))) == 0.0


def test_a_module_among_modules():
    loss = torch_loss("fbeta", {"beta": 2.0}, memory=3)
    assert "fbeta (beta=2)" in repr(loss)
    z, y, _ = made()
    for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)), loss.to("cpu")):
        assert float(other(z, y)) == float(torch_loss("fbeta", {"beta": 2.0})(z, y))


def test_training_and_parallel_use():
    torch.manual_seed(0)
    X = torch.randn(400, 5)
    y = (X[:, 0] * X[:, 1] > 1.0).int()
    network = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimiser, loss = torch.optim.Adam(network.parameters(), lr=0.02), torch_loss("roc_auc", memory=200)
    values = []
    for _ in range(15):
        for rows in torch.randperm(400).split(50):
            optimiser.zero_grad()
            value = loss(network(X[rows]), y[rows])
            value.backward()
            optimiser.step()
        values.append(float(value.detach()))
    assert values[-1] < 0.5 * values[0]


@pytest.mark.slow
def test_compiled_training_steps():
    """torch.compile leaves the loss out of its graph; values and gradients stay the same."""
    torch.manual_seed(0)
    X, y = torch.randn(100, 4), torch.arange(100) % 4 == 0
    network = torch.nn.Linear(4, 1)
    loss = torch_loss("roc_auc")

    def step(rows, labels):
        return loss(torch.tanh(network(rows)), labels)

    expected = torch.autograd.grad(step(X, y), network.parameters())
    compiled = torch.compile(step, backend="aot_eager")
    found = torch.autograd.grad(compiled(X, y), network.parameters())
    for own, other in zip(found, expected, strict=True):
        torch.testing.assert_close(own, other)


def test_what_is_wrong_is_said():
    z, y, weight = made()
    loss = torch_loss("roc_auc")
    with pytest.raises(TypeError, match="floats"):
        loss(y, y)
    with pytest.raises(ValueError, match="scores have shape"):
        loss(torch.zeros(5, 2), torch.zeros(5))
    with pytest.raises(ValueError, match="labels have shape"):
        loss(z, y[1:])
    with pytest.raises(ValueError, match="labels must be"):
        loss(z, y + 1)
    with pytest.raises(ValueError, match="non-negative"):
        loss(z, y, -weight)
    with pytest.raises(ValueError, match="memory=-1"):
        torch_loss("roc_auc", memory=-1)
    with pytest.raises(ValueError, match="whole numbers"):
        torch_loss("average_precision")(z, y, 0.5 * weight)
