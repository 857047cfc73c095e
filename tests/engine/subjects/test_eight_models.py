"""Eight ordinary model files, opened, read, trained, resumed, stepped and exported, each against
plain PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_model
from torch import Tensor, nn

from engine.handlers.subjects.find import find_subject
from engine.lab import Lab
from engine.project.document import Model
from engine.protocol import (
    CheckpointSnapshot,
    ExportCommand,
    ExportSnapshot,
    FileSnapshot,
    FindCheckpointCommand,
    ReadStructureCommand,
    RunFileCommand,
    TrainCommand,
    TrainingSnapshot,
)
from engine.server.session import handler_of
from engine.system.errors import LabError
from engine.training.objectives.batches import tensors_in

from .conftest import Ask
from .eight import CASES, SEED, SETUP, Case, imported, plain_epoch

every_file = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path / "data"))


def opened(lab: Lab, case: Case) -> None:
    list(handler_of(RunFileCommand)(lab, RunFileCommand(path=str(case.path))))


def module_of(lab: Lab, case: Case) -> nn.Module:
    return find_subject(lab, case.subject, Model(), SETUP).module


def equal_states(ours: dict[str, Tensor], plain: dict[str, Tensor]) -> None:
    assert ours.keys() == plain.keys()
    assert [name for name in plain if not torch.equal(ours[name], plain[name])] == []


def train(case: Case, **options: Any) -> TrainCommand:
    return TrainCommand(
        model=Model(), training=SETUP, subject=case.subject, objective=case.objective, **options
    )


@every_file
def test_the_file_opens_and_lists_its_classes_and_its_data(ask: Ask, case: Case) -> None:
    answers = ask(RunFileCommand(path=str(case.path)))
    assert len(answers) == 1  # nothing is printed: the loop under __main__ has not run
    (found,) = answers
    assert isinstance(found, FileSnapshot)
    assert {each.name: (each.kind, each.type) for each in found.objects} == case.listed


# -- structure -------------------------------------------------------------------------------------


def hooked_shapes(model: nn.Module, run: Any) -> dict[str, list[tuple[Any, Any]]]:
    """The shapes that each module takes and gives, by hooks of the test's own."""
    calls: dict[str, list[tuple[Any, Any]]] = {}
    hooks = []

    def shapes(value: Any) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(tensor.shape) for tensor in tensors_in(value))

    for name, part in model.named_modules():

        def seen(_: nn.Module, args: Any, kwargs: Any, out: Any, name: str = name) -> None:
            calls.setdefault(name, []).append((shapes((args, kwargs)), shapes(out)))

        hooks.append(part.register_forward_hook(seen, with_kwargs=True))
    run()
    for hook in hooks:
        hook.remove()
    return calls


@every_file
def test_its_structure_is_that_of_torch(lab: Lab, ask: Ask, case: Case) -> None:
    opened(lab, case)
    before = torch.get_rng_state()
    command = ReadStructureCommand(subject=case.subject, objective=case.objective, training=SETUP)
    parts = ask(command)
    assert torch.equal(torch.get_rng_state(), before)
    assert parts[-1].left == 0 and parts[-1].unrun is None
    with imported(case.path) as file:
        model = case.model(file)
        initial = {name: value.clone() for name, value in model.state_dict().items()}
        torch.manual_seed(SEED)
        batch = next(iter(case.batches(file)))
        calls = hooked_shapes(model, lambda: case.loss(file, model, batch))
    rows = [row for part in parts for row in part.modules]
    assert [row.path for row in rows] == [name for name, _ in model.named_modules()]
    for row, (name, part) in zip(rows, model.named_modules(), strict=True):
        assert row.type == type(part).__name__
        assert row.parameters == sum(p.numel() for p in part.parameters())
        expected = calls.get(name, [])
        assert row.call_count == len(expected), name
        assert [(call.inputs, call.outputs) for call in row.calls] == expected[:8], name
    weights = {row.name: row for part in parts for row in part.weights}
    parameters = dict(model.named_parameters(remove_duplicate=False))
    buffers = dict(model.named_buffers())
    assert weights.keys() == {**parameters, **buffers}.keys()
    for name, tensor in {**parameters, **buffers}.items():
        row = weights[name]
        assert row.kind == ("parameter" if name in parameters else "buffer")
        assert (row.shape, row.elements, row.bytes) == (tensor.shape, tensor.numel(), tensor.nbytes)
        assert f"torch.{row.dtype}" == str(tensor.dtype) and row.trainable == tensor.requires_grad
        assert row.persistent == (name in model.state_dict())
        others = [other for other, each in parameters.items() if each is tensor and other != name]
        assert list(row.shared_with) == others
    counts = parts[0].totals
    assert counts.modules == len(list(model.modules()))
    assert counts.parameters == sum(p.numel() for p in model.parameters())
    assert counts.trainable == sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert counts.parameter_bytes == sum(p.nbytes for p in model.parameters())
    assert counts.buffers == sum(b.numel() for b in model.buffers())
    assert counts.buffer_bytes == sum(b.nbytes for b in model.buffers())
    equal_states(module_of(lab, case).state_dict(), initial)  # looking has changed nothing


