"""Export from the document: what lies on the disk runs without this program."""

from __future__ import annotations

import itertools
import json
import math
import os
import site
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import safetensors.torch
import torch
from msgspec import structs
from torch import nn

from engine.exporting import load_weights, save_weights
from engine.exporting.examples import cases_of, example_of
from engine.exporting.verifying import Refused
from engine.handlers.exporting import programs
from engine.handlers.exporting.export import export
from engine.handlers.exporting.results import Result, Work
from engine.handlers.exporting.weights import open_project_weights, save_project_weights
from engine.handlers.subjects.canvas import example_inputs
from engine.handlers.training.ranks import RanksRun
from engine.lab import Lab
from engine.models.live import LiveModel
from engine.project.document import Block, Model, TrainingSetup, Wire
from engine.project.subject import ConsoleSubject
from engine.protocol import (
    ExportCommand,
    ExportPlanSnapshot,
    ExportSnapshot,
    OpenWeightsCommand,
    PlanExportCommand,
    RunCellCommand,
    SavedWeightsSnapshot,
    SaveWeightsCommand,
    Snapshot,
    StepTrainingCommand,
    TrainCommand,
    WeightsSnapshot,
)
from engine.runs.record import load as load_record
from engine.server.session import Session
from engine.system.errors import LabError
from engine.training.checkpoints import checkpoint_files
from engine.verifier.jobs import CaseRun, Failed, Located, ProgramJob, ProgramRun
from engine.verifier.values import Case, read_calls, read_cases

SETUP = TrainingSetup(seed=3)


def chain(*blocks: tuple[str, str, dict[str, Any]]) -> Model:
    """Blocks (kind, name, params) in a row, their first ports wired."""
    made = tuple(Block(id=name, kind=kind, name=name, params=p) for kind, name, p in blocks)
    ports = {"Input": "x", "Output": "x"}
    wires = tuple(
        Wire(a.id, ports.get(a.kind, "output"), b.id, ports.get(b.kind, "input"))
        for a, b in itertools.pairwise(made)
    )
    return Model(blocks=made, wires=wires)


CNN = chain(
    ("Input", "x", {"shape": (1, 8, 8)}),
    ("nn.Conv2d", "conv1", {"in_channels": 1, "out_channels": 4, "kernel_size": 3}),
    ("nn.BatchNorm2d", "norm1", {"num_features": 4}),
    ("nn.ReLU", "relu1", {}),
    ("nn.Flatten", "flatten1", {}),
    ("nn.Dropout", "dropout1", {"p": 0.5}),
    ("nn.Linear", "linear1", {"in_features": 144, "out_features": 10}),
    ("Output", "output", {}),
)


@pytest.fixture
def lab() -> Lab:
    sent: list[Snapshot] = []
    lab = Lab(emit=sent.append)
    module = lab.models.live_model(CNN, SETUP.seed).module
    with torch.no_grad():  # as if it had been trained
        for parameter in module.parameters():
            parameter.add_(0.25)
        module(torch.randn(16, 1, 8, 8))
    return lab


def run(lab: Lab, path: Path, format: Any, model: Model = CNN, weights: str = "") -> ExportSnapshot:
    command = ExportCommand(
        model=model, training=SETUP, format=format, path=str(path), weights=weights, verify=False
    )
    *_, snapshot = export(lab, command)
    assert isinstance(snapshot, ExportSnapshot)
    return snapshot


BARE = """
import json, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("engine", "app", "widgets", "tensorlab"):
            raise ImportError(f"{name} is not installed")

sys.meta_path.insert(0, Refuse())
sys.path += [*SITE, "here"]
import torch
from model import Model

model = Model()
model.load_state_dict(torch.load("weights.pt"))
x = torch.linspace(-1, 1, 2 * 64).reshape(2, 1, 8, 8)
print(json.dumps(model.eval()(x).tolist()))
"""


