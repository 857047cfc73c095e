"""Modules that torch.compile has wrapped keep the user's own names, in every answer."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from engine.exporting.weights import save_weights
from engine.exporting.weights_fit import find_fit, load_fit
from engine.lab import Lab
from engine.project.document import TrainingSetup
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    PreviewInitCommand,
    ReadStructureCommand,
    RunCellCommand,
    StartBackwardCommand,
    WatchCommand,
)
from engine.recording.compiled import own_path, uncompiled
from engine.server.session import handler_of
from engine.subjects.comparing import module_differences, weight_differences

CODE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        self.head = nn.Linear(4, 2)
    def forward(self, x):
        return self.head(self.enc(x))
plain = Net()
part = Net()
part.load_state_dict(plain.state_dict())
part.enc = torch.compile(part.enc, backend="eager")
whole = torch.compile(plain, backend="eager")
x, y = torch.randn(8, 3), torch.arange(8) % 2
"""
STEP = {"objective": Objective(data="(x, y)"), "training": TrainingSetup(batch_size=4)}


@pytest.fixture(scope="module")
def lab() -> Lab:
    lab = Lab(emit=lambda snapshot: None)
    for _ in handler_of(RunCellCommand)(lab, RunCellCommand(source=CODE)):
        pass
    return lab


@pytest.fixture
def made(lab):
    return lambda name: lab.console.namespace.variables[name]


def test_the_wrapper_is_taken_out_of_paths():
    assert own_path("enc._orig_mod.0.weight") == "enc.0.weight"
    assert (own_path("_orig_mod"), own_path(""), own_path("my_orig_mod.a")) == (
        "",
        "",
        "my_orig_mod.a",
    )


@pytest.mark.parametrize("name", ["part", "whole"])
def test_structure_is_that_of_the_plain_module(ask, name):
    def read(name: str):
        (answer,) = ask(ReadStructureCommand(subject=ConsoleSubject(name), **STEP))
        assert answer.unrun is None
        modules = [(m.path, m.type, m.parameters, m.calls[0].outputs) for m in answer.modules]
        return modules, [(w.name, w.shape, w.mean) for w in answer.weights], answer

    modules, weights, answer = read(name)
    assert (modules, weights) == read("plain")[:2]
    row = next(row for row in answer.weights if row.name == "enc.0.weight")
    source = f"{name}{row.code}.requires_grad_(False)"
    ask(RunCellCommand(source=source))
    _, _, answer = read(name)
    assert [
        row.name for row in answer.weights if row.kind == "parameter" and not row.trainable
    ] == ["enc.0.weight"]
    ask(RunCellCommand(source=source.replace("False", "True")))


def test_the_graph_and_marks_have_the_users_names(ask):
    subject = ConsoleSubject("part")
    graph = ask(StartBackwardCommand(subject=subject, **STEP))[0]
    assert {node.module for node in graph.nodes} == {"", "Net.enc.0", "Net.enc.1", "Net.head"}
    assert "enc.0.weight" in {node.label for node in graph.nodes}
    (watched,) = ask(WatchCommand(subject=subject, paths=("enc.0",)))
    assert watched.paths == ("enc.0",)
    ask(WatchCommand(subject=subject, paths=()))
    command = PreviewInitCommand(subject=subject, names=("enc.0.weight",), function="ones_")
    assert ask(command)[0].rows[0].mean == 1


def test_two_that_differ_only_by_compiling_do_not_differ(made):
    assert module_differences(made("plain"), made("part")) == []
    assert weight_differences(made("plain"), made("part")) == ([], 9)


def test_weights_are_written_with_the_users_names_and_fit_both_ways(made, tmp_path):
    path = tmp_path / "net.pt"
    written = save_weights(made("part"), path, "pt")
    assert set(written.keys) == set(made("plain").state_dict())
    state = torch.load(path)
    fresh = type(made("plain"))()
    fresh.load_state_dict(state)  # strict
    for name in ("plain", "part", "whole"):
        fit = find_fit(state, made(name))
        assert fit.is_whole and not fit.is_renamed and not fit.unexpected
    raw = {key: torch.full_like(value, 2) for key, value in made("whole").state_dict().items()}
    assert all(key.startswith("_orig_mod.") for key in raw)
    load_fit(raw, fresh, find_fit(raw, fresh))
    assert all((value == 2).all() for value in fresh.state_dict().values())


def test_in_its_context_nothing_compiled_runs():
    ran = []

    def backend(graph, inputs):
        ran.append(graph)
        return graph

    module = torch.compile(nn.Linear(2, 2), backend=backend)
    with uncompiled():
        module(torch.ones(1, 2))
    assert not ran
    module(torch.ones(1, 2))
    assert len(ran) == 1