# -- training --------------------------------------------------------------------------------------


@every_file
def test_a_trained_epoch_is_that_of_the_plain_loop(lab: Lab, ask: Ask, case: Case) -> None:
    with imported(case.path) as file:
        model, losses = plain_epoch(case, file)
    opened(lab, case)
    ask(ReadStructureCommand(subject=case.subject, objective=case.objective, training=SETUP))
    *_, last = ask(train(case))
    assert isinstance(last, TrainingSnapshot)
    assert (last.state, last.error) == ("finished", None)
    assert last.step == len(losses) == last.total_steps
    assert [row.loss for row in lab.run.loop.metrics.history] == losses
    equal_states(module_of(lab, case).state_dict(), model.state_dict())
    for name, p in model.named_parameters():
        assert torch.equal(p, module_of(lab, case).get_parameter(name))


@every_file
def test_a_run_stopped_within_the_epoch_and_resumed_is_that_of_the_plain_loop(
    lab: Lab, ask: Ask, case: Case
) -> None:
    with imported(case.path) as file:
        model, losses = plain_epoch(case, file)
    opened(lab, case)
    job = iter(handler_of(TrainCommand)(lab, train(case)))
    next(job)
    while lab.run.step < 1:
        next(job)
    lab.control.stop.set()
    *_, stopped = job
    lab.control.stop.clear()
    assert stopped.state == "stopped" and 0 < stopped.checkpoint_step < len(losses)
    later = Lab(emit=lambda snapshot: None)  # another start of the program
    find = FindCheckpointCommand(model=Model(), training=SETUP, subject=case.subject)
    with pytest.raises(LabError, match="has not run"):
        list(handler_of(FindCheckpointCommand)(later, find))
    opened(later, case)
    (found,) = handler_of(FindCheckpointCommand)(later, find)
    assert isinstance(found, CheckpointSnapshot)
    assert (found.path, found.step) == (stopped.checkpoint, stopped.checkpoint_step)
    *_, last = handler_of(TrainCommand)(later, train(case, checkpoint=found.path))
    assert (last.state, last.error) == ("finished", None)
    assert [row.loss for row in later.run.loop.metrics.history] == losses
    equal_states(module_of(later, case).state_dict(), model.state_dict())


# -- files -----------------------------------------------------------------------------------------


@every_file
@pytest.mark.parametrize("format", ["pt", "safetensors"])
def test_exported_weights_are_loaded_by_plain_torch(
    lab: Lab, ask: Ask, tmp_path: Path, case: Case, format: Any
) -> None:
    opened(lab, case)
    with torch.no_grad():  # weights that no seed gives
        for tensor in module_of(lab, case).state_dict().values():
            tensor.copy_(torch.arange(tensor.numel()).reshape(tensor.shape) % 7)
    ours = module_of(lab, case).state_dict()
    path = tmp_path / f"weights.{format}"
    export = ExportCommand(
        model=Model(),
        training=SETUP,
        format=format,
        path=str(path),
        subject=case.subject,
        verify=False,
    )
    *_, written = ask(export)
    assert isinstance(written, ExportSnapshot)
    assert written.max_abs_error == 0 and written.keys == tuple(ours)
    with imported(case.path) as file:
        fresh = case.model(file)
    if format == "pt":
        loaded = torch.load(path, weights_only=True)
        equal_states(loaded, ours)
        fresh.load_state_dict(loaded)
    else:
        load_model(fresh, path)
    equal_states(fresh.state_dict(), ours)
    other = Lab(emit=lambda snapshot: None)  # another program, whose module is fresh
    opened(other, case)
    again = tmp_path / "again.pt"
    handler = handler_of(ExportCommand)
    list(
        handler(
            other,
            ExportCommand(
                model=Model(), training=SETUP, format="pt", path=str(again),
                subject=case.subject, weights=str(path), verify=False,
            ),
        )
    )  # fmt: skip
    equal_states(torch.load(again, weights_only=True), ours)
