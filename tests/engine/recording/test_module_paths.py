"""The names of modules that run, and the calls and recordings that nodes belong to."""

from __future__ import annotations

import gc
import os
import sys

import torch
from torch import nn

from engine.recording import module_paths
from engine.recording.module_paths import ModulePaths
from engine.recording.open_calls import OpenCalls
from engine.recording.recording import Recording, Recordings, find_recording
from engine.recording.tensor_arguments import (
    given_tensors,
    in_order,
    is_tensor,
    statistics,
    tensor_arguments,
    tensors_of,
    written,
)
from engine.system.user_files import is_user_file

X, Y = torch.ones(2), torch.zeros(3)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(1, 1), nn.ReLU()])


def test_a_module_is_named_after_the_one_around_it_or_by_its_class() -> None:
    net, other, alone = Net(), nn.Tanh(), Net()
    classes: dict[str, str] = {}
    paths = ModulePaths({net: "net"}, classes)
    assert paths.current == ""
    paths.enter(net)
    assert paths.current == "net"
    assert paths.of(net.layers[0]) == "net.layers.0" and paths.of(other) == "net.Tanh"
    paths.enter(net.layers[1])
    assert paths.current == "net.layers.1" and paths.of(net.layers[1]) == "net.layers.1.ReLU"
    paths.leave(net)  # an exception ended the one inside
    assert paths.current == "" and not paths.running
    paths.leave(net)
    assert [paths.of(alone), paths.of(Net()), paths.of(alone)] == ["Net", "Net 2", "Net"]
    assert classes["net"] == "Net" and classes["net.layers.0"] == "Linear"
    assert classes["Net 2.layers.1"] == "ReLU"
    with_function = ModulePaths(lambda module: "own" if module is net else "", {})
    assert with_function.of(net) == "own" and with_function.of(other) == "Tanh"


def test_a_scope_is_a_path_around_what_runs_in_it() -> None:
    net, classes = Net(), {}
    paths = ModulePaths(None, classes)
    paths.enter_scope("loss", "Objective")
    assert paths.current == "loss" and classes == {"loss": "Objective"}
    assert paths.of(net) == "loss.Net"
    paths.enter(net)
    paths.enter(net.layers[0])
    paths.leave_scope()  # and what an exception left open in it
    assert paths.current == "" and not paths.running
    paths.enter_scope("a", "A")
    paths.enter_scope("b", "B")
    paths.leave_scope()
    assert paths.current == "a"
    paths.clear()
    assert paths.current == "" and paths.of(net) == "Net"


def test_a_module_made_anew_in_each_turn_keeps_the_name_of_the_turn_before(monkeypatch) -> None:
    paths = ModulePaths(None, {})
    made = [paths.of(nn.ReLU()) for _ in range(2)]
    assert made == ["ReLU", "ReLU 2"]  # no line of the user's code ran them
    frame = sys._getframe()
    paths = ModulePaths(None, {}, lambda: frame)
    assert {paths.of(nn.ReLU()) for _ in range(3)} == {"ReLU"}
    first, second = nn.ReLU(), nn.ReLU()
    paths = ModulePaths(None, {}, lambda: frame)
    assert [paths.of(first), paths.of(second)] == ["ReLU", "ReLU 2"]
    monkeypatch.setattr(module_paths, "MAX_KNOWN", 2)
    paths = ModulePaths(None, {})
    for _ in range(5):
        paths.of(nn.ReLU())
        gc.collect()
    assert len(paths._known) <= 2


def test_of_1000_modules_those_that_are_gone_are_forgotten() -> None:
    paths, made = ModulePaths(None, {}), [nn.ReLU() for _ in range(1000)]
    for module in made:
        paths.of(module)
    assert len(paths._known) == 1000
    last = nn.Tanh()
    del module
    made.clear()
    assert paths.of(last) == "Tanh" and len(paths._known) == 1


# -- calls -----------------------------------------------------------------------------------------


