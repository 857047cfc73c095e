"""What cannot be exported is refused before anything is written, and what was read is compared."""

from __future__ import annotations

import hashlib
import importlib.util
import math
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import pytest
import torch

from engine.exporting.state import own_state
from engine.handlers.exporting import export, programs, weight_exports, weights
from engine.handlers.exporting.results import Work
from engine.handlers.exporting.sources import Source
from engine.lab import Lab
from engine.project.subject import CanvasSubject
from engine.protocol import (
    ExportCommand,
    LoadWeightsCommand,
    OpenWeightsCommand,
    SavedWeightsSnapshot,
    WeightsSnapshot,
)
from engine.protocol import SaveWeightsCommand as SaveCommand
from engine.system.errors import LabError
from engine.verifier.jobs import Converted, ConvertJob, Entry, WeightsJob, WeightsRead
from engine.verifier.values import entry
from tests.engine.handlers.test_export_handlers import SETUP, SMALL


def command(**fields: Any) -> ExportCommand:
    return ExportCommand(
        **{"model": SMALL, "training": SETUP, "format": "pt", "path": "p"} | fields
    )


@pytest.mark.parametrize(
    ("fields", "words", "hint"),
    [
        (
            {"format": "py", "dtype": "float16"},
            "Python code has no dtype to choose. Its numbers are none: the file has no weights.",
            "A dtype is for ",
        ),
        (
            {"format": "onnx", "dtype": "bfloat16", "verify": True},
            "ONNX Runtime has no bfloat16 on a CPU, so the file could not be run and verified.",
            "Choose float16",
        ),
        ({"opset": 18}, "Only ONNX has an opset.", "Leave the opset away."),
    ],
)
def test_options_that_a_format_does_not_have_are_refused(fields, words: str, hint: str) -> None:
    with pytest.raises(LabError) as raised:
        export._check_options(command(**fields))
    assert raised.value.hint.startswith(hint)
    told = str(raised.value)
    assert told == words or told.endswith(words.partition(" has ")[2])


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"dtype": "float16"},
        {"format": "onnx", "opset": 18},
        {"format": "onnx", "dtype": "bfloat16", "verify": False},
        {"format": "pt2", "dtype": "bfloat16", "verify": True},
        {"format": "onnx", "dtype": "float16", "verify": True},
    ],
)
def test_options_that_a_format_has_are_not(fields: dict[str, Any], monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    export._check_options(command(**fields))


def test_onnx_needs_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"onnx"}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name if name in there else None)
    assert export.refusal_of("pt2") is None
    refused = export.refusal_of("onnx")
    assert refused is not None and refused.hint == "pip install onnxscript onnxruntime"
    assert str(refused).endswith("that are not installed: onnxscript, onnxruntime.")
    with pytest.raises(LabError, match="not installed"):
        export._check_options(command(format="onnx"))
    there |= {"onnxscript", "onnxruntime"}
    assert export.refusal_of("onnx") is None


class Reader:
    """In place of the process that reads a file: the entries of a state, some changed."""

    def __init__(self, state: dict[str, torch.Tensor], **changes: Entry | None) -> None:
        entries = {name: entry(tensor) for name, tensor in state.items()}
        entries |= {name.replace("_", "."): made for name, made in changes.items()}  # type: ignore
        self.entries = {name: made for name, made in entries.items() if made is not None}
        self.asked: list[Any] = []

    def ask(self, job: Any) -> WeightsRead:
        self.asked.append(job)
        return WeightsRead(self.entries)


OTHER = Entry("float32", (10,), "another")


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({}, ""),
        ({"linear1_bias": OTHER}, "the tensor linear1.bias"),
        ({"linear1_weight": None, "linear1_bias": OTHER}, "the tensor linear1.weight"),
        ({"more": OTHER}, "the tensor more"),
    ],
)
def test_weights_are_verified_if_every_tensor_is_read_as_it_is(
    changes: dict[str, Entry | None], differs: str, tmp_path: Path
) -> None:
    lab = Lab(emit=lambda snapshot: None)
    module = lab.models.live_model(SMALL, SETUP.seed).module
    path = tmp_path / "w.pt"
    source: Any = Source(SimpleNamespace(module=module))  # pyright: ignore[reportArgumentType]
    reader: Any = Reader(own_state(module), **changes)
    work = Work(lab, command(path=str(path)), source, path, reader)
    assert list(weight_exports.write_and_read(work)) == [
        "Writing w.pt", "Reading it in a fresh process",
    ]  # fmt: skip
    result = work.result
    assert reader.asked == [WeightsJob("pt", str(path))] and result.stages == 2
    assert (result.verified, result.differs) == (not differs, differs)
    assert result.max_abs_error == result.max_rel_error == (math.inf if differs else 0.0)
    assert result.keys == tuple(module.state_dict()) and result.files == [path]


