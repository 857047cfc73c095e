"""What is drawn of torch's real errors: which dimensions of which operands do not fit."""

from __future__ import annotations

import pytest

from engine.protocol import FailedOperands, PickCommand, ReductionCommand


def drawn(failed: FailedOperands | None) -> tuple[str, dict[str, tuple]]:
    """The kind, and for each row its cells, their columns and those that fail."""
    assert failed is not None
    return failed.kind, {
        f"{number} {row.text}": (row.cells, row.columns, row.failing)
        for number, row in enumerate(failed.operands)
    }


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
def test_an_error_that_is_not_torchs_has_no_operands(bench, source, caplog) -> None:
    assert bench.failed(source) is None
    assert not caplog.records  # it was read, and found to be another's


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
    bench.run("far = torch.tensor([0, 9])")
    for source in (
        "x.T.view(-1)", "x + torch.ones(3)", "torch.cat([x, x.T])", "x[0, 0, 0]", "x[far]",
        "x.gather(1, far[None])", "x @ x", "x.sum(2)", "x[far.bool()]",
    ):  # fmt: skip
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