def test_calls_nest_and_a_function_that_computed_nothing_is_forgotten() -> None:
    recording = Recording()
    calls = OpenCalls(recording, 4)
    calls.start()
    assert calls.innermost is None and not calls.is_full
    module = calls.begin("module", "Net", "net", ("f", 1), 2)
    function = calls.begin("function", "size", "net", None, 0)
    assert (module.parent, function.parent, function.index) == (-1, 0, 1)
    assert calls.innermost is function and (module.turn, module.place) == (2, ("f", 1))
    calls.end(function)
    assert recording.calls == [module] and calls.innermost is module
    failed = calls.begin("function", "mul", "net", None, 0)
    calls.fail(failed, ValueError("first\nsecond"))
    calls.end(failed)
    assert failed.error == "ValueError: first" and recording.calls == [module, failed]
    x = torch.ones(1, requires_grad=True)
    made = calls.begin("function", "mul", "net", None, 0)
    y = x * 2
    calls.end(made)
    calls.end(made)  # it has ended
    assert made.makes_nodes and made.holds(y.grad_fn._sequence_nr()) and not made.writes
    assert not calls.is_full
    inner = calls.begin("op", "aten::add_", "net", None, 0)
    assert calls.is_full
    calls.mark_write()
    assert inner.writes and not module.writes
    calls.end(module)
    assert calls.innermost is None and module.holds(y.grad_fn._sequence_nr())


def test_lines_inside_a_line_that_goes_on_have_ended() -> None:
    calls = OpenCalls(Recording(), 100)
    outer = calls.begin("line", "", "", ("f", 1), 1)
    module = calls.begin("module", "Net", "", None, 0)
    inner = calls.begin("line", "", "", ("g", 1), 1)
    calls.close_inside(inner)
    assert calls.innermost is inner
    calls.close_inside(None)  # a line that is not open
    assert calls.innermost is inner
    calls.close_inside(outer)
    assert calls.innermost is outer and module.end >= module.first
    calls.begin("module", "Net", "", None, 0)
    calls.close_inside(outer)
    assert calls.innermost is not outer  # the module goes on
    calls.clear()
    assert calls.innermost is None


def test_an_operator_takes_the_newest_node_that_no_other_has() -> None:
    calls = OpenCalls(Recording(), 100)
    calls.start()
    x = torch.ones(1, requires_grad=True)
    assert calls.take_node(lambda: True) is None
    first, second = x * 2, x * 3
    assert calls.take_node(lambda: False) is None
    assert calls.take_node(lambda: True) == second.grad_fn._sequence_nr()
    assert calls.take_node(lambda: True) == first.grad_fn._sequence_nr()
    assert calls.take_node(lambda: True) is None
    third = x * 4
    calls.begin("function", "f", "", None, 0)
    assert third.requires_grad and calls.take_node(lambda: True) is None


class Recorded:
    """A recording of some calls, with nodes from `first` on."""

    def __init__(self, first: int, end: int, size: int = 1) -> None:
        self.span, self._size = (first, end), size
        self.classes = {f"net{first}": "Net"}

    def __len__(self) -> int:
        return self._size


def test_the_recording_of_a_node_is_the_one_whose_span_holds_it() -> None:
    kept = [Recorded(0, 5), Recorded(7, 9), Recorded(9, 12)]
    found = [find_recording(kept, sequence) for sequence in (0, 4, 5, 6, 7, 8, 9, 11, 12)]  # type: ignore[arg-type]
    a, b, c = kept
    assert found == [a, a, None, None, b, b, c, c, None]
    assert find_recording([], 1) is None and find_recording([b], 3) is None  # type: ignore[list-item]


