"""Which calls of a module are looked into, told one by one; and a recording that is folded."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine.recording.argument_values import tiny_values
from engine.recording.gradient_cuts import GradientCuts
from engine.recording.light.light_recording import LightRecording
from engine.recording.light.patterns import Alike, Noted, Pattern, Repeat
from engine.recording.light.repeats import Repeats
from engine.system.private_torch import next_sequence

PLACE = ("<cell 1>", 4)


class Loop:
    """Calls of a module that doubles what it is given, `nodes` times."""

    def __init__(self, looks: Callable[[], bool] | None = None) -> None:
        self.noted: deque[Repeat] = deque()
        self.repeats = Repeats(self.noted, GradientCuts(), None, looks)
        self.module = nn.Linear(9, 9)
        self.alike: Alike | None = None

    def call(
        self,
        nodes: int = 1,
        name: str = "mul",
        returns: Callable[[Tensor], Any] = lambda y: y,
        during: Callable[[Tensor], object] = lambda x: None,
        steps: int = 0,
        is_whole_left: bool = True,
        is_small: bool = False,
    ) -> str:
        """How it was taken."""
        x = torch.ones(3, 9, requires_grad=True)
        begun = self.repeats.begin(self.module, PLACE, (x,), {})
        if begun is None:
            return "not compared"
        self.alike, given, repeat = begun
        assert [id(each) for each in given] == [id(x)]
        whole = None if repeat else self.repeats.begin_whole(self.alike, given, (0, 0), 0)
        first = next_sequence()
        y, small = x, None
        for _ in range(nodes):
            y = y * 2
        if is_small:
            small = tiny_values(y.sum())
        during(x)
        result, end = returns(y), next_sequence()
        if repeat is not None:
            assert self.repeats.is_running
            self.repeats.is_running, repeat.end = False, next_sequence()
            self.repeats.end(repeat, given, result)
            return "noted"
        assert whole is not None and not self.repeats.is_running
        noted: list[Noted] = [(first, end, name, "net", PLACE, (), small)]
        left = noted if is_whole_left else None
        self.repeats.learn(whole, self.module, "net", left, steps, result)
        return "whole"


def test_eight_calls_are_looked_into_and_then_each_128th() -> None:
    loop = Loop()
    taken = [loop.call() for _ in range(260)]
    whole = [number for number, each in enumerate(taken, 1) if each == "whole"]
    assert whole == [*range(1, 9), 128, 256] and taken.count("noted") == 250
    assert len(loop.noted) == 250 and all(each.is_as_expected for each in loop.noted)


def test_who_wants_to_look_says_which_calls_are_looked_into() -> None:
    wanted = False
    loop = Loop(lambda: wanted)
    assert [loop.call() for _ in range(70)] == ["whole"] * 8 + ["noted"] * 62
    wanted = True
    assert [loop.call() for _ in range(3)] == ["whole"] * 3


def test_a_call_that_was_other_than_expected_is_learned_anew_and_three_end_it() -> None:
    loop = Loop()
    for misses in (1, 2, 3):
        assert [loop.call() for _ in range(10)] == ["whole"] * 8 + ["noted"] * 2
        assert loop.call(nodes=2) == "noted"
        assert loop.alike is not None and loop.alike.misses == misses
        assert loop.alike.pattern is None
    assert loop.call() == "not compared"


def test_so_is_one_that_gives_more_tensors() -> None:
    loop = Loop()
    for _ in range(9):
        loop.call()
    assert loop.call(returns=lambda y: (y, y)) == "noted"
    assert loop.alike is not None and loop.alike.misses == 1 and loop.call() == "whole"


def test_a_pattern_stays_while_the_same_functions_run() -> None:
    loop = Loop()
    for _ in range(127):
        loop.call()
    assert loop.alike is not None
    before = loop.alike.pattern
    assert isinstance(before, Pattern) and before.end - before.first == 1
    assert loop.call() == "whole" and loop.alike.pattern is before
    for _ in range(127):
        loop.call()
    assert loop.call(name="add") == "whole"
    after = loop.alike.pattern
    assert after is not None and after is not before and after.noted[0][2] == "add"


def held(loop: Loop, count: int) -> Callable[[Tensor], object]:
    """A call that keeps other tensors in a list of so many each time."""

    def keep(x: Tensor) -> None:
        loop.module.kept = [torch.zeros(1) for _ in range(count)]  # pyright: ignore

    return keep


def writes(x: Tensor) -> None:
    with torch.no_grad():
        x.add_(1)


@pytest.mark.parametrize(
    ("what", "is_unfit"),
    [
        ({}, False),
        ({"nodes": 5000}, False),
        ({"nodes": 5001}, True),
        ({"steps": 1}, True),
        ({"during": writes}, True),
        ({"returns": lambda y: (y, slice(None))}, True),
        ({"returns": lambda y: [y, {"a": None, "b": (1, 2.0, "c", True)}]}, False),
        ({"is_small": True}, True),
        ({"keeps": 100}, True),
        ({"keeps": 101}, False),  # more are not looked at
        ({"hook": "register_forward_hook"}, True),
        ({"hook": "register_forward_pre_hook"}, True),
    ],
)
def test_calls_of_which_something_would_be_lost_are_always_looked_into(
    what: dict[str, Any], is_unfit: bool
) -> None:
    loop = Loop()
    if "keeps" in what:
        what = {"during": held(loop, what["keeps"])}
    hook = what.get("hook")
    for number in range(10):
        if hook is not None and number == 1:
            getattr(loop.module, hook)(lambda *_: None)
        loop.call(**({} if hook else what))
    assert loop.alike is not None and loop.alike.is_unfit is is_unfit
    assert bool(loop.noted) is not is_unfit


def test_of_a_call_of_which_not_all_is_left_nothing_is_learned() -> None:
    loop = Loop()
    assert [loop.call(is_whole_left=False) for _ in range(20)] == ["whole"] * 20
    assert loop.alike is not None and not loop.alike.is_unfit and loop.alike.pattern is None
    assert (loop.call(), loop.call()) == ("whole", "noted")


# -- which calls are alike -------------------------------------------------------------------------

X = torch.ones(2, 3)


def nested(depth: int, value: object) -> object:
    for _ in range(depth):
        value = [value]
    return value


def found(*calls: tuple[tuple, dict[str, Any]]) -> list[tuple[int, int]]:
    """For each call the number of the first one that it is like, and how many tensors it has."""
    repeats, module = Repeats(deque(), GradientCuts(), None, None), nn.Linear(3, 3)
    seen: list[Alike] = []
    told = []
    for args, kwargs in calls:
        answer = repeats.begin(module, PLACE, args, kwargs)
        if answer is None:
            told.append((-1, -1))
            continue
        alike, given, _ = answer
        if all(alike is not each for each in seen):
            seen.append(alike)
        told.append((next(i for i, each in enumerate(seen) if each is alike), len(given)))
    return told


def test_calls_are_alike_whose_tensors_words_and_flags_are() -> None:
    assert found(
        ((X,), {}),
        ((X + 1,), {}),
        ((torch.ones(3, 2),), {}),
        ((X.double(),), {}),
        ((torch.ones(2, 3, requires_grad=True),), {}),
        ((nn.Parameter(torch.ones(2, 3)),), {}),
        ((X, 1), {}),
        ((X, 2), {}),
        ((X, True), {}),
        ((X, False), {}),
        ((X,), {"mode": "a"}),
        ((X,), {"mode": "b"}),
        ((X,), {"other": X}),
        ((X, None), {}),
        (([X, X],), {}),
        (((X, X),), {}),
    ) == [
        (0, 1), (0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (5, 1), (6, 1), (7, 1),
        (8, 1), (9, 1), (10, 2), (11, 1), (12, 2), (13, 2),
    ]  # fmt: skip


def test_tensors_are_found_in_four_nestings_and_those_of_other_classes_not_compared() -> None:
    other = X.as_subclass(type("Other", (Tensor,), {}))
    assert found(
        ((nested(4, X),), {}), ((nested(5, X),), {}), ((nested(5, 1),), {}), ((other,), {}),
        (([other],), {}), ((nested(4, other),), {}), ((nested(5, other),), {}),
    ) == [(0, 1), (1, 0), (1, 0), (-1, -1), (-1, -1), (-1, -1), (1, 0)]  # fmt: skip


def test_lines_modes_and_gradients_are_told_apart() -> None:
    repeats, module = Repeats(deque(), GradientCuts(), None, None), nn.Linear(3, 3)

    def alike(line: int = 1) -> Alike:
        answer = repeats.begin(module, ("f", line), (X,), {})
        assert answer is not None
        return answer[0]

    first = alike()
    assert alike() is first and alike(2) is not first
    with torch.no_grad():
        assert alike() is not first
    module.eval()
    assert alike() is not first
    module.train()
    assert alike() is first and (first.title, first.place) == ("Linear", ("f", 1))


def test_64_ways_to_call_a_module_are_told_apart() -> None:
    shapes = [((torch.ones(n, 3),), {}) for n in range(1, 66)]
    told = found(*shapes, shapes[0], shapes[63], shapes[64])
    assert told == [*((n, 1) for n in range(64)), (-1, -1), (0, 1), (63, 1), (-1, -1)]


def test_a_compiled_module_or_one_with_hooks_is_never_told_from_another_call() -> None:
    for add in ("register_forward_hook", "register_forward_pre_hook"):
        repeats, module = Repeats(deque(), GradientCuts(), None, None), nn.Sequential(nn.ReLU())
        getattr(module[0], add)(lambda *_: None)
        assert repeats.begin(module, PLACE, (X,), {}) is None


# -- a recording that is folded --------------------------------------------------------------------


def noted(first: int, name: str = "mul", line: int = 1) -> Noted:
    return first, first + 1, name, "net", ("f", line), (), None


def test_of_the_older_half_the_first_two_turns_of_each_line_stay() -> None:
    recording = LightRecording(8)
    recording.noted += [noted(n, line=1 + n % 2) for n in range(8)]
    assert len(recording) == 8 and not recording.is_folded
    recording.fold()
    assert recording.is_folded and recording.dropped == 4 and len(recording) == 8
    recording.noted += [noted(n, line=1 + n % 2) for n in range(8, 12)]
    recording.fold()
    assert recording.dropped == 8
    assert [call.first for call in recording.calls] == [0, 1, 2, 3, 8, 9, 10, 11]
    recording.noted += [noted(n, name="exp") for n in range(12, 17)]
    recording.fold()  # four were kept, half of what it may hold: no more are
    assert [call.first for call in recording.calls] == [0, 1, 2, 3, *range(12, 17)]
    assert recording.dropped == 12


def test_calls_that_were_asked_for_before_a_fold_are_told_without_those_that_are_gone() -> None:
    recording = LightRecording(8)
    recording.noted += [noted(n) for n in range(8)]
    assert len(recording.calls) == 8 and recording.call_of(3) is not None
    recording.fold()
    assert [call.first for call in recording.calls] == [0, 1, 4, 5, 6, 7]
    assert recording.call_of(3) is None and recording.span[0] == 0


def test_calls_are_found_by_their_nodes_in_order_and_repeats_beside_them() -> None:
    recording = LightRecording()
    assert recording.span == (0, 0) and recording.calls_of([0, 5]) == [None, None]
    assert recording.chain_of(3) == []
    recording.noted += [(6, 9, "add", "net", ("f", 2), (), None), noted(4, "mul")]
    pattern = Pattern(0, 2, "net", [noted(0, "sin")], (), {}, (), [])
    alike = Alike("Net", ("f", 1), pattern=pattern)
    for first in (12, 20):
        repeat = Repeat(alike, pattern, (), first, GradientCuts())
        repeat.end = first + 2
        recording.repeats.append(repeat)
    recording.end = 30
    assert recording.span == (4, 30) and len(recording) == 2
    names = [call and call.name for call in recording.calls_of(range(3, 23))]
    assert names == [
        None, "mul", None, "add", "add", "add", None, None, None, "sin", "Net", None, None, None,
        None, None, None, "sin", "Net", None,
    ]  # fmt: skip
    assert recording.call_of(4) is recording.call_of(4)
    assert [call.name for call in recording.chain_of(20)] == ["sin"]
    recording.noted.append(noted(10, "exp"))
    assert [call.name for call in recording.calls] == ["mul", "add", "exp"]
    found_now = recording.call_of(10)
    assert found_now is not None and found_now.name == "exp"


def test_what_runs_after_a_call_was_broken_off_is_not_known() -> None:
    recording = LightRecording()
    recording.break_off()
    pattern = Pattern(0, 2, "net", [noted(0, "sin"), noted(1, "cos")], (), {}, (), [])
    first = next_sequence()
    repeat = Repeat(Alike("Net", None, pattern=pattern), pattern, (), first, GradientCuts())
    recording.repeats.append(repeat)
    made = torch.ones(1, requires_grad=True) * 2
    recording.break_off()
    more = made * 2
    recording.break_off()
    assert more.requires_grad and repeat.known_to == first + 1
    names = [call and call.name for call in recording.calls_of([first, first + 1])]
    assert names == ["sin", "Net"]
    ended = Repeat(Alike("Net", None, pattern=pattern), pattern, (), first, GradientCuts())
    ended.end = first + 2
    recording.repeats.append(ended)
    recording.break_off()
    assert ended.known_to == sys.maxsize