def test_model_and_weights_load_in_a_bare_script(lab: Lab, tmp_path: Path) -> None:
    """In an isolated interpreter that has torch but cannot import this program."""
    (tmp_path / "here").mkdir()
    run(lab, tmp_path / "here" / "model.py", "py")
    run(lab, tmp_path / "weights.pt", "pt")
    # -S: no .pth file is read, so that a development install is not on the path either.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"SITE = {site.getsitepackages()!r}" + BARE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert lab.models.live is not None
    x = torch.linspace(-1, 1, 2 * 64).reshape(2, 1, 8, 8)
    expected = lab.models.live.module.eval()(x)
    assert torch.equal(torch.tensor(json.loads(done.stdout)), expected)


@pytest.mark.parametrize("format", ["pt", "safetensors", "py"])
def test_the_snapshot_tells_what_was_written(lab: Lab, tmp_path: Path, format: str) -> None:
    path = tmp_path / f"model.{format}"
    snapshot = run(lab, path, format)
    assert lab.models.live is not None
    assert (snapshot.path, snapshot.format) == (str(path), format)
    assert snapshot.size_bytes == path.stat().st_size and len(snapshot.sha256) == 64
    assert snapshot.max_abs_error == 0.0
    assert snapshot.keys == tuple(lab.models.live.module.state_dict())
    assert "conv1.weight" in snapshot.keys and "norm1.running_mean" in snapshot.keys


@pytest.mark.parametrize("format", ["pt", "safetensors", "py"])
def test_export_disturbs_neither_weights_nor_buffers_nor_rng(
    lab: Lab, tmp_path: Path, format: str
) -> None:
    assert lab.models.live is not None
    module = lab.models.live.module
    before = {k: t.clone() for k, t in module.state_dict().items()}
    rng, training = torch.get_rng_state(), module.training
    run(lab, tmp_path / "m", format)
    assert lab.models.live.module is module and module.training == training
    assert torch.equal(torch.get_rng_state(), rng)
    assert all(torch.equal(t, before[k]) for k, t in module.state_dict().items())


@pytest.mark.parametrize("format", ["pt", "safetensors"])
def test_weights_of_a_file_are_exported_without_touching_the_live_ones(
    lab: Lab, tmp_path: Path, format: str
) -> None:
    assert lab.models.live is not None
    run(lab, tmp_path / "old", "safetensors" if format == "pt" else "pt")
    (tmp_path / "old").rename(tmp_path / ("old.safetensors" if format == "pt" else "old.pt"))
    old = {k: t.clone() for k, t in lab.models.live.module.state_dict().items()}
    with torch.no_grad():
        lab.models.live.module.get_parameter("linear1.bias").fill_(7.0)
    source = tmp_path / ("old.safetensors" if format == "pt" else "old.pt")
    run(lab, tmp_path / f"new.{format}", format, weights=str(source))
    new = load_weights(tmp_path / f"new.{format}")
    assert all(torch.equal(new[k], old[k]) for k in old)
    assert lab.models.live.module.get_parameter("linear1.bias")[0] == 7.0


def test_weights_of_another_model_are_refused_by_name(lab: Lab, tmp_path: Path) -> None:
    torch.save(nn.Linear(3, 2).state_dict(), tmp_path / "other.pt")
    with pytest.raises(LabError, match=r"missing: conv1\.weight.*not in the model: weight, bias"):
        run(lab, tmp_path / "out.pt", "pt", weights=str(tmp_path / "other.pt"))
    assert not (tmp_path / "out.pt").exists()


def test_a_model_that_cannot_run_is_not_exported_as_python(lab: Lab, tmp_path: Path) -> None:
    broken = chain(
        ("Input", "x", {"shape": (1, 8, 8)}),
        ("nn.Linear", "linear1", {"in_features": 5, "out_features": 2}),
        ("Output", "output", {}),
    )
    with pytest.raises(LabError, match="does not run"):
        run(lab, tmp_path / "model.py", "py", model=broken)
    assert not (tmp_path / "model.py").exists()
    with pytest.raises(LabError, match="cannot run"):
        run(lab, tmp_path / "model.pt", "pt", model=Model(blocks=CNN.blocks))


# -- weights beside a project ------------------------------------------------------------------


