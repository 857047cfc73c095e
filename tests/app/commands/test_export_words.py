"""What `export` asks of its engine, and what it says of each end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app import templates
from app.commands import export as exports
from app.commands.conversation import EngineEnded
from app.commands.export import ExportOptions, export
from app.commands.failures import BAD_ARGUMENTS, CommandFailure
from app.commands.target import Target
from app.processes.exit_reasons import ExitReason
from engine.project.subject import FileSubject
from engine.protocol import (
    Command,
    ErrorReport,
    ErrorSnapshot,
    ExportCommand,
    ExportSnapshot,
    ExportStageSnapshot,
    OutputSnapshot,
)

MLP = templates.load_template("mlp")
PRINTED = OutputSnapshot(stream="stdout", text="printed\n")
STAGE = ExportStageSnapshot(words="Writing", done=1, stages=2)
FAILED = ErrorSnapshot(command="ExportCommand", error=ErrorReport("LabError", "No model."))


def done(**fields: Any) -> ExportSnapshot:
    told = {
        "path": "/w.pt", "format": "pt", "size_bytes": 9, "sha256": "ab", "verified": True,
        "max_abs_error": 0.0, "keys": ("w",),
    }  # fmt: skip
    return ExportSnapshot(**{**told, **fields})


class Engine:
    def __init__(self, *answers: Any, interrupted: bool = False) -> None:
        self.answers, self.interrupted = answers, interrupted
        self.asked: list[Command] = []

    def __call__(self, doing: str) -> Engine:
        assert doing == "exporting"
        return self

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_) -> None:
        pass

    def ask(self, command: Command):
        self.asked.append(command)
        for answer in self.answers:
            if isinstance(answer, Exception):
                raise answer
            yield answer

    @property
    def command(self) -> ExportCommand:
        command = self.asked[-1]  # code is run before
        assert isinstance(command, ExportCommand)
        return command


@pytest.fixture
def engine(monkeypatch):
    def use(*answers: Any, interrupted: bool = False) -> Engine:
        made = Engine(*answers, interrupted=interrupted)
        monkeypatch.setattr(exports, "Conversation", made)
        return made

    return use


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return Target("net.tlab", tmp_path / "net.tlab", MLP)


def test_the_format_is_that_of_the_suffix_or_the_one_given(engine, target, tmp_path, capsys):
    told = engine(PRINTED, STAGE, done())
    export(target, ExportOptions(out=tmp_path / "w.onnx", opset=18), None)
    command = told.command
    assert (command.format, command.path) == ("onnx", str(tmp_path / "w.onnx"))
    assert (command.opset, command.dtype, command.weights) == (18, "", "")
    assert (command.model, command.training) == (MLP.model, MLP.training)
    said = capsys.readouterr()
    assert said.err == "printed\n"  # stages are for a terminal
    assert said.out.startswith("wrote /w.pt: 9 bytes, SHA-256 ab\nloaded back and compared: ")
    told = engine(done())
    export(target, ExportOptions(out=tmp_path / "w", format="pt", dtype="float16"), "-")
    assert (told.command.format, told.command.dtype) == ("pt", "float16")
    assert json.loads(capsys.readouterr().out)["sha256"] == "ab"


def test_stages_are_told_on_a_terminal(engine, target, tmp_path, capsys, monkeypatch):
    engine(STAGE, done())
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    export(target, ExportOptions(out=tmp_path / "w.pt"), None)
    assert capsys.readouterr().err == "Writing …\n"


def test_weights_are_those_given_or_those_beside_the_project(engine, target, tmp_path):
    beside, other = tmp_path / "net.safetensors", tmp_path / "other.pt"
    for path in (beside, other):
        path.write_bytes(b"weights")
    code = target._replace(subject=FileSubject("net.py", "Net()"))
    for of, options, weights in (
        (target, ExportOptions(out=tmp_path / "w.pt"), str(beside)),
        (target, ExportOptions(out=tmp_path / "w.pt", weights=other), str(other)),
        (target, ExportOptions(out=tmp_path / "w.py"), ""),  # Python has no weights
        (target, ExportOptions(out=tmp_path / "w.py", weights=other), str(other)),
        (code, ExportOptions(out=tmp_path / "w.pt"), ""),
    ):
        told = engine(done())
        export(of, options, None)
        assert told.command.weights == weights
        assert told.command.subject == of.subject


ENDED = EngineEnded(ExitReason("The engine crashed", "It was exporting.", ""), None)


@pytest.mark.parametrize(
    ("answers", "interrupted", "words"),
    [
        ((), False, "{path}: the export was stopped."),
        ((FAILED,), False, "{path}: No model."),
        ((FAILED,), True, "{path}: the export was stopped."),
        ((ENDED,), False, "{path}: The engine crashed. It was exporting."),
        ((done(verified=False, differs="conv1"),), False,
         "{out}: what was read back differs in conv1."),
    ],
)  # fmt: skip
def test_an_export_that_ends_otherwise_says_so(
    engine, target, tmp_path, answers, interrupted, words
):
    out = tmp_path / "w.pt"
    engine(*answers, interrupted=interrupted)
    with pytest.raises(CommandFailure) as failed:
        export(target, ExportOptions(out=out), None)
    assert str(failed.value) == words.format(path=target.path, out=out)
    assert failed.value.exit_code == 1


def test_what_cannot_be_written_is_refused_before(engine, target, tmp_path):
    told = engine(done())
    missing = tmp_path / "no.pt"
    for options, words in (
        ({"out": tmp_path / "w.pt", "weights": missing}, f"--weights {missing}: there is no"),
        ({"out": tmp_path / "w.h5"}, f"--out {tmp_path / 'w.h5'}: the name must end in .pt"),
        ({"out": tmp_path, "format": "pt"}, f"--out {tmp_path}: this is a folder."),
        ({"out": tmp_path / "no" / "w.pt"}, f"--out {tmp_path / 'no' / 'w.pt'}: the folder"),
    ):
        with pytest.raises(CommandFailure) as failed:
            export(target, ExportOptions(**options), None)
        assert str(failed.value).startswith(words) and failed.value.exit_code == BAD_ARGUMENTS
    assert told.asked == []
    export(target, ExportOptions(out=tmp_path, format="hf"), None)  # that is a folder
    assert told.command.format == "hf"
