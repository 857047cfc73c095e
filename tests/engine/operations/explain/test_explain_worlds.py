"""Predictions that are torch's own: operations that have no rule of ours, large tensors, and errors
that fake mode does not raise. The line itself must leave no trace."""

from __future__ import annotations

import pytest
import torch

from engine.operations.explain import NoRule, check, read
from engine.system.errors import LabError

ROWS = 1 << 10
"""Squared, more elements than are tried on copies: torch is asked in fake mode alone."""


def variables() -> dict[str, object]:
    large = torch.zeros(ROWS, ROWS)
    return {
        "torch": torch,
        "x": torch.arange(12.0).reshape(3, 4),
        "square": torch.eye(3) * 2,
        "large": large,
        "double": large.double(),
        "mask": torch.arange(ROWS * ROWS).reshape(ROWS, ROWS) % 5 == 0,
        "far": torch.tensor([0, ROWS]),
        "weight": torch.ones(ROWS, ROWS, requires_grad=True),
        "odd": torch.zeros(4 << 16, 2).as_strided((2, 1, 4 << 16), (1, 2, 2)),
        "spun": large.to(torch.complex64),
        "mean": torch.zeros(4),
        "var": torch.ones(4),
    }


def assert_told_as_given(line: str) -> None:
    known = variables()
    steps = read(line, known)
    said = steps[-1].outcome
    given = eval(line, dict(known))
    assert said is not None, steps[-1].refusal
    results = tuple(given) if isinstance(given, tuple | list) else (given,)
    told = [(x.shape, x.stride, x.offset, x.dtype) for x in said.results]
    assert told == [(tuple(t.shape), t.stride(), t.storage_offset(), t.dtype) for t in results]
    assert said.why
    assert [fact.differs for fact in check(steps)] == [()] * len(steps)


@pytest.mark.parametrize(
    "line",
    [
        "x[..., ...]",
        "torch.inner(x, x)",
        "x.quantile(0.5, dim=1)",
        "x.unique()",
        "torch.unique(x.long(), return_counts=True)",
        "x.nonzero()",
        "x.cummax(1)",
        "torch.linalg.inv(square)",
        "torch.linalg.svd(x)",
        "torch.fft.rfft(x)",
        "torch.nn.functional.gelu(x, approximate='tanh')",
        "torch.nn.functional.max_pool2d(x[None, None], 2)",
        "torch.nn.functional.one_hot(x.long(), 12)",
        "torch.meshgrid(x[0], x[1], indexing='ij')",
        "x.diagonal()",
        "x.roll(1, 0)",
        "1 / x",
        "x.flip(0)",
    ],
)
def test_operations_without_words_of_their_own_are_predicted(line: str) -> None:
    assert_told_as_given(line)


@pytest.mark.parametrize(
    "line",
    [
        "large.T.reshape(-1)",
        "large.view(-1)",
        "large[1:, :8].view(ROWS - 1, 2, 4)".replace("ROWS", str(ROWS)),
        "large.unflatten(0, (2, -1))",
        "large.T + 1",
        "large[:2].add_(large[2:4])",
        "large[2:4].add_(large[:2])",
        "large[:0].add_(large[:0])",
        "large[:, :5].add_(large[:, 1:6])",
        "large.add_(large)",
        "large.add_(double[:1])",
        "large @ large.T[:, :7]",
        "large[mask]",
        "large[mask[0]]",
        "large[:, far - 1]",
        "large.chunk(3)",
        "large.double().sum(1)",
        "torch.cat([large, double])",
        "weight.expand(2, ROWS, ROWS)[1]".replace("ROWS", str(ROWS)),
    ],
)
def test_large_tensors_are_predicted_without_their_numbers(line: str) -> None:
    assert_told_as_given(line)


@pytest.mark.parametrize(
    "line",
    [
        "large @ double",
        "torch.nn.functional.linear(double, weight)",
        "mask @ mask",
        "mask - mask",
        "spun.clamp(0)",
        "spun.floor()",
        "spun.max()",
        "large[far]",
        "torch.nn.functional.embedding(far, large)",
        "large.index_select(0, far)",
        "large[mask[:7]]",
        "large.as_strided((ROWS, ROWS), (ROWS, 2))".replace("ROWS", str(ROWS)),
        "weight.mul_(2)",
        "large.T.view(-1)",
        "large + x",
        "torch.cat([large, x])",
        "large @ x",
        "large.long().mul_(0.5)",
        "large[1:].add_(large[:-1])",
        "large[:-1].add_(large[1:])",
        "large[3:5].add_(large[2:4])",
        "large[2:4].add_(large[3:5])",
        "large.add_(large.T)",
        "large[1:] = large[:-1]",
        "large[far - 1] = x",
        "large[:1].expand(ROWS, ROWS).add_(1)".replace("ROWS", str(ROWS)),
        "odd.view(8 << 16, -1)",
    ],
)
def test_what_is_refused_of_large_tensors_is_foreseen(line: str) -> None:
    known = variables()
    with pytest.raises((RuntimeError, IndexError)):
        exec(line, dict(known))
    steps = read(line, known)
    assert steps[-1].refusal is not None, steps[-1].outcome
    fact = check(steps)[-1]
    assert fact.error is not None and fact.differs == ()