def test_weights_saved_beside_a_project_come_back_bit_for_bit(tmp_path: Path) -> None:
    lab = Lab(emit=lambda snapshot: None)
    live = lab.models.live_model(CNN, SETUP.seed)
    nn.init.constant_(live.module.get_parameter("conv1.weight"), 0.25)
    before = {key: tensor.clone() for key, tensor in live.module.state_dict().items()}
    path = os.fsencode(tmp_path / "net.safetensors")
    (saved,) = save_project_weights(lab, SaveWeightsCommand(model=CNN, training=SETUP, path=path))
    assert saved == SavedWeightsSnapshot()
    other = Lab(emit=lambda snapshot: None)
    command = OpenWeightsCommand(model=CNN, training=SETUP, path=path)
    (opened,) = open_project_weights(other, command)
    assert isinstance(opened, WeightsSnapshot)
    assert opened.origin == "The weights of net.safetensors are loaded."
    state = other.models.live_model(CNN, SETUP.seed).module.state_dict()
    assert all(torch.equal(state[key], before[key]) for key in before)


def test_a_project_without_a_weight_file_forgets_the_weights_before_it() -> None:
    lab = Lab(emit=lambda snapshot: None)
    first = lab.models.live_model(CNN, SETUP.seed)
    nn.init.constant_(first.module.get_parameter("conv1.weight"), 0.25)
    list(open_project_weights(lab, OpenWeightsCommand(model=CNN, training=SETUP)))
    second = lab.models.live_model(CNN, SETUP.seed).module.get_parameter("conv1.weight")
    assert not (second == 0.25).any()


def test_a_file_that_does_not_fit_leaves_the_model_with_new_weights(tmp_path: Path) -> None:
    lab = Lab(emit=lambda snapshot: None)
    path = tmp_path / "net.safetensors"
    safetensors.torch.save_file({"stranger": torch.ones(1)}, path)
    command = OpenWeightsCommand(model=CNN, training=SETUP, path=os.fsencode(path))
    with pytest.raises(LabError, match=r"net.safetensors does not fit the model. missing: conv1"):
        list(open_project_weights(lab, command))
    assert lab.models.live is None


def test_a_plan_tells_the_bytes_of_each_storage_once() -> None:
    sent: list[Snapshot] = []
    session = Session(sent.append)
    cell = """
net = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Linear(5, 2).double())
net.tied = net[0]
net.register_buffer("seen", torch.zeros(7, dtype=torch.bool))
"""
    session.handle(RunCellCommand(source=cell))
    net: nn.Module = session.lab.console.namespace.variables["net"]
    sent.clear()
    command = PlanExportCommand(model=Model(), training=SETUP, subject=ConsoleSubject("net"))
    session.handle(command)
    (plan,) = sent
    assert isinstance(plan, ExportPlanSnapshot)
    assert plan.tensors == len(net.state_dict()) == 12
    assert plan.float_bytes == {4: 4 * (15 + 5 + 4 * 5), 8: 8 * (10 + 2)}
    assert plan.other_bytes == 8 + 7  # num_batches_tracked, and `seen`
    assert plan.run_step == -1
    no_data = "There is no data to take a batch from. Name it under Train."
    assert {key for key, why in plan.refusals.items() if why == no_data} >= {"checkpoint", "onnx"}
    assert "safetensors" not in plan.refusals and "pt" not in plan.refusals


def test_weights_that_fit_after_a_prefix_is_taken_off_are_told_so(lab: Lab, tmp_path: Path) -> None:
    state = lab.models.live_model(CNN, SETUP.seed).module.state_dict()
    wrapped = {f"module.{key}": tensor + 1 for key, tensor in state.items()}
    torch.save(wrapped, tmp_path / "w.pt")
    told = run(lab, tmp_path / "out.pt", "pt", weights=str(tmp_path / "w.pt"))
    assert told.renaming == "“module.” is taken off the names of the file"
    new = load_weights(tmp_path / "out.pt")
    assert all(torch.equal(new[key], tensor + 1) for key, tensor in state.items())
    torch.save({**wrapped, "more": torch.ones(1)}, tmp_path / "w.pt")
    with pytest.raises(LabError, match=r"w\.pt does not fit the model\. not in the model: more\."):
        run(lab, tmp_path / "out.pt", "pt", weights=str(tmp_path / "w.pt"))
    assert run(lab, tmp_path / "out.pt", "pt").renaming == ""


