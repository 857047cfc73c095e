"""What is drawn of torch's real errors: which dimensions of which operands do not fit."""

from __future__ import annotations

import pytest

from engine.protocol import (
    CellSnapshot,
    ExplainCommand,
    ExplanationSnapshot,
    FailedOperands,
    PickCommand,
    PickSnapshot,
    ReductionCommand,
    ReductionSnapshot,
    RunCellCommand,
    Snapshot,
)
from engine.session import Session

SETUP = """
x = torch.zeros(3, 4)
m = torch.ones(3, 4)
images = torch.zeros(2, 3, 28, 28)
parts = [x, x.T]
net = nn.Linear(3, 2)

def product_of(a):
    return a @ a
"""


class Bench:
    def __init__(self) -> None:
        self._got: list[Snapshot] = []
        self._session = Session(self._got.append)
        self.run(SETUP)

    def run(self, source: str) -> CellSnapshot:
        self._session.handle(RunCellCommand(source=source))
        ended = self._got[-1]
        assert isinstance(ended, CellSnapshot), ended
        return ended

    def failed(self, source: str) -> FailedOperands | None:
        error = self.run(source).error
        assert error is not None
        return error.operands

    def explain(self, source: str, run: bool = False) -> ExplanationSnapshot:
        self._session.handle(ExplainCommand(source=source, run=run))
        told = self._got[-1]
        assert isinstance(told, ExplanationSnapshot), told
        return told

    def ask(self, command: PickCommand | ReductionCommand) -> PickSnapshot | ReductionSnapshot:
        self._session.handle(command)
        told = self._got[-1]
        assert isinstance(told, PickSnapshot | ReductionSnapshot), told
        return told


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


def drawn(failed: FailedOperands | None) -> tuple[str, dict[str, tuple]]:
    """The kind, and for each row its cells, their columns and those that fail."""
    assert failed is not None
    return failed.kind, {
        f"{number} {row.text}": (row.cells, row.columns, row.failing)
        for number, row in enumerate(failed.operands)
    }


