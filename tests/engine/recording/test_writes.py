"""Which line wrote a storage last, and which operation made a view."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

from engine.console.namespace import Namespace
from engine.console.output import Output
from engine.recording.call_names import index_text
from engine.recording.recorder import Recorder
from engine.recording.writes import Making, MakingStep, OperationPlace, Writes, Written
from engine.system.control import Control
from tests.engine.namespaces import run


@pytest.fixture
def namespace() -> Namespace:
    return Namespace()


def last(namespace: Namespace, name: str) -> tuple[str, str, int | None] | None:
    where = namespace.writes.last_write(namespace.variables[name])
    return None if where is None else (where.op, where.cell, where.line)


@pytest.mark.parametrize(
    ("line", "op"),
    [
        ("x.add_(1)", "add_"),
        ("x += 1", "add_"),
        ("x[0, 1:] = 2", "[0, 1:] ="),
        ("x.T.mul_(2)", "mul_"),
        ("x[1].zero_()", "zero_"),
        ("torch.add(x, 1, out=x)", "add"),
        ("F.relu(x, inplace=True)", "relu"),
        ("nn.init.ones_(x)", "fill_"),
        ("x.detach().fill_(3)", "fill_"),
    ],
)
def test_every_way_of_writing_in_place_is_seen(namespace, line, op) -> None:
    run(namespace, "x = torch.zeros(2, 3)")
    assert last(namespace, "x") is None
    run(namespace, f"# first\n{line}")
    assert last(namespace, "x") == (op, "<cell 2>", 2)
    where = namespace.writes.last_write(namespace.variables["x"])
    assert where is not None and where.text == line


def test_an_integers_operators_are_told_as_typed(namespace) -> None:
    run(namespace, "i = torch.ones(3, dtype=torch.int64)")
    run(namespace, "i |= 2")
    assert last(namespace, "i") == ("|=", "<cell 2>", 1)


def test_reading_and_copying_are_no_writes(namespace) -> None:
    run(namespace, "x = torch.zeros(2, 3)\ny = x + 1\nz = x.clone()\nx.requires_grad_()\nx.sum()")
    assert last(namespace, "x") is None
    assert last(namespace, "y") is None


def test_a_view_and_its_base_tell_the_same_and_the_last_write_wins(namespace) -> None:
    run(namespace, "x = torch.zeros(4)\ny = x.view(2, 2)\ny.add_(1)\nx.mul_(2)")
    assert last(namespace, "y") == last(namespace, "x") == ("mul_", "<cell 1>", 4)


def test_a_write_inside_a_function_is_told_by_the_line_in_the_cell(namespace) -> None:
    run(namespace, "def f(t):\n    t.add_(1)\n\nx = torch.zeros(2)\nf(x)")
    assert last(namespace, "x") == ("add_", "<cell 1>", 2)


def test_an_optimizers_step_is_seen(namespace) -> None:
    run(
        namespace,
        "net = nn.Linear(2, 1)\nw = net.weight\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "net(torch.ones(1, 2)).sum().backward()",
    )
    run(namespace, "opt.step()")
    found = last(namespace, "w")
    assert found is not None and found[1:] == ("<cell 2>", 1)


def test_backwards_own_write_is_told_without_an_operation(namespace) -> None:
    run(namespace, "w = torch.ones(2, requires_grad=True)\nw.sum().backward()\ng = w.grad")
    run(namespace, "w.sum().backward()")
    assert namespace.variables["g"].tolist() == [2.0, 2.0]
    assert last(namespace, "g") == ("", "<cell 2>", None)


def test_what_a_cell_leaves_undone_is_still_seen(namespace) -> None:
    error, _ = namespace.run(
        "x = torch.zeros(2)\nx.add_(1)\nraise ValueError",
        "<cell>",
        Output(lambda told: None),
        Control(),
    )
    assert isinstance(error, ValueError)
    assert last(namespace, "x") == ("add_", "<cell 1>", 2)


def test_views_remember_the_operation_and_the_parent_even_when_it_is_gone(namespace) -> None:
    run(namespace, "x = torch.zeros(2, 3)\ny = x.T[1:]\na, b = x.chunk(2)\nd = x.detach()")
    made = {name: namespace.writes.making(namespace.variables[name]) for name in "xyabd"}
    assert made["x"] is None
    assert made["y"].where.op == "[1:]" and made["y"].earlier.where.op == "T"
    assert made["y"].earlier.parent() is namespace.variables["x"]
    assert made["a"].where.op == made["b"].where.op == "chunk"
    assert made["d"].where.op == "detach"


def test_a_tensor_that_returns_itself_is_not_made_by_it(namespace) -> None:
    run(namespace, "x = torch.zeros(4).view(2, 2)\ny = x.contiguous()\nx.add_(1)")
    making = namespace.writes.making(namespace.variables["y"])
    assert making is not None and making.where.op == "view"


def test_nothing_is_kept_alive(namespace) -> None:
    run(namespace, "x = torch.zeros(4)\ny = x[1:]\nx.add_(1)")
    storage = torch.multiprocessing.reductions.StorageWeakRef(
        namespace.variables["x"].untyped_storage()
    )
    run(namespace, "del x, y")
    gc.collect()
    assert storage.expired()
    run(namespace, "")
    assert not namespace.writes._seen and not namespace.writes._made


def test_cells_compute_what_they_would_without_being_watched(namespace) -> None:
    run(
        namespace,
        "torch.manual_seed(0)\nnet = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU())\n"
        "out = net(torch.rand(5, 3))\nout.sum().backward()\n"
        "double = torch.func.vmap(lambda t: t * 2)(torch.ones(3))\n"
        "grad = torch.func.grad(lambda t: (t ** 2).sum())(torch.ones(3))\n"
        "with torch.inference_mode():\n    quiet = torch.zeros(2); quiet.add_(1)\n"
        "traced = torch.fx.symbolic_trace(nn.ReLU())\n"
        "torch.set_default_device('meta'); m = torch.zeros(2); torch.set_default_device(None)",
    )
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU())
    out = net(torch.rand(5, 3))
    assert torch.equal(namespace.variables["out"], out)
    assert namespace.variables["double"].tolist() == [2.0] * 3
    assert namespace.variables["grad"].tolist() == [2.0] * 3
    assert namespace.variables["m"].device.type == "meta"
    assert torch.overrides._get_current_function_mode() is None


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (0, "0"),
        (slice(1, None, 2), "1::2"),
        ((0, Ellipsis, None, slice(None)), "0, ..., None, :"),
        (torch.tensor([1]), "…"),
        ((slice(None, -1), [0, 1]), ":-1, …"),
    ],
)
def test_indices_are_told_as_they_are_typed(index, text) -> None:
    assert index_text(index) == text


def test_a_recorder_with_all_values_sees_writes_and_views_too(namespace) -> None:
    run(namespace, "x = torch.zeros(2, 3)\nkept = torch.zeros(2)")
    with namespace.recorded_by(Recorder):
        run(namespace, "kept.sum()\nx.add_(1)\nrow = x[0]\ncopy = kept + 1")
    assert last(namespace, "x") == ("add_", "<cell 2>", 2) == last(namespace, "row")
    assert last(namespace, "kept") is None and last(namespace, "copy") is None
    made = namespace.writes.making(namespace.variables["row"])
    assert made is not None and namespace.writes.making(namespace.variables["copy"]) is None


def test_a_view_of_before_that_is_written_to_is_not_made_by_that(namespace) -> None:
    namespace.records = False
    run(namespace, "x = torch.zeros(2, 2)\nv = x[0]")
    namespace.records = True
    with namespace.recorded_by(Recorder):
        run(namespace, "v.add_(1)")
    assert namespace.writes.making(namespace.variables["v"]) is None
    assert last(namespace, "v") == ("add_", "<cell 2>", 1)


# -- told by hand ----------------------------------------------------------------------------------

AT = OperationPlace("view", "<cell 1>", 2)


def chain(writes: Writes, t: torch.Tensor) -> list[tuple[int, bool]]:
    """The steps that led to a tensor: the depth of each, and whether its parent lives."""
    made, found = writes.making(t), []
    while made is not None:
        found.append((made.depth, made.parent() is not None))
        made = made.earlier
    return found


def test_a_chain_of_33_views_is_remembered_and_then_another_begins() -> None:
    writes, views = Writes(), [torch.zeros(2)]
    for _ in range(35):
        view = views[-1].view(2)
        writes.made(view, views[-1], AT)
        views.append(view)
    depths = [len(chain(writes, view)) for view in views]
    assert depths == [0, *range(1, 34), 1, 2]
    assert [depth for depth, _ in chain(writes, views[33])] == [*range(32, -1, -1)]
    last = views[3]
    views.clear()
    gc.collect()
    assert chain(writes, last) == [(2, False), (1, False), (0, True)]  # the base lives in its views
    assert writes.making(torch.zeros(1)) is None


def test_how_a_result_came_about_is_told_for_another_call_of_its_kind() -> None:
    writes = Writes()
    given = torch.zeros(2, 2)
    outside = torch.zeros(4)
    row, part = given[0], given[0][:1]
    writes.made(row, given, AT)
    writes.made(part, row, OperationPlace("slice", "<cell 1>", 3))
    other = outside[1:]
    writes.made(other, outside, AT)
    steps = writes.making_of(part, [given, part])
    assert isinstance(steps, tuple) and not isinstance(steps, Making)
    assert [(step.at.op, step.parent) for step in steps][1] == ("view", 0)
    assert steps[0].at.op == "slice" and steps[0].parent() is row  # pyright: ignore
    whole = writes.making_of(other, [given])
    assert isinstance(whole, Making) and whole.parent() is outside
    assert writes.making_of(part, [row, part]) == (MakingStep(steps[0].at, 0),)
    assert writes.making_of(given, [given]) is None
    again, new, third = torch.zeros(2, 2), torch.zeros(1), torch.zeros(1)
    writes.made_again(third, whole, [again, third])
    assert writes.making(third) is whole
    writes.made_again(new, steps, [again, new])
    made = writes.making(new)
    assert made is not None and (made.at.op, made.depth) == ("slice", 1)
    assert made.earlier is not None and made.earlier.parent() is again
    assert made.earlier.earlier is None


def test_a_write_that_no_function_showed_is_found_when_the_cell_ends() -> None:
    writes = Writes()
    t, untouched = torch.zeros(2), torch.zeros(2)
    t.add_(1)
    known = [t, untouched]
    with writes.watch("<cell 1>", lambda: known):
        pass
    assert writes.last_write(t) is None  # it was like this when it was seen first
    with writes.watch("<cell 2>", lambda: known) as watch:
        t.add_(1)
        watch.wrote(t, torch.Tensor.add_, (t, 1))
    told = writes.last_write(t)
    assert told is not None and (told.op, told.cell, told.line) == ("add_", "<cell 2>", None)
    with writes.watch("<cell 3>", lambda: known):
        t.mul_(2)
    told = writes.last_write(t[:1])
    assert told is not None and (told.op, told.cell, told.line) == ("", "<cell 3>", None)
    with writes.watch("<cell 4>", lambda: known):
        pass
    told = writes.last_write(t)
    assert told is not None and told.cell == "<cell 3>" and writes.last_write(untouched) is None


def test_what_repeats_is_looked_at_once_when_the_cell_ends() -> None:
    writes = Writes()
    t, gone = torch.zeros(2), torch.zeros(2)
    written = [Written(weakref.ref(t), AT), Written(weakref.ref(gone), AT)]
    del gone
    with writes.watch("<cell 1>", lambda: [t]) as watch:
        watch.wrote_again("call", written)
        t.add_(1)
    told = writes.last_write(t)
    assert told is not None and (told.op, told.cell, told.line) == ("view", "<cell 1>", 2)
    with writes.watch("<cell 2>", lambda: [t]):
        t.add_(1)
    told = writes.last_write(t)
    assert told is not None and (told.op, told.cell) == ("", "<cell 2>")


def test_long_lines_are_cut_to_200_characters(namespace) -> None:
    run(namespace, f"x = torch.zeros(1)\nx.add_(1)  # {'y' * 300}")
    told = namespace.writes.last_write(namespace.variables["x"])
    assert told is not None and told.text == f"x.add_(1)  # {'y' * 300}"[:200]