@pytest.mark.parametrize(
    "line",
    [
        "torch.add(x, 1, out=x)",
        "torch.nn.functional.batch_norm(x, mean, var, training=True)",
        "torch.nn.functional.relu(x, inplace=True)",
        "torch.nn.functional.dropout(x)",
        "x + torch.rand(4)",
        "x.bernoulli(0.5)",
    ],
)
def test_nothing_of_the_line_happens(line: str) -> None:
    known = variables()
    before = {n: t.clone() for n, t in known.items() if isinstance(t, torch.Tensor)}
    random = torch.get_rng_state()
    assert all(fact.error is None for fact in check(read(line, known)))
    for name, kept in before.items():
        t = known[name]
        assert isinstance(t, torch.Tensor) and t.equal(kept) and t._version == 0
    assert torch.get_rng_state().equal(random)


@pytest.mark.parametrize(
    "line",
    [
        "large.unique()",
        "torch.repeat_interleave(x.long())",
        "x.item()",
        "x.numpy()",
        "torch.manual_seed(3)",
        "x.register_hook(print)",
        "x.backward()",
    ],
)
def test_what_depends_on_numbers_or_gives_no_tensor_is_not_told(line: str) -> None:
    with pytest.raises(NoRule):
        read(line, variables() | {"print": print})


def test_operands_on_different_devices_are_refused() -> None:
    known = variables() | {"blank": torch.empty(3, 4, device="meta")}
    (step,) = read("blank + large[0, :4]", known)[-1:]
    assert step.refusal is not None and "different devices" in str(step.refusal)
    assert check(read("blank + large[0, :4]", known))[-1].differs == ()


def test_a_graph_that_the_line_itself_makes_is_counted_in() -> None:
    """A matrix that requires grad meets a batch: torch multiplies the transposed ones."""
    known = {"w": torch.ones(3, 4, requires_grad=True), "b": torch.ones(2, 4, 1)}
    given = eval("(w * 2) @ b", {}, dict(known))
    said = read("(w * 2) @ b", known)[-1].outcome
    assert said is not None and said.result.stride == given.stride()


@pytest.mark.parametrize(
    ("line", "work"),
    [
        ("large @ large", ROWS**3),
        ("large @ large[:, :7]", ROWS**2 * 7),
        ("torch.addmm(large[0, :3], large, large[:, :3])", ROWS**2 * 3),
        ("large + 1", ROWS**2),
        ("large[0] + large", ROWS**2),
        ("large.sum(1)", ROWS**2),
        ("large.T", 0),
        ("large.add_(1)", 0),
        ("large.T.reshape(-1)", ROWS**2),
        ("x @ x.T", 3 * 4 * 3),
    ],
)
def test_the_work_is_the_elements_that_are_read_or_multiplied(line: str, work: int) -> None:
    outcome = read(line, variables())[-1].outcome
    assert outcome is not None and outcome.work == work


@pytest.mark.parametrize("line", ["large + blank", "blank + large", "large @ blank"])
def test_sizes_on_two_devices_are_refused_in_torchs_words(line: str) -> None:
    known = variables() | {"blank": torch.empty(7, device="meta")}
    with pytest.raises(RuntimeError) as raised:
        eval(line, dict(known))
    refusal = read(line, known)[-1].refusal
    assert refusal is not None and refusal.said == str(raised.value)


def shrunk() -> torch.Tensor:
    t = torch.ones(4)
    t.untyped_storage().resize_(0)
    return t


@pytest.mark.filterwarnings("ignore:.*(quantize_per_tensor|prototype).*:UserWarning")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: torch.eye(3).to_sparse(), "is not an ordinary strided tensor"),
        (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "is not an ordinary"),
        (lambda: torch.quantize_per_tensor(torch.ones(3), 0.5, 0, torch.quint8), "is not an ordin"),
        (lambda: torch.empty(3, dtype=torch.bits8), "is not an ordinary strided tensor"),
        (torch.nn.parameter.UninitializedParameter, "has no shape yet: it is not initialised"),
        (shrunk, "cannot be read: its storage was released or shrunk"),
    ],
)
def test_a_tensor_that_is_not_a_plain_one_is_told(make, words: str) -> None:
    with pytest.raises(LabError, match=f"`odd` {words}"):
        read("odd + 1", {"odd": make()})