def test_the_newest_recordings_are_kept() -> None:
    recordings = Recordings(max_calls=10)
    sizes = (4, 0, 6, 1, 20)
    each = [Recorded(10 * place, 10 * place + 5, size) for place, size in enumerate(sizes)]
    for one in each[:3]:
        recordings.add(one)  # type: ignore[arg-type]
    assert recordings.kept == [each[0], each[2]]  # an empty one is left out
    recordings.add(each[3])  # type: ignore[arg-type]
    assert recordings.kept == [each[2], each[3]]
    recordings.running = each[4]  # type: ignore[assignment]
    assert recordings.kept == [each[2], each[3], each[4]]
    assert recordings.classes == {"net20": "Net", "net30": "Net", "net40": "Net"}
    recordings.running = each[1]  # type: ignore[assignment]
    assert recordings.kept == [each[2], each[3]]
    recordings.add(each[4])  # type: ignore[arg-type]
    assert recordings.kept == [each[4]]


# -- arguments -------------------------------------------------------------------------------------


def test_the_tensors_among_arguments() -> None:
    parameter = nn.Parameter(torch.ones(1))
    assert [is_tensor(each) for each in (X, parameter, 1, None, "x", [X])] == [
        True, True, False, False, False, False,
    ]  # fmt: skip
    found = [*tensors_of((X, 3, [Y, None], (X, [Y])), {"k": parameter, "n": [Y]})]
    assert list(map(id, found)) == list(map(id, [X, Y, X, parameter, Y]))
    written_to = torch.ones(1)
    written_to += 1
    for args in ((written_to, 2), ([written_to], 2)):
        assert given_tensors(args, {"k": parameter}) == [
            (written_to, 1, False), (parameter, 0, True),
        ]  # fmt: skip
    assert given_tensors((X,), {}) == [(X, X._version, False)]
    with torch.inference_mode():
        ((t, version, needs),) = given_tensors((torch.ones(1),), {})
    assert version is None and not needs and t.is_inference()


def test_keywords_are_put_in_the_order_of_the_schema() -> None:
    swapped = {"other": X, "input": Y}
    assert list(in_order("sub", swapped) or ()) == ["input", "other"]
    assert in_order("sub", {"other": X, "alpha": 2}) == {"other": X, "alpha": 2}
    assert in_order("no_such_function", swapped) is None
    assert in_order("sub", {"other": X, "wrong": Y}) is None


def test_the_tensors_that_an_operator_takes_and_writes() -> None:
    add, cat = torch.ops.aten.add.Tensor, torch.ops.aten.cat.default
    assert [*tensor_arguments(add, (X, Y), {})] == [X, Y]
    assert [*tensor_arguments(add, (X,), {"other": 3, "alpha": 2})] == [X, 3]
    assert [*map(id, tensor_arguments(cat, ([X, Y], 0), {}))] == [id(X), id(Y)]
    assert [*written(add, (X, Y), {})] == []
    assert [*map(id, written(torch.ops.aten.add_.Tensor, (X, Y), {}))] == [id(X)]
    out = torch.ops.aten.add.out
    assert [*map(id, written(out, (X, Y), {"out": Y}))] == [id(Y)]
    foreach = torch.ops.aten._foreach_add_.Scalar
    assert [*map(id, written(foreach, ([X, Y], 1), {}))] == [id(X), id(Y)]
    args = tuple("abcdefgh")
    assert statistics(torch.batch_norm, args) == ("d", "e")
    assert statistics(torch.instance_norm, args) == ("d", "e")
    functional = nn.functional
    assert statistics(functional.batch_norm, args) == ("b", "c")
    assert statistics(functional.instance_norm, args) == ("b", "c")
    assert statistics(torch.add, args) == ()


def test_files_of_the_user_are_neither_pythons_nor_packages_nor_ours() -> None:
    theirs = ("<cell 3>", "<stdin>", "/home/me/train.py", "train.py", f"{nn.__file__}x"[1:])
    assert all(map(is_user_file, theirs))
    ours = (module_paths.__file__, nn.__file__, os.__file__)
    generated = (
        "<frozen os>",
        "<string>",
        "<eval_with_key>.1",
        "<__array__>",
        "<torch_package_0>x",
    )
    assert not any(map(is_user_file, ("", *ours, *generated)))
