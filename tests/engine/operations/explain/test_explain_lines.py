"""What is predicted of a line is what plain torch does with it."""

from __future__ import annotations

import pytest
import torch

from engine.operations.explain import NoRule, check, read
from engine.system.errors import LabError


def variables() -> dict[str, object]:
    torch.manual_seed(3)
    return {
        "torch": torch,
        "x": torch.arange(12.0).reshape(3, 4),
        "y": torch.ones(4),
        "mask": torch.arange(12).reshape(3, 4) % 3 == 0,
        "i": torch.tensor([[0, 2], [1, 1]]),
        "z": torch.tensor(1.0),
        "c": torch.arange(6).reshape(3, 2).to(torch.complex64),
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
images.T; y.T; images.mT; z.mT; z.H; x.H; c.mH; c.H.conj(); c.real; c.imag; c.H @ c; x.data + 1
x.view(torch.float64); x.view(torch.int16); x[:, 2:].view(torch.complex64); c.view(torch.float32)
x.view(torch.int32); x.to(memory_format=torch.preserve_format); x.conj()
images.contiguous(); images.contiguous(memory_format=torch.channels_last)
images.to(memory_format=torch.contiguous_format)
images.clone(memory_format=torch.contiguous_format)
x[True]; x[False]; x[torch.tensor(True), 0]; z[True, None]; x[True, [0, 1]]; x[..., True]
x[mask, None]; x[x.long().bool()[0:3, 0], True]; x[[[0, 1], [1, 2]]]; x.take(i); x[-1, [-4, 3]]
x @ x.T; x @ y; y @ x.T; y @ y; x.mm(x.T); images @ images.mT; x.mv(y); y.dot(y)
torch.outer(y, y[:2]); torch.einsum('ij->ji', x); torch.einsum('ij,kj->ki', x, x)
w @ images.mT[:, :, :4]
torch.einsum('ij,j', x, y); torch.einsum('ii->i', x[:, :3])
torch.nn.functional.linear(x, x, y[:3])
torch.nn.functional.linear(images, torch.ones(2, 5)); torch.addmm(y[:3], x, x.T)
x.sum(); x.long().sum(); mask.sum(0); x.mean((0, 1), keepdim=True); x.prod(1); x.max(); x.max(y)
x.max(0).values * 1; x.min(dim=1, keepdim=True).indices + 0; x.argmax(); x.argmin(1); x.amax((0, 1))
torch.zeros(0, 2, dtype=torch.cfloat).amax(1); torch.zeros(0, 2, dtype=torch.cfloat).amin(1)
mask.any(); x.all(1); x.cumsum(0); x.std(); x.var(0); c.norm(); x.norm(1, dim=0); images.softmax(1)
x.sort(1, descending=True)[0] * 1; images.argsort(1); x.topk(2).values * 1; x.count_nonzero()
x.relu(); x.exp(); x.long().sqrt(); x.round(decimals=1); torch.nn.functional.gelu(x)
images.sigmoid()
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
RAISED = {
    "y.mT": RuntimeError,
    "images.H": RuntimeError,
    "x.T.view(torch.float64)": RuntimeError,
    "z.view(torch.float64)": RuntimeError,
    "x[:, 1:].view(torch.float64)": RuntimeError,
    "x[:, ::2].view(torch.int16)": RuntimeError,
    "c.H.view(torch.float32)": RuntimeError,
    "x.to(memory_format=torch.channels_last)": RuntimeError,
    "x @ x": RuntimeError,
    "images @ x": RuntimeError,
    "x @ z": RuntimeError,
    "x @ y.double()": RuntimeError,
    "mask @ mask.T": NotImplementedError,
    "x.mm(y)": RuntimeError,
    "y.dot(y[:2])": RuntimeError,
    "torch.einsum('ij,jk', x, x)": RuntimeError,
    "x @ 2": TypeError,
    "x.long().mean()": RuntimeError,
    "x.sum(2)": IndexError,
    "x.sum((0, 0))": RuntimeError,
    "mask.argmax()": RuntimeError,
    "c.max()": NotImplementedError,
    "x[:0].max()": RuntimeError,
    "x[:0].amax(0)": IndexError,
    "x.prod((0, 1))": TypeError,
    "x.long().softmax(0)": NotImplementedError,
    "x[[0, 3]]": IndexError,
    "x[:, [0, -5]]": IndexError,
    "x[0, 4]": IndexError,
    "x[1.0]": IndexError,
    "x[[0, 3]] = 1": IndexError,
    "x[[0, 3]] = x[:, :2] * 1": RuntimeError,
    "x[[True, False]]": IndexError,
    "x.gather(1, i + 2)": RuntimeError,
    "x.gather(0, -i)": RuntimeError,
    "x.scatter(1, i * 2, 0.0)": RuntimeError,
    "x.index_select(0, i[0] + 1)": IndexError,
    "x.take(i + 11)": IndexError,
    "x.take_along_dim(i + 11)": RuntimeError,
}
IN_PLACE = [
    "x.relu_()",
    "x.sqrt_()",
    "x.cumsum_(0)",
    "x[False] = 5",
    "x[True] = y",
    "x.add_(y)",
    "x[0] += 1",
    "x[i] += 1",
    "x += x",
    "x[mask] = 0",
    "x.t_()",
    "x.zero_()",
]


@pytest.mark.filterwarnings("ignore:.*(is|are) deprecated:UserWarning")
@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence:UserWarning")
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


@pytest.mark.parametrize("line", RAISED)
def test_predicts_the_class_of_an_error(line: str) -> None:
    known = variables()
    with pytest.raises(RAISED[line]):
        exec(line, dict(known))
    steps = read(line, known)
    refusal = steps[-1].refusal
    assert refusal is not None and refusal.raises is RAISED[line]
    assert [fact.differs for fact in check(steps)] == [()] * len(steps)
    refusal.raises = ZeroDivisionError
    assert check(steps)[-1].differs == ("refusal",)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("x[:, [0, 7]]", "index 7, the index's element 1, is out of range: dim 1 has 4"),
        (
            "x[0][torch.tensor([[1, 2], [3, 4]])]",
            "index 4, the index's element (1, 1), is out of range",
        ),
        ("x.gather(0, i + 1)", "index 3, the index's element (0, 1), is out of range: dim 0"),
        ("x.index_select(1, -i[0])", "index -2"),
    ],
)
def test_an_index_out_of_range_is_named(line: str, named: str) -> None:
    (*_, step) = read(
        line.replace("[[[1, 2], [3, 4]]]", "[torch.tensor([[1, 2], [3, 4]])]"), variables()
    )
    assert named in str(step.refusal)