def test_the_words_for_what_a_program_raises_and_where_it_differs() -> None:
    first = programs._first_line
    assert (first(""), first("\n  one \n two")) == ("", "one")
    script = "In the TorchScript interpreter:\n  File ...\nRuntimeError: two\n\n"
    assert first(script) == "RuntimeError: two"
    assert first("x" * 300) == "x" * 300 and first("x" * 301) == "x" * 300 + "…"
    net = nn.Sequential(nn.Linear(2, 2))
    assert programs._where("0", net) == "0 (Linear)"
    assert programs._where("", net) == "Sequential.forward; the modules inside agree"
    assert programs._where(None, net).startswith("the output; no module of the file")


def test_how_far_a_cast_is_away_is_told_without_random_outputs() -> None:
    x = torch.ones(2)
    half = x.half()

    def case(*apart: float) -> Case:
        return Case(2, (), {}, [half + each for each in apart], [False, True, False])

    told = programs._told_cast("float16", [case(0, 0, 0)] * 2, [case(0.5, 9, 0), case(0, 9, 0.25)])
    assert told.endswith("its outputs are at most 0.5 away from those of the model.")
    drawn = Case(2, (), {}, [half], [True])
    assert "It gives float32 all the same" in programs._told_cast(
        "float16", [drawn], [Case(2, (), {}, [x], [False])]
    )
    assert programs._told_cast("float16", [drawn], [drawn]) == "Its numbers are float16."


def test_a_checkpoint_is_that_of_the_run_or_of_one_before_its_first_step(
    lab: Lab, tmp_path: Path
) -> None:
    """With the weights of now, and no more."""
    state = lab.models.live_model(CNN, SETUP.seed).module.state_dict()
    state = {key: tensor.clone() for key, tensor in state.items()}
    told = run(lab, tmp_path / "c.pt", "checkpoint")
    saved = torch.load(tmp_path / "c.pt", weights_only=True)
    assert told.notes == ("It is that of step 0.",) and (saved["run"], saved["step"]) == (
        "exported", 0,
    )  # fmt: skip
    assert saved["model"].keys() == state.keys() and told.keys == tuple(state)
    assert all(torch.equal(saved["model"][key], tensor) for key, tensor in state.items())
    session = Session(lambda snapshot: None)
    train = TrainCommand(id=1, model=CNN, training=SETUP, paused=True, folder=str(tmp_path / "run"))
    session.handle(train)
    for number in range(2):
        session.handle(StepTrainingCommand(id=2 + number))
    told = run(session.lab, tmp_path / "c.pt", "checkpoint")
    saved = torch.load(tmp_path / "c.pt", weights_only=True)
    assert told.notes == ("It is that of step 2.",) and saved["step"] == 2
    assert saved["run"] == session.lab.run.id
    session.handle(StepTrainingCommand(id=4, by="phase"))
    with pytest.raises(LabError, match="stands between two phases"):
        run(session.lab, tmp_path / "c.pt", "checkpoint")
    session.handle(StepTrainingCommand(id=5))
    folder, source = session.lab.run.files.writer.folder, tmp_path / "w.pt"
    save_weights(session.lab.run.loop.model, source, "pt")
    for model, weights in ((CNN, str(source)), (SMALL, "")):  # not the run's module
        told = run(session.lab, tmp_path / "c.pt", "checkpoint", model, weights)
        assert told.notes == ("It is that of step 0.",)
        saved = torch.load(tmp_path / "c.pt", weights_only=True)["model"]
        if weights:
            plain = torch.load(source, weights_only=True)
            assert all(torch.equal(saved[key], tensor) for key, tensor in plain.items())
    assert session.lab.is_training and load_record(folder).state == "running"
    session.close()


