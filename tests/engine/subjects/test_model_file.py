"""Models in files of torch's own: opened without Python, worked on, and refused."""

from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from engine.handlers.subjects.find import find_subject
from engine.project.document import Model, TrainingSetup
from engine.project.other_files import model_in
from engine.project.subject import MODEL, FileSubject, Objective, files_of, title
from engine.protocol import (
    CheckSnapshot,
    CheckTrainingCommand,
    CompareSubjectsCommand,
    ExportCommand,
    FlowCommand,
    KeepBeforeCommand,
    ReadStructureCommand,
    TraceMemoryCommand,
    TrainCommand,
    TrainingSnapshot,
    WatchCommand,
)
from engine.subjects.model_file import load_model
from engine.system.errors import LabError

pytestmark = [
    pytest.mark.usefixtures("forked_processes"),  # of the process that reads exports
    pytest.mark.filterwarnings("ignore:.*treespec:FutureWarning"),  # torch's own, of a copy
]
BOTH = pytest.mark.parametrize("name", ["script", "program"])

SETUP = TrainingSetup(batch_size=4, epochs=2, seed=5)
DATA = Objective(data="(torch.arange(24.).view(8, 3) / 24, torch.arange(8) % 2)")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4, bias=False), nn.BatchNorm1d(4), nn.ReLU())
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))


def save_script(module: nn.Module, path: Path) -> None:
    with pytest.warns(DeprecationWarning):
        torch.jit.save(torch.jit.script(module), path)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    """The same model as TorchScript and as an exported program, and others."""
    folder = tmp_path_factory.mktemp("models")
    torch.manual_seed(0)
    net = Net()
    torch.save(net.state_dict(), folder / "state.pt")
    torch.save(net, folder / "whole.pt")
    save_script(net, folder / "script.pt")
    batch = torch.export.Dim("batch", min=2)
    program = torch.export.export(net, (torch.ones(4, 3),), dynamic_shapes={"x": {0: batch}})
    torch.export.save(program, folder / "program.pt2")
    return {path.stem: path for path in folder.iterdir()}


def plain(files: dict[str, Path]) -> Net:
    net = Net()
    net.load_state_dict(torch.load(files["state"], weights_only=True))
    return net


def test_a_file_with_a_model_is_told_from_one_with_tensors(files):
    found = {name: model_in(path) for name, path in files.items()}
    assert found == {"script": "script", "program": "program", "state": None, "whole": None}
    assert model_in(files["state"].with_name("none.pt")) is None


def test_the_subject_of_a_model_file_runs_nothing_and_is_its_name():
    subject = FileSubject("/x/net.pt2", MODEL)
    assert files_of(subject, Objective(data="d.py:x")) == ("d.py",)
    assert title(subject) == "net.pt2"
    assert title(FileSubject("/x/net.pt", "model.body")) == "net.pt: model.body"


@BOTH
def test_its_structure_is_that_of_the_module(ask, files, name):
    subject = FileSubject(str(files[name]), MODEL)
    (answer,) = ask(ReadStructureCommand(subject=subject, objective=DATA, training=SETUP))
    assert answer.title == files[name].name
    net = plain(files)
    rows = {row.name: row for row in answer.weights}
    assert rows.keys() == net.state_dict().keys()
    for key, parameter in net.named_parameters():
        assert rows[key].shape == tuple(parameter.shape) and rows[key].trainable
        assert rows[key].mean == pytest.approx(parameter.double().mean().item())
    assert answer.totals.parameters == sum(p.numel() for p in net.parameters())
    assert {"", "body.0", "head"} <= {row.path for row in answer.modules}
    if name == "script":
        types = {path: type(part).__name__ for path, part in net.named_modules()}
        assert {row.path: row.type for row in answer.modules} == types
        assert answer.unrun.message.startswith("TorchScript runs its modules without Python")
    else:
        assert answer.unrun is None and answer.modules[0].calls[0].outputs == ((4, 2),)