def test_the_stages_of_a_program_are_told_with_and_without_a_check(tmp_path: Path) -> None:
    lab = Lab(emit=lambda snapshot: None)
    asked = command(format="py", path=str(tmp_path / "m.py"), verify=False)
    *stages, told = export.export(lab, asked)
    assert [(each.words, each.done, each.stages) for each in stages] == [
        ("Running the model on a batch", 0, 2), ("Writing m.py", 1, 2),
    ]  # fmt: skip
    assert (told.opset, told.batch_sizes, told.differs, told.notes) == (0, (), "", ())
    assert told.model_ms == told.export_ms == told.max_abs_error == 0.0 and not told.verified
    assert [(file.name, file.size_bytes) for file in told.files] == [("m.py", told.size_bytes)]


def test_a_stop_ends_an_export_unless_it_is_meant_for_a_run(tmp_path: Path) -> None:
    lab = Lab(emit=lambda snapshot: None)
    asked = command(path=str(tmp_path / "w.pt"), verify=False)
    lab.control.stop.set()
    with pytest.raises(KeyboardInterrupt):
        list(export.export(lab, asked))
    lab.is_training = True
    assert len(list(export.export(lab, asked))) == 2


@pytest.mark.parametrize(
    ("dtype", "words", "hint"),
    [
        (torch.float32, "batch: ZeroDivisionError: no", "Mend it, then export again."),
        (torch.float16, "batch in float16: ZeroDivisionError: no", "Export it without a dtype."),
        (torch.int64, "batch: ZeroDivisionError: no", "Mend it, then export again."),
    ],
)
def test_a_model_that_raises_on_its_batch_is_told_with_its_dtype(
    dtype: torch.dtype, words: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("no")

    monkeypatch.setattr(programs, "cases_of", fail)
    call: Any = SimpleNamespace(tensors=[torch.zeros(1).long(), torch.ones(2).to(dtype)])
    with pytest.raises(LabError) as raised:
        programs._cases(torch.nn.ReLU(), call)
    assert str(raised.value) == f"The model does not run on its {words}"
    assert raised.value.hint == hint


def test_saved_weights_tell_the_run_that_they_are_of(tmp_path: Path) -> None:
    lab = Lab(emit=lambda snapshot: None)
    asked = SaveCommand(model=SMALL, training=SETUP, path=os.fsencode(tmp_path / "w.safetensors"))
    assert list(weights.save_project_weights(lab, asked)) == [SavedWeightsSnapshot()]
    lab.run = SimpleNamespace(id="r", step=7)  # pyright: ignore[reportAttributeAccessIssue]
    (told,) = weights.save_project_weights(lab, asked)
    assert told == SavedWeightsSnapshot(run="r", step=7)


def test_of_many_names_that_do_not_fit_the_first_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "MAX_TOLD_KEYS", 1)
    lab = Lab(emit=lambda snapshot: None)
    torch.save({"a": torch.ones(1), "b": torch.ones(2)}, tmp_path / "w.pt")
    path = str(tmp_path / "w.pt")
    asked = LoadWeightsCommand(subject=CanvasSubject(), model=SMALL, training=SETUP, path=path)
    (told,) = weights.load_into_subject(lab, asked)
    assert (told.counts, told.loaded, told.matched) == ((2, 2, 0), False, 0)
    assert [fit.name for fit in told.missing] == ["linear1.weight"]
    assert [(fit.name, fit.shape) for fit in told.unexpected] == [("a", (1,))]