SHAPES = {
    "x + torch.ones(3)": (
        "broadcast",
        {"0 x": ((3, 4), (0, 1), (1,)), "1 torch.ones(3)": ((3,), (1,), (0,))},
    ),
    "torch.ones(3) - x": (
        "broadcast",
        {"0 torch.ones(3)": ((3,), (1,), (0,)), "1 x": ((3, 4), (0, 1), (1,))},
    ),
    "x.add_(torch.ones(2, 3, 4))": (
        "broadcast",
        {
            "0 x": (("·", 3, 4), (0, 1, 2), (0,)),
            "1 torch.ones(2, 3, 4)": ((2, 3, 4), (0, 1, 2), ()),
        },
    ),
    "x[0] = torch.ones(7)": (
        "broadcast",
        {"0 picked": ((4,), (0,), (0,)), "1 torch.ones(7)": ((7,), (0,), (0,))},
    ),
    "torch.where(x > 0, torch.ones(3), x)": (
        "broadcast",
        {
            "0 x > 0": ((3, 4), (0, 1), (1,)),
            "1 torch.ones(3)": ((3,), (1,), (0,)),
            "2 x": ((3, 4), (0, 1), (1,)),
        },
    ),
    "x.expand(2, 3, 8)": (
        "broadcast",
        {"0 x": ((3, 4), (1, 2), (1,)), "1 asked for": ((2, 3, 8), (0, 1, 2), (2,))},
    ),
    "x @ x": ("product", {"0 x": ((3, 4), (0, 1), (1,)), "1 x": ((3, 4), (1, 2), (0,))}),
    "product_of(m)": ("product", {"0 a": ((3, 4), (0, 1), (1,)), "1 a": ((3, 4), (1, 2), (0,))}),
    "x.mv(torch.ones(3))": (
        "product",
        {"0 x": ((3, 4), (0, 1), (1,)), "1 torch.ones(3)": ((3,), (1,), (0,))},
    ),
    "torch.ones(2, 5, 6) @ torch.ones(3, 6, 7)": (
        "product",
        {
            "0 torch.ones(2, 5, 6)": ((2, 5, 6), (0, 1, 2), (0,)),
            "1 torch.ones(3, 6, 7)": ((3, 6, 7), (0, 2, 3), (0,)),
        },
    ),
    "torch.einsum('ij,jk', x, x)": (
        "product",
        {"0 x": ((3, 4), (0, 1), (1,)), "1 x": ((3, 4), (1, 2), (0,))},
    ),
    "net(x)": (
        "product",
        {"0 input": ((3, 4), (0, 1), (1,)), "1 Linear.weight": ((2, 3), (2, 1), (1,))},
    ),
    "F.conv2d(images, torch.ones(6, 1, 5, 5))": (
        "product",
        {
            "0 images": ((2, 3, 28, 28), (0, 1, 2, 3), (1,)),
            "1 torch.ones(6, 1, 5, 5)": ((6, 1, 5, 5), (0, 1, 2, 3), (1,)),
        },
    ),
    "torch.cat(parts)": (
        "join",
        {"0 parts[0]": ((3, 4), (0, 1), (1,)), "1 parts[1]": ((4, 3), (0, 1), (1,))},
    ),
    "torch.stack([x, m, x.T])": (
        "join",
        {
            "0 x": ((3, 4), (0, 1), (0, 1)),
            "1 m": ((3, 4), (0, 1), (0, 1)),
            "2 x.T": ((4, 3), (0, 1), (0, 1)),
        },
    ),
    "F.cross_entropy(x, torch.zeros(2).long())": (
        "join",
        {"0 x": ((3, 4), (0, 1), (0,)), "1 torch.zeros(2).long()": ((2,), (0,), (0,))},
    ),
    "x.view(5, -1)": (
        "elements",
        {"0 x": ((3, 4), (0, 1), ()), "1 asked for": ((5, -1), (0, 1), (0,))},
    ),
    "x.T.view(-1)": (
        "elements",
        {
            "0 x.T": ((4, 3), (0, 1), ()),
            "1 strides": ((1, 4), (0, 1), (0, 1)),
            "2 asked for": ((-1,), (0,), ()),
        },
    ),
    "x.split([1, 1])": (
        "elements",
        {"0 x": ((3, 4), (0, 1), (0,)), "1 pieces": ((1, 1), (0, 1), (0, 1))},
    ),
    "x.permute(0, 0)": (
        "dimension",
        {"0 x": ((3, 4), (0, 1), ()), "1 dims": ((0, 0), (0, 1), (1,))},
    ),
    "x.sum(2)": ("dimension", {"0 x": ((3, 4), (0, 1), ()), "1 dim": ((2,), (2,), (0,))}),
    "x.unsqueeze(-4)": ("dimension", {"0 x": ((3, 4), (2, 3), ()), "1 dim": ((-4,), (0,), (0,))}),
    "x[:, 9]": (
        "index",
        {
            "0 x": ((3, 4), (0, 1), ()),
            "1 numbered": (("0…2", "0…3"), (0, 1), ()),
            "2 index": ((":", "9"), (0, 1), (1,)),
        },
    ),
    "x[0, 0, 0]": (
        "index",
        {
            "0 x": ((3, 4), (0, 1), ()),
            "1 numbered": (("0…2", "0…3"), (0, 1), ()),
            "2 index": (("0", "0", "0"), (0, 1, 2), (2,)),
        },
    ),
    "x[torch.ones(4).bool()]": (
        "index",
        {"0 x": ((3, 4), (0, 1), (0,)), "1 torch.ones(4).bool()": ((4,), (0,), (0,))},
    ),
    "x.gather(0, torch.zeros(3, 9).long())": (
        "index",
        {"0 x": ((3, 4), (0, 1), (1,)), "1 torch.zeros(3, 9).long()": ((3, 9), (0, 1), (1,))},
    ),
    "F.embedding(torch.tensor([0, 3]), x)": (
        "index",
        {
            "0 x": ((3, 4), (0, 1), ()),
            "1 numbered": (("0…2", "0…3"), (0, 1), ()),
            "2 index": (("0…3",), (0,), (0,)),
        },
    ),
}


@pytest.mark.parametrize("source", SHAPES)
def test_what_does_not_fit_is_marked_where_it_stands(bench, source) -> None:
    assert drawn(bench.failed(source)) == SHAPES[source]