@pytest.mark.parametrize("line", ["x[0, many]", "x[0].gather(0, many)", "x[many, i[:1, 0]]"])
def test_many_indices_are_not_checked_and_said_to_be(line: str) -> None:
    known = variables() | {"many": torch.full(((1 << 20) + 1,), 4)}
    steps = read(line, known)
    outcome = steps[-1].outcome
    assert outcome is not None and "1,048,577 indices" in outcome.unless
    assert any(text.startswith("not checked") for text in outcome.reasoning)
    fact = check(steps)[-1]
    assert fact.error is not None and fact.differs == ()


def test_what_is_deprecated_is_said_and_its_warning_left_to_the_line() -> None:
    known = variables()
    steps = read("images.T", known)
    assert "torch warns" in steps[0].outcome.reasoning[0]
    assert check(steps)[0].differs == ()
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="deprecated"):
            eval("images.T", known)
    finally:
        torch.set_warn_always(before)


def test_nothing_large_is_computed_for_an_index_or_a_comparison() -> None:
    known = variables() | {"big": torch.zeros(1).expand(1 << 20, 1 << 20)}
    with pytest.raises(LabError, match="too many"):
        check(read("big.sum(0)", known))
    with pytest.raises(LabError, match="too many"):
        check(read("big[:9] @ big", known))
    with pytest.raises(NoRule):
        read("x[big.argmax()]", known)


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


def test_what_writes_by_an_argument_without_a_name_is_tried_on_a_copy_too() -> None:
    x = torch.tensor([-1.0, 2.0])
    steps = read("F.relu(x, True) + x", variables() | {"F": torch.nn.functional, "x": x})
    assert [step.outcome and step.outcome.kind for step in steps] == ["in place", "copy"]
    assert [fact.differs for fact in check(steps)] == [(), ()]
    assert x.tolist() == [-1, 2] and x._version == 0


@pytest.mark.parametrize(
    "line",
    ["x.", "nothing + 1", "open('f')", "x.tolist()", "x", "a = 1; b = 2"],
)
def test_says_what_it_cannot_explain(line: str) -> None:
    with pytest.raises(LabError):
        read(line, variables())


NOT_TOLD = {
    "del x": "Only one operation or assignment is explained.",
    "a = b = x": "Only one operation or assignment is explained.",
    "a = 1; b = 2": "One line is explained at a time.",
    "": "One line is explained at a time.",
    "x.": "This is not a line of Python yet: invalid syntax.",
    "\0": "This is not a line of Python yet: source code string cannot contain null bytes.",
    "x": "There is no operation on a tensor in this line.",
    "a, b = x": "There is no operation on a tensor in this line.",
    "x.size(0)": "There is no operation on a tensor in this line.",
    "x.requires_grad": "There is no operation on a tensor in this line.",
    "x.vieww(3)": "Tensors have no `vieww`.",
    "x.max(0).value": "These results have no `value`.",
    "x.split(2).foo": "These results have no `foo`.",
    "1 / 0": "`1 / 0` cannot be read: division by zero",
    "n[5] + x": "`n[5]` cannot be read: list index out of range",
    "torch.zeros(-1)": "torch.zeros refuses: zeros: Dimension size must be non-negative.",
    "x.grad.add(1)": "`x` has no gradient yet: x.grad is None.",
    "x in y": "There is no rule for `x in y`.",
    "not x": "There is no rule for `not x`.",
    "0 < x < 1": "There is no rule for a chain of comparisons.",
    "x.data = y": "There is no rule for assigning to an attribute.",
    "torch.cat(*[x])": "There is no rule for arguments unpacked with *.",
    "torch.add(x, **n)": "There is no rule for arguments unpacked with *.",
    "lambda: x": "There is no rule for `lambda: x`.",
    "x[y:3]": "There is no rule for a tensor as the bound of a slice.",
    "x[0] @= y": "There is no rule for `x[0] @= y`.",
    "x.item()": "There is no rule for `item`.",
    "torch.save(x, 'f')": "There is no rule for calling `torch.save`.",
    "x.sum(dim=torch)": f"There is no rule for {torch!r} as an argument.",
}