@pytest.mark.parametrize("is_fresh", [True, False])
@pytest.mark.parametrize("format", ["script", "pt2"])
def test_only_a_script_begins_with_fresh_weights(
    format: Any, is_fresh: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written gets a fresh subject: its module is not the live one."""
    lab = Lab(emit=lambda snapshot: None)
    live = lab.models.live_model(SMALL, SETUP.seed).module
    written: list[Any] = []

    def write(work: Work, *_: object) -> str:
        written.append(work.source.module)
        return ""

    monkeypatch.setattr(programs, "_write_program", write)
    monkeypatch.setattr(programs, "_write_python", write)
    asked = command(format=format, fresh=is_fresh, verify=False, path=str(tmp_path / "made.py"))
    list(export.export(lab, asked))
    (module,) = written
    assert (module is not live) is (is_fresh and format == "script")


def test_only_files_that_were_written_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(work: Work) -> Any:
        work.result.files = [tmp_path / "gone.pt", work.path, tmp_path]
        work.path.write_bytes(b"12345")
        yield "Writing"

    monkeypatch.setattr(export, "write_and_read", write)
    *_, told = export.export(
        Lab(emit=lambda snapshot: None), command(path=str(tmp_path / "w.pt"), verify=False)
    )
    assert [(file.name, file.size_bytes) for file in told.files] == [("w.pt", 5)]
    assert told.size_bytes == 5 and told.sha256 == hashlib.sha256(b"12345").hexdigest()


@pytest.mark.parametrize(
    ("asked", "given", "notes"),
    [
        (0, 18, []),
        (18, 18, []),
        (17, 18, ["The file has opset 18: torch could not convert this model to 17."]),
    ],
)
def test_another_opset_than_was_asked_for_is_told(
    asked: int, given: int, notes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[Any] = []

    def convert(job: ConvertJob) -> Converted:
        jobs.append(job)
        Path(job.path).write_bytes(b"onnx")
        return Converted(given)

    def save(file: BinaryIO) -> None:
        file.write(b"program")

    program = programs.Program(save, "fixed")
    monkeypatch.setattr(programs, "exported", lambda *_: program)
    monkeypatch.setattr(programs, "names_of_outputs", lambda *_: ("y",))
    converter: Any = SimpleNamespace(folder=tmp_path, ask=convert)
    source: Any = None
    asks = command(format="onnx", opset=asked)
    lab = Lab(emit=lambda snapshot: None)
    work = Work(lab, asks, source, tmp_path / "m.onnx", None, converter)
    call: Any = None
    found = programs._onnx(work, torch.nn.ReLU(), call)
    assert (work.result.opset, work.result.notes, found.fixed) == (given, notes, "fixed")
    assert [(job.outputs, job.opset) for job in jobs] == [(("y",), asked)]
    assert Path(jobs[0].source).read_bytes() == b"program"
    with (tmp_path / "made").open("wb") as file:
        found.save(file)
    assert (tmp_path / "made").read_bytes() == b"onnx"


def test_a_project_that_is_opened_has_the_weights_of_its_file_or_new_ones(tmp_path: Path) -> None:
    lab = Lab(emit=lambda snapshot: None)

    def live() -> dict[str, torch.Tensor]:
        return lab.models.live_model(SMALL, SETUP.seed).module.state_dict()

    def opened(path: str) -> WeightsSnapshot:
        fields: dict[str, Any] = {"model": SMALL, "training": SETUP}
        (told,) = weights.open_project_weights(
            lab, OpenWeightsCommand(**fields, path=os.fsencode(path))
        )
        assert isinstance(told, WeightsSnapshot)
        return told

    fresh = {name: tensor.clone() for name, tensor in live().items()}
    torch.save({name: torch.full_like(t, 5.0) for name, t in fresh.items()}, tmp_path / "w.pt")
    (tmp_path / "bad.pt").write_bytes(b"no weights")
    torch.save({"other": torch.ones(1)}, tmp_path / "other.pt")
    told = opened(str(tmp_path / "w.pt"))
    assert told.origin == "The weights of w.pt are loaded."
    assert told.parameters == sum(tensor.numel() for tensor in fresh.values())
    assert all(bool((tensor == 5.0).all()) for tensor in live().values())
    for name in ("bad.pt", "other.pt", ""):
        opened(str(tmp_path / "w.pt"))
        if name:
            with pytest.raises(LabError):
                opened(str(tmp_path / name))
        else:
            assert (opened("").origin, opened("").parameters) == ("", 0)
        assert all(torch.equal(tensor, fresh[key]) for key, tensor in live().items()), name
