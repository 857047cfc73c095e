"""Weights of a file are loaded into any subject, as far as the user has agreed."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from app.templates import load_template
from engine.handlers.subjects.find import find_subject
from engine.project.document import Model, TrainingSetup
from engine.project.subject import CanvasSubject, ConsoleSubject
from engine.protocol import FitSnapshot, KeyFit, LoadWeightsCommand, RunCellCommand
from engine.system.errors import LabError


@pytest.fixture
def model(lab, ask) -> nn.Module:
    """The console's module `model`."""
    ask(RunCellCommand(source="model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))"))
    return lab.console.namespace.variables["model"]


def fit(ask, path, **changes) -> FitSnapshot:
    fields = {"subject": ConsoleSubject("model"), "model": Model(), "training": TrainingSetup()}
    (answer,) = ask(LoadWeightsCommand(path=str(path), **{**fields, **changes}))
    assert isinstance(answer, FitSnapshot)
    return answer


def test_a_file_that_fits_is_loaded_bit_for_bit(ask, model, tmp_path):
    source = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)).state_dict()
    source["extra"] = torch.ones(2)
    torch.save(source, tmp_path / "w.pth")
    answer = fit(ask, tmp_path / "w.pth")
    assert (answer.loaded, answer.matched, answer.counts) == (True, 4, (0, 1, 0))
    assert answer.unexpected == (KeyFit("extra", (2,)),) and answer.title == "model"
    assert all(torch.equal(value, source[key]) for key, value in model.state_dict().items())


def test_a_renaming_waits_for_the_user(ask, model, tmp_path):
    source = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    torch.save({"state_dict": nn.DataParallel(source).state_dict()}, tmp_path / "w.pt")
    before = {key: value.clone() for key, value in model.state_dict().items()}
    answer = fit(ask, tmp_path / "w.pt")
    assert (answer.loaded, answer.matched) == (False, 4) and "“module.”" in answer.renaming
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert fit(ask, tmp_path / "w.pt", agreed=True).loaded
    wanted = source.state_dict()
    assert all(torch.equal(value, wanted[key]) for key, value in model.state_dict().items())


def test_what_is_missing_or_of_another_shape_waits_too(ask, model, tmp_path):
    source = nn.Sequential(nn.Linear(3, 4, bias=False), nn.Linear(4, 5, bias=False)).state_dict()
    torch.save(source, tmp_path / "w.pt")
    before = {key: value.clone() for key, value in model.state_dict().items()}
    answer = fit(ask, tmp_path / "w.pt")
    assert not answer.loaded and answer.counts == (2, 0, 1)
    assert answer.missing == (KeyFit("0.bias", (4,)), KeyFit("1.bias", (2,)))
    assert answer.misshapen == (KeyFit("1.weight", (5, 4), (2, 4)),)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert fit(ask, tmp_path / "w.pt", agreed=True).loaded
    state = model.state_dict()
    assert torch.equal(state.pop("0.weight"), source["0.weight"])
    assert all(torch.equal(value, before[key]) for key, value in state.items())


def test_the_canvas_takes_weights_too(lab, ask, tmp_path):
    project = load_template("mlp")
    canvas = {"subject": CanvasSubject(), "model": project.model, "training": project.training}
    module = find_subject(lab, CanvasSubject(), project.model, project.training).module
    source = {key: torch.full_like(value, 0.5) for key, value in module.state_dict().items()}
    torch.save(source, tmp_path / "w.pt")
    answer = fit(ask, tmp_path / "w.pt", **canvas)
    assert answer.loaded and answer.saved_beside and answer.title == "Canvas"
    assert all(torch.equal(value, source[key]) for key, value in module.state_dict().items())


def test_a_file_that_would_run_code_is_refused(ask, model, tmp_path):
    torch.save({"a": print}, tmp_path / "w.pt")
    with pytest.raises(LabError, match=r"asks for builtins\.print"):
        fit(ask, tmp_path / "w.pt", agreed=True)


def test_one_branch_of_a_file_is_loaded(ask, model, tmp_path):
    states = {
        name: {key: torch.full_like(value, fill) for key, value in model.state_dict().items()}
        for name, fill in (("model", 1.0), ("ema", 2.0))
    }
    torch.save({"saved": states}, tmp_path / "w.pt")
    assert fit(ask, tmp_path / "w.pt", group="saved/ema").loaded
    assert all(bool((value == 2).all()) for value in model.state_dict().values())
    with pytest.raises(LabError, match="has no tensors under saved/em that can be loaded"):
        fit(ask, tmp_path / "w.pt", group="saved/em")


def test_the_tensors_of_an_exported_program_are_loaded(ask, model, tmp_path):
    source = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    torch.export.save(torch.export.export(source, (torch.ones(1, 3),)), tmp_path / "net.pt2")
    assert fit(ask, tmp_path / "net.pt2").loaded
    wanted = source.state_dict()
    assert all(torch.equal(value, wanted[key]) for key, value in model.state_dict().items())


def test_cells_read_tensors_of_a_file(lab, ask, tmp_path):
    path = tmp_path / "w.pt"
    torch.save({"a": torch.arange(3.0), "n": 1, "m": torch.empty(2, device="meta")}, path)
    ask(RunCellCommand(source=f"found = lab.open({str(path)!r}); a = found['a']"))
    variables = lab.console.namespace.variables
    assert torch.equal(variables["a"], torch.arange(3.0))
    assert list(variables["found"]) == ["a"] and len(variables["found"]) == 1
    assert repr(variables["found"]) == "<1 tensors of w.pt>"
    with pytest.raises(KeyError):
        variables["found"]["m"]