@pytest.mark.parametrize(
    "source, words",
    [
        ("x + torch.ones(3)", "x has 4, torch.ones(3) has 3: neither is 1."),
        ("x[5]", "Dimension 0 of x has 3 elements, numbered 0 to 2: 5 is none of them."),
        ("x[[0, -4]]", "numbered 0 to 2: -4 is none of them."),
        ("x.view(7)", "x has 12 elements, and 7 were asked for."),
        ("torch.einsum('ij,kj', x, x.T)", "The letter j must have one size: x has 4, x.T has 3."),
        ("x.sum(5)", "x has no dimension 5: it has 2 dimensions."),
    ],
)
def test_a_sentence_tells_what_is_marked(bench, source, words) -> None:
    assert words in bench.failed(source).text


def test_of_many_tensors_the_first_and_those_that_differ_are_drawn(bench) -> None:
    bench.run("many = [x] * 40 + [x.T] + [x] * 40")
    assert drawn(bench.failed("torch.cat(many)")) == (
        "join",
        {"0 many[0]": ((3, 4), (0, 1), (1,)), "1 many[40]": ((4, 3), (0, 1), (1,))},
    )


def test_devices_and_dtypes_that_do_not_go_together_are_marked(bench) -> None:
    failed = bench.failed("x + torch.ones(4, device='meta')")
    assert failed.kind == "device"
    assert [(row.device, row.wrong) for row in failed.operands] == [
        ("cpu", ("device",)),
        ("meta", ("device",)),
    ]
    failed = bench.failed("x @ x.T.double()")
    assert failed.kind == "dtype"
    assert [(row.dtype, row.wrong) for row in failed.operands] == [
        ("float32", ("dtype",)),
        ("float64", ("dtype",)),
    ]
    failed = bench.failed("x[torch.tensor([1.5])]")
    assert [row.wrong for row in failed.operands] == [(), ("dtype",)]


def test_the_operands_of_other_errors_are_drawn_without_a_mark(bench) -> None:
    failed = bench.failed("x.backward()")
    assert (failed.kind, failed.operation, failed.text) == ("other", "backward", "")
    assert drawn(failed)[1] == {"0 x": ((3, 4), (0, 1), ())}


@pytest.mark.parametrize("source", ["1 / 0", "x.nonsense", "nothing", "x.apply_(lambda v: 1 / 0)"])
def test_an_error_that_is_not_torchs_has_no_operands(bench, source) -> None:
    assert bench.failed(source) is None


def test_nothing_is_run_again(bench) -> None:
    bench.run("calls = []\ndef loud():\n    calls.append(1)\n    return torch.ones(3)")
    failed = bench.failed("x + loud()")
    assert failed.operands[1].text == "loud()"
    bench.run("assert calls == [1]")


class_source = """
class Odd(torch.Tensor):
    @property
    def shape(self):
        raise RuntimeError("no shape")
"""


def test_an_odd_subclass_cannot_hide_the_error(bench) -> None:
    bench.run(class_source)
    ended = bench.run("x + torch.ones(3).as_subclass(Odd)")
    assert ended.error is not None and "must match the size" in ended.error.message


def test_a_predicted_refusal_is_drawn_as_the_real_one_is(bench) -> None:
    for source in ("x.T.view(-1)", "x + torch.ones(3)", "torch.cat([x, x.T])", "x[0, 0, 0]"):
        predicted = bench.explain(source).steps[-1]
        assert predicted.kind == "refused" and predicted.error == ""
        checked = bench.explain(source, run=True).steps[-1]
        assert checked.error != ""
        assert predicted.failed == checked.failed == bench.failed(source), source


def test_the_numbers_of_an_index_are_drawn(bench) -> None:
    bench.run("far = torch.tensor([0, 9])")
    checked = bench.explain("x[far]", run=True).steps[-1].failed
    assert drawn(checked)[1]["2 index"] == (("0…9",), (0,), (0,))


@pytest.mark.parametrize(
    "command, row",
    [
        (PickCommand(source="x[:, 9]"), ("2 index", ((":", "9"), (0, 1), (1,)))),
        (PickCommand(source="x[far]"), ("2 index", (("0…9",), (0,), (0,)))),
        (ReductionCommand(expression="x", dims=(2,)), ("1 dim", ((2,), (2,), (0,)))),
    ],
)
def test_indices_and_reductions_that_fail_are_drawn(bench, command, row) -> None:
    bench.run("far = torch.tensor([0, 9])")
    error = bench.ask(command).error
    name, cells = row
    assert error is not None and drawn(error.operands)[1][name] == cells
