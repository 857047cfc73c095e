"""What code of the user asks of `lab`: the step at which figures are drawn, files, the subject."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from engine.console import users_lab
from engine.console.users_lab import UsersLab
from engine.system.errors import LabError


def test_a_step_that_is_given_holds_unless_its_figures_were_drawn_further_on() -> None:
    lab = UsersLab()
    with lab.counted(lambda names: 7):
        steps = [lab.add({"a": 1.0}, step) for step in (None, 9, 9, 4)]
        assert steps == [7, 9, 9, 9] and lab.add({"b": 1.0}, 2) == 2
    with lab.counted(lambda names: 12 if "a" in names else 1):
        assert lab.add({"a": 1.0}, 8) == 12  # it is behind, so the loop's own step counts
        assert lab.add({"b": 1.0}) == 2 and lab.add({"b": 1.0}, 3) == 3
        assert lab.add({"a": 1.0, "b": 1.0}, 5) == 12
    lab.begin_cell()
    assert lab.add({"a": 1.0}) == 1


def test_figures_of_a_step_of_train_are_given_to_it_and_those_around_it_stay() -> None:
    lab = UsersLab()
    with lab.logging() as outer:
        lab.log(a=1)
        with lab.logging() as inner:
            assert lab.add({"b": torch.tensor([2.5])}, 9) == 0
        lab.log(c=True)
        with pytest.raises(ValueError, match="a tensor of one element, not a tensor of"):
            lab.log(d=torch.ones(2))
        with pytest.raises(TypeError, match=r"lab\.log\(d=\.\.\.\) takes a number, not str"):
            lab.log(d="text")
    assert outer == {"a": 1.0, "c": 1.0} and list(inner) == ["b"] and inner["b"] == 2.5
    assert lab.add({"e": 1.0}) == 1


def test_a_cell_has_a_bound_of_names() -> None:
    lab = UsersLab()
    most = {f"n{number}": 1.0 for number in range(users_lab.MAX_FIGURES)}
    lab.add(most)
    lab.add(most)
    with pytest.raises(ValueError, match="at most 24 different names in a cell"):
        lab.log(one_more=1)
    lab.begin_cell()
    lab.log(one_more=1)


def test_the_subject_and_the_tensors_of_a_file(tmp_path: Path) -> None:
    net = nn.Identity()
    assert UsersLab(lambda: net).subject is net
    with pytest.raises(LabError, match="No workspace works on these variables"):
        _ = UsersLab().subject
    torch.save({"w": torch.ones(2), "m": torch.ones(1, device="meta"), "n": 1}, tmp_path / "w.pt")
    found = UsersLab().open(tmp_path / "w.pt")
    assert list(found) == ["w"] and len(found) == 1 and torch.equal(found["w"], torch.ones(2))
    assert repr(found) == "<1 tensors of w.pt>"
    for key in ("m", "n", "gone"):
        with pytest.raises(KeyError):
            found[key]