@pytest.mark.parametrize("line", NOT_TOLD)
def test_why_a_line_is_not_explained(line: str) -> None:
    with pytest.raises(LabError) as raised:
        read(line, variables() | {"n": [1, 2]})
    told = NOT_TOLD[line]
    assert str(raised.value) == told
    assert isinstance(raised.value, NoRule) == told.startswith("There is no rule for")


def test_the_names_of_results_are_told() -> None:
    for line, hint in (
        ("x.max(0).a", "They have values, indices."),
        ("x.split(2).a", "Take one, as by [0]."),
    ):
        with pytest.raises(LabError) as raised:
            read(line, variables())
        assert raised.value.hint == hint


STEPS = {
    "x **= 2": ["x **= 2 pow_ in place"],
    "x[0] **= 2": [
        "x[0] __getitem__ view",
        "x[0] **= 2 pow_ in place",
        "x[0] = (the result) __setitem__ in place",
    ],
    "x @= x.T": ["x.T T view", "x @= x.T matmul copy"],
    "n @= x": ["n @= x matmul None"],
    "x.shape[0] * x": ["x.shape[0] * x mul copy"],
    "(n[0] + 1) * x": ["(n[0] + 1) * x mul copy"],
    "-n[0] * -x": ["-x neg copy", "-n[0] * -x mul copy"],
    "x[n[0]:]": ["x[n[0]:] __getitem__ view"],
    "x.max(0).values": ["x.max(0) max copy"],
    "x.max(0).indices.T": ["x.max(0) max copy", "x.max(0).indices.T T view"],
    "x.split(2)[1].T": ["x.split(2) split view", "x.split(2)[1].T T view"],
    "torch.zeros(3, 1) + x": ["torch.zeros(3, 1) + x add copy"],
    "x.where(x > 3, y)": ["x > 3 gt copy", "x.where(x > 3, y) where copy"],
    "torch.Tensor.add(x, y)": ["torch.Tensor.add(x, y) add copy"],
    "x[0] = y": ["x[0] = y __setitem__ in place"],
}


@pytest.mark.parametrize("line", STEPS)
def test_each_operation_of_a_line_is_a_step(line: str) -> None:
    steps = read(line, variables() | {"n": [1, 2]})
    told = [f"{s.source} {s.operation} {s.outcome and s.outcome.kind}" for s in steps]
    assert told == STEPS[line]


@pytest.mark.parametrize("line", ["n += 1", "n += x", "n[0] += 1", "n[0] = x", "x.new = x"])
def test_only_changes_of_tensors_are_explained(line: str) -> None:
    with pytest.raises(NoRule, match=r"not a tensor|assigning to"):
        read(line, variables() | {"n": [1, 2]})


def test_reading_builds_no_graph_and_writes_nothing() -> None:
    known = variables()
    w = known["w"]
    version = w._version
    steps = read("(w * 2)[w > 0].reshape(-1)", known)
    assert [step.outcome.kind for step in steps] == ["copy", "copy", "copy", "view"]
    assert all(fact.differs == () for fact in check(steps))
    assert w._version == version and steps[-1].compute().grad_fn is None


@pytest.mark.parametrize("line", [
    "z.mul_(2)", "leaf.mul_(2)", "made.mul_(2)", "part.mul_(2)", "z.real.mul_(2)",
    "leaf.real.mul_(2)", "made.imag.add_(1)", "z.resolve_conj().add_(1)", "leaf.conj().add_(z)",
    "z[0] = 1j", "leaf[0] = 1j", "made[0] = 1j", "z.abs().clamp_(0)", "leaf.detach().mul_(2)",
])  # fmt: skip
def test_complex_tensors_are_written_to_where_autograd_lets_them(line: str) -> None:
    leaf = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    variables = {"z": leaf.detach().clone(), "leaf": leaf, "made": leaf * 2, "part": leaf[:1]}
    (fact, *rest) = reversed(check(steps := read(line, variables)))
    assert not fact.differs and not any(other.differs for other in rest)
    is_refused = steps[-1].refusal is not None
    variables = {"z": leaf.detach().clone(), "leaf": leaf, "made": leaf * 2, "part": leaf[:1]}
    if is_refused:
        with pytest.raises(RuntimeError, match="leaf"):
            exec(line, variables)
    else:
        exec(line, variables)