def test_the_checkpoint_of_other_processes_is_taken_while_the_model_has_its_weights(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(lab, tmp_path / "first.pt", "checkpoint")
    saved = checkpoint_files.load(tmp_path / "first.pt")
    path = checkpoint_files.save(structs.replace(saved, step=7, run="other"), tmp_path)
    lab.run = RanksRun(SETUP, tmp_path, lambda command: None)
    assert run(lab, tmp_path / "c.pt", "checkpoint").notes == ("It is that of step 0.",)
    lab.run.last = structs.replace(lab.run.last, checkpoint=str(path))
    assert run(lab, tmp_path / "c.pt", "checkpoint").notes == ("It is that of step 7.",)
    assert torch.load(tmp_path / "c.pt", weights_only=True)["run"] == "other"
    assert run(lab, tmp_path / "c.pt", "checkpoint", SMALL).notes == ("It is that of step 0.",)
    lab.models.live_model(CNN, SETUP.seed).module.get_parameter("linear1.bias").data[0] += 1
    assert run(lab, tmp_path / "c.pt", "checkpoint").notes == ("It is that of step 0.",)


SMALL = chain(
    ("Input", "x", {"shape": (1, 8, 8)}),
    ("nn.Flatten", "flatten1", {}),
    ("nn.Linear", "linear1", {"in_features": 64, "out_features": 10}),
    ("Output", "output", {}),
)


@pytest.mark.parametrize("format", ["dcp", "hf"])
def test_a_folder_is_told_with_its_files(lab: Lab, tmp_path: Path, format: Any) -> None:
    path = tmp_path / "net"
    told = run(lab, path, format, SMALL)
    assert {file.name for file in told.files} == {f"net/{file.name}" for file in path.iterdir()}
    assert told.size_bytes == sum(file.size_bytes for file in told.files) > 2560
    assert told.sha256 == "" and told.keys == ("linear1.weight", "linear1.bias")
    assert not told.verified and told.seconds > 0


def test_numbers_too_large_for_a_dtype_are_told(lab: Lab, tmp_path: Path) -> None:
    module = lab.models.live_model(SMALL, SETUP.seed).module
    with torch.no_grad():
        module.get_parameter("linear1.bias")[:2] = 1e6
    command = ExportCommand(
        model=SMALL, training=SETUP, format="pt", path=str(tmp_path / "w.pt"), dtype="float16",
        verify=False,
    )  # fmt: skip
    *stages, told = export(lab, command)
    assert told.notes == ("2 numbers are too large for float16, and became infinite.",)
    assert told.max_abs_error == math.inf
    with torch.no_grad():
        module.get_parameter("linear1.bias").fill_(0.1)
    *stages, told = export(lab, command)
    weight = module.get_parameter("linear1.weight").detach()
    assert told.max_abs_error == max(
        (tensor.detach().double() - tensor.detach().half().double()).abs().max().item()
        for tensor in module.parameters()
    )
    assert told.notes == () and told.max_rel_error > 0 and weight.dtype == torch.float32
    assert [(each.words, each.done, each.stages) for each in stages] == [("Writing w.pt", 0, 1)]


class Answers:
    """In place of the process that runs a program: its answers one after the other."""

    def __init__(self, folder: Path, *answers: Any) -> None:
        self.folder, self.answers = folder, list(answers)
        self.asked: list[Any] = []

    def ask(self, job: Any) -> Any:
        self.asked.append(job)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def compared(lab: Lab, folder: Path, *answers: Any) -> tuple[Result, list[Any]]:
    """The result for a program that was run with 1 sample and with 5."""
    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU()).eval()
    cases = cases_of(net, example_of((torch.ones(5, 3),), {}))
    cases = [cases[0], cases[2]]
    assert [case.batch_size for case in cases] == [1, 5]
    process: Any = Answers(folder, *answers)
    command = ExportCommand(model=CNN, training=SETUP, format="pt2", path=str(folder / "p"))
    source: Any = SimpleNamespace(module=net)
    work = Work(lab, command, source, folder / "p", process)
    programs._compare(work, process, cases)
    assert process.answers == []
    return work.result, process.asked


