"""What is predicted of a line is what plain torch does with it."""

from __future__ import annotations

import pytest
import torch

from engine.errors import LabError
from engine.tensors.explain import check, read


def variables() -> dict[str, object]:
    torch.manual_seed(3)
    return {
        "torch": torch,
        "x": torch.arange(12.0).reshape(3, 4),
        "y": torch.ones(4),
        "mask": torch.arange(12).reshape(3, 4) % 3 == 0,
        "i": torch.tensor([[0, 2], [1, 1]]),
        "w": torch.ones(3, 4, requires_grad=True),
        "images": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    }


GIVEN = """
x.view(3, -1); x.T.reshape(-1); x.flatten(); x[0, ::2]; x[mask]; x[:, i]; x[i.T]; x[..., None, 1]
x + y; x.T + 1; 1 - x; 1 / x; 2 < x; x[:, None, i]; torch.cat([x, x.T.reshape(3, 4)], dim=1)
torch.stack([x, x], dim=1); images.clone(); images + 1; torch.cat([images, images]); images.mT
images.chunk(2, dim=1)[0].contiguous(); x.to(torch.float64); x.to(x.dtype); x.long() / 2
x.unfold(0, 2, 1); x.as_strided((2, 2), (1, 1)); torch.where(x > 3, x, 0.0); x.gather(1, i)
torch.arange(12).view(3, 4).T; x.expand(2, 3, 4).contiguous(); y.unsqueeze(0).repeat(2, 3)
x.where(x > 3, 0); x.detach(); x.movedim(0, 1).narrow(0, 1, 2).select(1, 0); x.contiguous()
x.unsqueeze(1).squeeze(); torch.scatter(x, 1, i, 0.0); x.permute(1, 0)
""".replace("\n", ";")
LINES = [line.strip() for line in GIVEN.split(";") if line.strip()]

REFUSED = [
    "x.T.view(-1)",
    "x + y[:3]",
    "w.add_(1)",
    "w[0] = 1",
    "x.as_strided((20, 2), (1, 1))",
    "y.expand(3, 4).add_(1)",
    "x.long().add_(0.5)",
    "y.add_(x)",
    "x[3]",
    "x[:] = x.T",
    "x.narrow(0, 2, 2)",
    "x.expand(3, 8)",
]
IN_PLACE = ["x.add_(y)", "x[0] += 1", "x[i] += 1", "x += x", "x[mask] = 0", "x.t_()", "x.zero_()"]


@pytest.mark.parametrize("line", LINES)
def test_predicts_what_torch_gives(line: str) -> None:
    known = variables()
    said = read(line, known)[-1].outcome
    given = eval(line, dict(known))
    assert said is not None
    assert said.result.shape == given.shape
    assert said.result.stride == given.stride()
    assert said.result.offset == given.storage_offset()
    assert said.result.dtype == given.dtype
    assert [fact.differs for fact in check(read(line, known))] == [()] * len(read(line, known))


@pytest.mark.parametrize("line", REFUSED)
def test_predicts_what_torch_refuses(line: str) -> None:
    known = variables()
    with pytest.raises((RuntimeError, IndexError)):
        exec(line, dict(known))
    steps = read(line, known)
    assert steps[-1].refusal is not None
    assert steps[-1].outcome is None
    assert check(steps)[-1].error is not None


@pytest.mark.parametrize("line", IN_PLACE)
def test_tries_writing_on_copies_only(line: str) -> None:
    known = variables()
    x = known["x"]
    before, version = x.clone(), x._version
    facts = check(read(line, known))
    assert all(fact.differs == () for fact in facts)
    assert x.equal(before) and x._version == version and x.shape == before.shape
    exec(line, known)
    said = read(line, variables())[-1].outcome
    assert (said.result.shape, said.result.stride) == (known["x"].shape, known["x"].stride())


@pytest.mark.parametrize(
    "line", ["x.", "nothing + 1", "open('f')", "x.tolist()", "x", "a = 1; b = 2"]
)
def test_says_what_it_cannot_explain(line: str) -> None:
    with pytest.raises(LabError):
        read(line, variables())


def test_reading_builds_no_graph_and_writes_nothing() -> None:
    known = variables()
    w = known["w"]
    version = w._version
    steps = read("(w * 2)[w > 0].reshape(-1)", known)
    assert [step.outcome.kind for step in steps] == ["copy", "copy", "copy", "view"]
    assert all(not fact.results[0].unwritable for fact in check(steps))
    assert w._version == version and steps[-1].compute().grad_fn is None
