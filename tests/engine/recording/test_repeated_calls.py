"""Calls that are told from an earlier one, facts of objects that live, and frames of the user's."""

from __future__ import annotations

import gc
import sys
import weakref
from types import FrameType

import pytest
import torch

from engine.recording import remembered
from engine.recording.argument_values import TinyValues
from engine.recording.gradient_cuts import GradientCuts
from engine.recording.light.patterns import Alike, Noted, Pattern, Repeat
from engine.recording.recording import Call, GradientCut
from engine.recording.remembered import Remembered
from engine.system import user_files
from engine.system.user_files import UsersFrames, variables_of

X = torch.ones(1)
OLD = torch.ones(1)
CUT = GradientCut("input", weakref.ref(OLD), ("f", 1))
OWN = GradientCut("detach", weakref.ref(X), ("f", 3))
NOTED: list[Noted] = [
    (100, 101, "linear", "net.a", ("f", 2), (CUT, True, OWN), None),
    (102, 104, "mul", "net.b", ("f", 3), (), None),
]
PATTERN = Pattern(
    100, 105, "net", NOTED, (None, CUT), {0: "AddmmBackward0", 3: "MulBackward0"}, (), []
)


def repeat(given: torch.Tensor, first: int = 500) -> Repeat:
    cuts = GradientCuts()
    alike = Alike("Net", ("f", 1), pattern=PATTERN)
    found = Repeat(alike, PATTERN, (weakref.ref(X), weakref.ref(given)), first, cuts)
    found.tiny = ((503, TinyValues(2.0, torch.Size([]), torch.float32)),)
    return found


def told(call: Call) -> tuple:
    return call.kind, call.name, call.module, call.first, call.end, call.is_like, call.node


def test_a_node_of_a_call_that_is_like_another_is_told_from_that_one() -> None:
    found = repeat(torch.zeros(1))
    assert told(found.call_of(500)) == (
        "function", "linear", "net.a", 500, 501, True, "AddmmBackward0",
    )  # fmt: skip
    assert told(found.call_of(502)) == ("function", "mul", "net.b", 502, 504, True, "")
    assert told(found.call_of(503))[-1] == "MulBackward0"
    tiny = found.call_of(503).tiny
    assert tiny is not None and tiny.numbers == 2.0 and found.call_of(502).tiny is None
    assert found.call_of(500).place == ("f", 2)
    of_module = ("module", "Net", "net", 500, sys.maxsize, False, "")
    for unknown in (501, 504, 499):  # a node between the calls, after them, before them
        assert told(found.call_of(unknown)) == of_module, unknown
    found.known_to = 502
    assert told(found.call_of(500))[1] == "linear" and told(found.call_of(502)) == of_module
    found.known_to = sys.maxsize
    found.end = 505
    assert found.is_as_expected and told(found.call_of(500))[1] == "linear"
    found.end = 506
    assert not found.is_as_expected and told(found.call_of(500))[:2] == ("module", "Net")


def test_why_an_argument_requires_no_grad_is_told_of_the_tensor_of_this_call() -> None:
    needs = torch.ones(1, requires_grad=True)
    cut, required, own = repeat(needs).call_of(500).slots
    assert isinstance(cut, GradientCut) and cut.tensor() is needs and cut.reason == "input"
    assert required is True and own is OWN
    plain = torch.zeros(1)
    found = repeat(plain)
    now, _, _ = found.call_of(500).slots
    assert isinstance(now, GradientCut) and now.tensor() is plain


def test_a_pattern_is_of_a_call_that_ran_the_same_functions() -> None:
    shifted = [(n[0] + 7, n[1] + 7, *n[2:]) for n in NOTED]
    assert PATTERN.is_of(5, shifted) and PATTERN.is_of(5, shifted[::-1])  # type: ignore[arg-type]
    assert not PATTERN.is_of(4, shifted) and not PATTERN.is_of(5, shifted[:1])  # type: ignore[arg-type]
    for place, other in ((2, "relu"), (3, "net.c"), (4, ("f", 9))):
        changed = [*shifted[0][:place], other, *shifted[0][place + 1 :]]
        assert not PATTERN.is_of(5, [tuple(changed), shifted[1]])  # type: ignore[arg-type, list-item]


# -- facts of objects ------------------------------------------------------------------------------


class Thing:
    pass


def test_facts_are_kept_while_their_object_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "MIN_LIMIT", 3)
    facts: Remembered[int] = Remembered()
    kept = [Thing() for _ in range(3)]
    for number, thing in enumerate(kept):
        facts.set(thing, number)
    assert [facts.get(thing) for thing in kept] == [0, 1, 2] and facts.get(Thing()) is None
    facts.set(kept[0], 5)
    assert facts.get(kept[0]) == 5 and len(facts) == 3
    for _ in range(20):
        facts.set(Thing(), 0)
        gc.collect()
    assert len(facts) <= 6 and facts.get(kept[2]) == 2
    facts.forget_the_dead()
    assert len(facts) == 3
    facts.forget(kept[1])
    facts.forget(kept[1])
    assert facts.get(kept[1]) is None and len(facts) == 2


# -- frames ----------------------------------------------------------------------------------------


def test_the_innermost_line_of_the_users_is_found_through_ours(monkeypatch) -> None:
    def users(name: str) -> bool:
        asked.append(name)
        return name.startswith("<cell")

    asked: list[str] = []
    frames = UsersFrames(users)
    assert frames.innermost() is None and frames.place() is None
    places, found = [], []

    def ours() -> None:
        places.append(frames.place())
        innermost = frames.innermost()
        found.append(innermost and innermost.f_code.co_filename)

    code = compile("ours()\n\nfor _ in range(2):\n    ours()", "<cell 1>", "exec")
    exec(code, {"ours": ours})
    assert places == [("<cell 1>", 1), ("<cell 1>", 4), ("<cell 1>", 4)]
    assert places[1] is places[2] and set(found) == {"<cell 1>"}
    assert len(asked) == len(set(asked))  # each file once
    monkeypatch.setattr(user_files, "MAX_INSTRUCTIONS", 2)
    exec(compile("ours(); ours()\nours()\nours()", "<cell 2>", "exec"), {"ours": ours})
    assert places[3:] == [("<cell 2>", 1), ("<cell 2>", 1), ("<cell 2>", 2), ("<cell 2>", 3)]
    assert len(frames._at) <= 2


def test_variables_of_a_frame_keep_nothing_alive() -> None:
    seen: dict[str, object] = {}

    def look(frame: FrameType) -> None:
        seen.update(variables_of(frame))

    def users() -> None:
        thing = Thing()
        of_it.append(weakref.ref(thing))
        look(sys._getframe())
        seen.clear()
        del thing
        gone.append(of_it[0]() is None)
        mine = locals()
        mine["added"] = 1
        look(sys._getframe())
        kept.append(mine.get("added"))

    of_it: list[weakref.ref] = []
    gone: list[bool] = []
    kept: list[object] = []
    users()
    assert gone == [True] and kept == [1]
    assert {"mine", "kept"} <= seen.keys()