@BOTH
def test_it_is_trained_as_the_module_and_exported(ask, lab, files, name, tmp_path):
    subject = FileSubject(str(files[name]), MODEL)
    answers = ask(TrainCommand(model=Model(), subject=subject, objective=DATA, training=SETUP))
    last = [a for a in answers if isinstance(a, TrainingSnapshot)][-1]
    assert (last.state, last.error) == ("finished", None)
    net = plain(files)
    torch.manual_seed(SETUP.seed)
    x, y = torch.arange(24.0).view(8, 3) / 24, torch.arange(8) % 2
    dataset = torch.utils.data.TensorDataset(x, y)
    loader = torch.utils.data.DataLoader(dataset, 4, shuffle=True)
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
    path = tmp_path / "trained.pt"
    ask(ExportCommand(subject=subject, model=Model(), training=SETUP, path=str(path), format="pt"))
    trained = torch.load(path, weights_only=True)
    for key, value in net.state_dict().items():
        torch.testing.assert_close(trained[key], value)


def test_it_is_opened_again_when_the_file_is_another(lab, files, tmp_path):
    path = tmp_path / "net.pt"
    shutil.copy(files["script"], path)
    subject = FileSubject(str(path), MODEL)
    find = lambda: find_subject(lab, subject, Model(), SETUP).module  # noqa: E731
    module = find()
    assert find() is module
    save_script(nn.Linear(2, 2), path)
    assert find() is not module and find().weight.shape == (2, 2)


def test_a_model_file_that_is_gone_is_told(ask, tmp_path):
    subject = FileSubject(str(tmp_path / "gone.pt2"), MODEL)
    with pytest.raises(LabError, match=r"gone\.pt2 cannot be read: No such file"):
        ask(ReadStructureCommand(subject=subject))


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["state", "whole"])
def test_tensors_and_a_pickled_module_are_refused_in_words(files, name):
    with pytest.raises(LabError, match="without running Python"):
        load_model(files[name])


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def changed(program: Path, path: Path, end: str, change) -> Path:
    """A copy of a program with one entry changed by a function of its bytes."""
    with zipfile.ZipFile(program) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            target.writestr(name, change(data) if name.endswith(end) else data)
    return path


def test_a_program_with_pickled_objects_is_refused(files, tmp_path):
    target = tmp_path / "ran"

    def pickled(data: bytes) -> bytes:
        buffer = io.BytesIO()
        torch.save((Bomb(target), {}), buffer)
        return buffer.getvalue()

    path = changed(files["program"], tmp_path / "p.pt2", "sample_inputs/model.pt", pickled)
    with pytest.raises(LabError, match="pickled objects that would run code"):
        load_model(path)
    assert not target.exists()
    torch.load(io.BytesIO(pickled(b"")), weights_only=False)
    assert target.exists()  # what it would have done


def test_a_program_with_compiled_code_is_refused(files, tmp_path):
    path = changed(files["program"], tmp_path / "p.pt2", "", bytes)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("program/data/aotinductor/model/model.so", b"")
    with pytest.raises(LabError, match=r"p\.pt2 was refused: it holds compiled code"):
        load_model(path)


def test_a_program_that_calls_other_functions_is_refused(files, tmp_path):
    def other(data: bytes) -> bytes:
        return data.replace(b"torch.ops.aten.relu.default", b"torch.hub.load")

    path = changed(files["program"], tmp_path / "p.pt2", "models/model.json", other)
    with pytest.raises(LabError, match=r"it calls torch\.hub\.load, which is not an operator"):
        load_model(path)


@pytest.mark.parametrize(
    "size", ["__import__('os').getcwd()", "s0.real", "[1]", "exec(s0)", "Max('a.b')"]
)
def test_a_program_with_code_for_a_size_is_refused(files, tmp_path, size):
    def other(data: bytes) -> bytes:
        old = b'"expr_str": "Symbol'
        assert old in data
        return data.replace(old, f'"expr_str": {json.dumps(size)}, "x": "'.encode())

    path = changed(files["program"], tmp_path / "p.pt2", "models/model.json", other)
    with pytest.raises(LabError, match="is not a size"):
        load_model(path)


def test_a_damaged_file_is_told(files, tmp_path):
    path = changed(files["program"], tmp_path / "p.pt2", "models/model.json", lambda data: b"{}")
    with pytest.raises(LabError, match=r"p\.pt2 cannot be opened"):
        load_model(path)


@pytest.mark.parametrize("before", ["0", None])
def test_what_the_user_told_torch_to_load_is_the_same_afterwards(files, monkeypatch, before):
    name = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    monkeypatch.delenv(name, raising=False)
    if before is not None:
        monkeypatch.setenv(name, before)
    load_model(files["program"])
    assert os.environ.get(name) == before


# -- in the rooms that hook modules or copy them ---------------------------------------------------


