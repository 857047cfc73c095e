"""What a short expression names, and what a cell leaves for the next one: modes and the folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from engine.console.left_by_cells import UsersModes, WorkingFolder
from engine.console.resolve import UnknownName, resolve
from engine.console.state import ConsoleState
from engine.system.errors import LabError


class Careless:
    @property
    def broken(self) -> int:
        raise RuntimeError("not today")


LEAF = torch.arange(12.0).view(3, 4).requires_grad_()
NAMES: dict[str, object] = {
    "x": LEAF, "made": LEAF * 2, "xs": [1, [2, 3]], "d": {"a": {-1: "in"}, None: 5, (1, 2): 6},
    "of": SimpleNamespace(inner=SimpleNamespace(w=7)), "own": Careless(),
}  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (" xs ", [1, [2, 3]]), ("xs[1][-1]", 3), ("xs[0:1]", [1]), ("xs[::-1]", [[2, 3], 1]),
        ("d['a'][-1]", "in"), ("d[None]", 5), ("d[1, 2]", 6), ("of.inner.w", 7),
        ("xs[:1]", [1]), ("x.shape[0]", 3),
    ],
)  # fmt: skip
def test_a_name_with_attributes_and_indices_is_found(expression: str, value: object) -> None:
    assert resolve(expression, NAMES) == value


def test_a_view_that_is_looked_at_has_no_node() -> None:
    found = resolve("x[1:, None, ..., -1]", NAMES)
    assert isinstance(found, torch.Tensor) and found.grad_fn is None
    assert torch.equal(found, LEAF[1:, None, ..., -1])
    assert resolve("x", NAMES) is LEAF and torch.is_grad_enabled()


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("x +", "`x +` is not the name of a value"), ("x\0", "is not the name of a value"),
        ("x + 1", "`x + 1` computes something"), ("f(x)", "computes something"),
        ("3", "computes something"), ("xs[f(1)]", "`f(1)` in `xs[f(1)]` is not a"),
        ("xs[y:]", "`y` in `xs[y:]` is not a constant"), ("xs[9]", "cannot be read: IndexError"),
        ("of.gone", "`of.gone` cannot be read"), ("own.broken", "cannot be read: not today"),
        ("gone.a", "no variable named `gone`"), ("x.grad", "`x` has no gradient yet"),
        ("made.grad", "`made` is computed from other tensors, and its gradient is not kept"),
    ],
)  # fmt: skip
def test_what_is_no_name_is_told(expression: str, why: str) -> None:
    with pytest.raises(LabError) as told:
        resolve(expression, NAMES)
    assert why in str(told.value)


def test_gradients_that_are_there_are_found() -> None:
    leaf = torch.ones(2, requires_grad=True)
    made = leaf * 2
    made.retain_grad()
    made.sum().backward()
    names = {"leaf": leaf, "made": made, "other": SimpleNamespace(grad=None)}
    assert resolve("leaf.grad", names) is leaf.grad and resolve("made.grad", names) is made.grad
    assert resolve("other.grad", names) is None
    with pytest.raises(UnknownName) as told:
        resolve("lost", {})
    assert told.value.name == "lost" and "Make it in the console" in told.value.hint
    assert str(UnknownName("a", " here", "Try b.")).startswith(
        "There is no variable named `a` here"
    )
    assert UnknownName("a", " here", "Try b.").hint == "Try b."


# -- modes ---------------------------------------------------------------------------------------


@pytest.fixture
def plain_modes() -> Iterator[None]:
    yield
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)


def modes() -> tuple[bool, torch.dtype, str]:
    return torch.is_grad_enabled(), torch.get_default_dtype(), str(torch.get_default_device())


@pytest.mark.usefixtures("plain_modes")
def test_modes_that_a_cell_sets_hold_for_the_next_one_and_not_for_the_engine() -> None:
    users, engine = UsersModes(), (True, torch.float32, "cpu")
    own = (False, torch.float64, "meta")
    with users.users():
        assert modes() == engine
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        with users.engines():  # the device is left: to set it takes time
            assert modes() == (True, torch.float32, "meta")
        assert modes() == own
    assert modes() == engine
    with users.defaults():
        assert modes() == (True, torch.float64, "meta")
    assert modes() == engine
    with pytest.raises(KeyError), users.users():
        assert modes() == own
        torch.set_default_device(None)
        raise KeyError
    assert modes() == engine
    with users.users():
        assert modes() == (False, torch.float64, "cpu")
        assert getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None) is None


# -- the folder ------------------------------------------------------------------------------------


def test_cells_run_in_their_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, users, other = (tmp_path / name for name in ("own", "users", "other"))
    for each in (own, users, other):
        each.mkdir()
    monkeypatch.chdir(own)
    folder = WorkingFolder()
    with folder.current():
        assert Path.cwd() == own
    monkeypatch.chdir(other)
    with folder.current():  # the engine's own, wherever that is
        assert Path.cwd() == other
    monkeypatch.chdir(own)
    folder.enter(str(users))
    with folder.current():
        assert Path.cwd() == users
    assert Path.cwd() == own
    with folder.current():
        assert Path.cwd() == users
        os.chdir(other)
    with folder.current():
        assert Path.cwd() == other
        os.chdir(own)  # chosen by the user: it holds when the engine's own is another
    monkeypatch.chdir(tmp_path)
    with folder.current():
        assert Path.cwd() == own
    folder.enter(str(tmp_path / "gone"))
    with (
        pytest.raises(LabError, match=r"gone cannot be entered: No such file") as told,
        folder.current(),
    ):
        pass
    assert told.value.hint.endswith(f"start from {tmp_path}.")
    with folder.current():  # a broken folder is not tried again
        assert Path.cwd() == tmp_path
    folder.enter(str(other))
    with folder.current():
        other.rmdir()
    assert Path.cwd() == tmp_path


# -- whose variables -------------------------------------------------------------------------------


def test_a_new_namespace_keeps_journal_folder_and_the_recording_switch() -> None:
    state = ConsoleState(canvas="the canvas", named=dict, subject=lambda: torch.nn.Identity())
    old = state.namespace
    old.variables["x"] = 1
    old.records = False
    state.begin_namespace()
    new = state.namespace
    assert new is not old and "x" not in new.variables and not new.records
    assert (new.journal, new.folder) == (old.journal, old.folder)
    assert new.variables["canvas"] == "the canvas" and state.of("") is new
    with pytest.raises(LabError, match="The example's tensors are gone"):
        state.of("trace")
    example = state.begin_example("trace")
    assert state.of("trace") is example is not new and example.journal is not new.journal
    held = SimpleNamespace(namespace=example)
    with pytest.raises(KeyError), state.held_at(held, "its output"):  # type: ignore[arg-type]
        assert state.namespace is example and state.held == (held, "its output")
        raise KeyError
    assert state.namespace is new and state.held is None