def test_a_program_that_agrees_is_told_with_its_largest_errors(lab: Lab, tmp_path: Path) -> None:
    runs = [CaseRun(1, 0.25, 0.5, True), CaseRun(5, 0.125, 1.0, True)]
    result, asked = compared(lab, tmp_path, ProgramRun(runs, 2.0))
    assert (result.max_abs_error, result.max_rel_error, result.batch_sizes) == (0.25, 1.0, [1, 5])
    assert (result.verified, result.differs, result.notes) == (True, "", [])
    assert result.export_s == 2.0 and result.model_s > 0
    assert [type(job) for job in asked] == [ProgramJob] and asked[0].weights == ""
    assert [case.batch_size for case in read_cases(asked[0].cases)] == [1, 5]


def test_a_program_that_cannot_be_opened_is_told(lab: Lab, tmp_path: Path) -> None:
    refused = Refused(Failed("ValueError", "\n bad \nmore"))
    result, _ = compared(lab, tmp_path, refused)
    assert result.differs == "the whole file" and not result.verified
    assert result.notes == ["It cannot be opened: ValueError: bad"]


@pytest.mark.parametrize(("wrong", "samples"), [(0, "1 sample"), (1, "5 samples")])
def test_a_number_of_samples_that_it_does_not_take_is_told(
    wrong: int, samples: str, lab: Lab, tmp_path: Path
) -> None:
    runs = [CaseRun(1, agrees=True), CaseRun(5, agrees=True)]
    runs[wrong] = CaseRun(runs[wrong].batch_size, problem="ValueError: no\nmore")
    result, _ = compared(lab, tmp_path, ProgramRun(runs, 1.0))
    assert result.differs == f"the run with {samples}" and not result.verified
    assert result.notes == [f"With {samples} it raises ValueError: no"]
    assert result.batch_sizes == [[5], [1]][wrong]


@pytest.mark.parametrize(
    ("answer", "differs", "notes"),
    [
        (Located("0"), "0 (Linear)", []),
        (Located(""), "Sequential.forward; the modules inside agree", []),
        (Refused(Failed("E", "lost")), "the output",
         ["The module that differs was not found: lost"]),
    ],
)  # fmt: skip
def test_where_a_program_differs_is_looked_for_in_the_first_wrong_case(
    answer: Any, differs: str, notes: list[str], lab: Lab, tmp_path: Path
) -> None:
    runs = [CaseRun(1, agrees=True), CaseRun(5, 1.0, 1.0, False)]
    result, asked = compared(lab, tmp_path, ProgramRun(runs, 1.0), answer)
    assert (result.differs, result.notes, result.verified) == (differs, notes, False)
    (*_, whole) = read_calls(asked[1].calls)
    assert whole.path == "" and whole.args[0].shape == (5, 3)


def test_random_outputs_are_noted() -> None:
    onnx = ExportCommand(model=CNN, training=SETUP, format="onnx", path="p")
    x = torch.ones(1)
    for command, drawn, notes in (
        (onnx, [True, False], 1), (onnx, [True, True], 1), (onnx, [False], 0),
        (structs.replace(onnx, format="pt2"), [True], 1),
    ):  # fmt: skip
        result = Result()
        programs._note_random(command, Case(1, (), {}, [x] * len(drawn), drawn), result)
        assert len(result.notes) == notes
        if notes:
            told = f"{sum(drawn)} of {len(drawn)} outputs are drawn at random"
            assert result.notes[0].startswith(told)


def test_the_inputs_that_stand_for_a_batch_are_drawn_from_a_seed_of_their_own() -> None:
    ids = chain(
        ("Input", "x", {"shape": (3,), "dtype": "int64"}),
        ("nn.Embedding", "embedding1", {"num_embeddings": 2, "embedding_dim": 4}),
        ("Output", "output", {}),
    )
    for model, expected in (
        (ids, torch.randint(2, (4, 3), generator=torch.Generator().manual_seed(0))),
        (CNN, torch.randn(4, 1, 8, 8, generator=torch.Generator().manual_seed(0))),
    ):
        state = torch.get_rng_state()
        (found,) = example_inputs(LiveModel(model, SETUP.seed))
        assert torch.equal(found, expected) and found.dtype == expected.dtype
        (again,) = example_inputs(LiveModel(model, SETUP.seed + 1))
        assert torch.equal(again, found)
    assert torch.equal(torch.get_rng_state(), state)