@pytest.fixture
def subject(files: dict[str, Path], name: str) -> FileSubject:
    return FileSubject(str(files[name]), MODEL)


def batches() -> list[tuple[Tensor, Tensor]]:
    torch.manual_seed(SETUP.seed)
    x, y = torch.arange(24.0).view(8, 3) / 24, torch.arange(8) % 2
    dataset = torch.utils.data.TensorDataset(x, y)
    return [*torch.utils.data.DataLoader(dataset, 4, shuffle=True)]


@BOTH
def test_it_is_compared_with_what_it_was(ask, lab, files, subject) -> None:
    ask(KeepBeforeCommand(subject=subject))
    module = find_subject(lab, subject, Model(), SETUP).module
    with torch.no_grad():
        dict(module.named_parameters())["head.bias"].add_(0.25)
    (found,) = ask(CompareSubjectsCommand(subject=subject, objective=DATA, training=SETUP))
    assert [each.name for each in found.weights] == ["head.bias"] and found.equal_weights == 7
    assert found.unrun is None
    (output,) = found.outputs
    assert (output.path, output.call, output.before) == ("", 1, "(4, 2) float32")
    assert output.difference == pytest.approx(0.25)


@BOTH
def test_the_flow_of_its_gradients_is_that_of_the_module(ask, files, subject) -> None:
    answers = ask(
        FlowCommand(
            model=Model(), subject=subject, objective=DATA, training=SETUP, steps=2,
            initialisations=("default",),
        )
    )  # fmt: skip
    net, losses, norms = plain(files), [], []
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in batches():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        losses.append(loss.item())
        norms = [torch.stack([p.grad.norm() for p in part.parameters()]).norm().item()  # pyright: ignore
                 for part in (net.body[0], net.body[1], net.head)]  # fmt: skip
        optimizer.step()
    last = answers[-1]
    assert last.layers == ("body.0", "body.1", "head")
    assert last.losses == pytest.approx(losses) and last.norms == pytest.approx(norms)


@BOTH
def test_it_is_watched_as_a_whole(ask, files, subject) -> None:
    ask(WatchCommand(subject=subject, paths=("",), training=SETUP))
    answers = ask(TrainCommand(model=Model(), subject=subject, objective=DATA, training=SETUP))
    runs = [each for each in answers if isinstance(each, TrainingSnapshot)]
    assert runs[-1].error is None
    means = [v for run in runs for v in run.steps.figures.get("the whole subject: output mean", ())]
    assert len(means) == 4
    assert means[0] == pytest.approx(plain(files)(batches()[0][0]).mean().item())


@BOTH
def test_a_part_that_python_never_calls_is_not_watched(ask, subject, name) -> None:
    why = "TorchScript runs `body.0`" if name == "script" else "operations of `body.0` and never"
    with pytest.raises(LabError, match=why) as raised:
        ask(WatchCommand(subject=subject, paths=("body.0",), training=SETUP))
    assert raised.value.hint == "Watch the whole subject."


@BOTH
def test_it_is_checked_before_it_is_trained(ask, subject) -> None:
    answers = ask(
        CheckTrainingCommand(model=Model(), subject=subject, objective=DATA, training=SETUP)
    )
    checks = {each.check.kind: each.check for each in answers if isinstance(each, CheckSnapshot)}
    assert len(checks) == 8
    assert not [each for each in checks.values() if "cannot be checked" in each.text]
    assert checks["unreached"].evidence == "5 of 5 parameters get a gradient"


@BOTH
def test_the_memory_of_its_step_is_traced(ask, subject) -> None:
    *_, found = ask(
        TraceMemoryCommand(model=Model(), subject=subject, objective=DATA, training=SETUP)
    )
    assert found.samples == 4 and {op.module for op in found.ops} >= {"", None}


@BOTH
def test_a_model_without_python_has_no_script(name: str, files, ask, tmp_path: Path) -> None:
    subject = FileSubject(str(files[name]), MODEL)
    export = ExportCommand(
        subject=subject, model=Model(), training=SETUP, objective=DATA, format="script",
        path=str(tmp_path / "train.py"), verify=False,
    )  # fmt: skip
    with pytest.raises(LabError, match="holds a model, and no Python that makes it") as refused:
        ask(export)
    assert str(refused.value).startswith(files[name].name)
    assert refused.value.hint.startswith("Choose the module of a Python file")
    assert not (tmp_path / "train.py").exists()
