"""Exports of programs: a fresh process runs them with several batch sizes, and compares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn

from ...datasets.load import load_dataset
from ...errors import LabError
from ...exporting import package
from ...exporting.code_export import save_code
from ...exporting.examples import (
    Example,
    calls_of,
    cases_of,
    names_of_outputs,
    seconds_of,
    still_copy,
)
from ...exporting.programs import Program, exported, scripted, traced
from ...exporting.refusals import ONNX, ONNX_BY_EXPORT, refusal
from ...exporting.state import own_state
from ...exporting.train_script import save_script, script_of
from ...exporting.verifying import Refused, Verifier
from ...exporting.weights import write
from ...lab import Lab
from ...models.check import check
from ...models.live import LiveModel
from ...project.edits import loss_call
from ...protocol import ExportCommand
from ...protocol.exporting.formats import Format
from ...subjects.subject import CanvasModel
from ...verifier.jobs import Converted, ConvertJob, Located, LocateJob, ProgramJob, ProgramRun
from ...verifier.values import Case
from ...verifier.values import write as write_values
from .results import Result
from .sources import Source, code_of, example, example_inputs


def write_and_run(
    lab: Lab,
    command: ExportCommand,
    source: Source,
    path: Path,
    verifier: Verifier | None,
    result: Result,
) -> Iterator[str]:
    """Yields what is done next. Raises LabError if the format cannot hold the model, or the file
    cannot be written."""
    result.stages = 3 if verifier else 2
    if command.format == "script" and command.fresh:
        source = Source(CanvasModel(LiveModel(command.model, command.training.seed)))
    yield "Running the model on a batch"
    call = example(lab, command, source)
    with lab.control.user_code():
        still = still_copy(source.module)
        try:
            cases = cases_of(still, call)
        except Exception as error:
            raise LabError(
                f"The model does not run on its batch: {type(error).__name__}: {error}",
                hint="Mend it, then export again.",
            ) from error
        result.keys = tuple(own_state(source.module))
    yield f"Writing {path.name}"
    with lab.control.user_code():
        fixed = _write(lab, command, source, still, call, path, verifier, result)
    if verifier is None or not command.verify:
        return
    yield "Running it in a fresh process"
    if fixed:
        result.notes.append(fixed)
        cases = [case for case in cases if case.batch_size == call.size]
    with lab.control.user_code():
        _compare(command, source, still, cases, path, verifier, result)


def _write(
    lab: Lab,
    command: ExportCommand,
    source: Source,
    still: nn.Module,
    call: Example,
    path: Path,
    verifier: Verifier | None,
    result: Result,
) -> str:
    """Write the files; returns why the number of samples is fixed, "" if it is free."""
    result.files = [path]
    if command.format in ("py", "script"):
        result.files = _write_python(command, source, path)
        return ""
    fixed = ""
    if command.format == "zip":
        code, fixed = code_of(lab, command, source, still, call)
        state = own_state(source.module)
        data = package.archive(source.subject.title, code, state, call)
    elif command.format == "onnx":
        assert verifier is not None
        data, fixed = _onnx(command, still, call, verifier, result)
    else:
        data, fixed = _program(command.format, still, call)
    write(path, data)
    return fixed


def _program(format: Format, still: nn.Module, call: Example) -> Program:
    if format == "torchscript-script":
        return scripted(still)
    return traced(still, call) if format == "torchscript-trace" else exported(still, call)


def _write_python(command: ExportCommand, source: Source, path: Path) -> list[Path]:
    assert isinstance(source.subject, CanvasModel)
    live, training = source.subject.live, command.training
    code = check(command.model, training).code
    if command.format == "py":
        save_code(code, live.module, example_inputs(live), path)
        return [path]
    loss, params = loss_call(command.model, training)
    dataset = load_dataset(training.data)
    text = script_of(code, training, loss, params, dataset, path, live.module)
    save_script(text, live.module, example_inputs(live), dataset, path)
    return [path, path.with_suffix(".data.pt")]


def _onnx(
    command: ExportCommand,
    still: nn.Module,
    call: Example,
    verifier: Verifier,
    result: Result,
) -> Program:
    """The program in ONNX, which another process converts: it takes long. Raises LabError."""
    program = exported(still, call, ONNX_BY_EXPORT)
    source, converted = verifier.folder / "program.pt2", verifier.folder / "program.onnx"
    source.write_bytes(program.data)
    names = names_of_outputs(still, call)
    try:
        answer = verifier.ask(ConvertJob(str(source), str(converted), names, command.opset))
    except Refused as refused:
        raise refusal(ONNX, refused, refused.error) from refused
    assert isinstance(answer, Converted)
    result.opset = answer.opset
    if command.opset and answer.opset != command.opset:
        result.notes.append(
            f"The file has opset {answer.opset}: torch could not convert this model to"
            f" {command.opset}."
        )
    return Program(converted.read_bytes(), program.fixed)


def _compare(
    command: ExportCommand,
    source: Source,
    still: nn.Module,
    cases: list[Case],
    path: Path,
    verifier: Verifier,
    result: Result,
) -> None:
    weights = ""
    if command.format == "py":  # a file of Python has none
        weights = str(verifier.folder / "weights.pt")
        torch.save(own_state(source.module), weights)
    told = verifier.folder / "cases.pt"
    write_values(told, cases)
    try:
        run = verifier.ask(ProgramJob(command.format, str(path), str(told), weights))
    except Refused as refused:
        result.differs = "the whole file"
        result.notes.append(f"It cannot be opened: {refused.error}: {_first_line(str(refused))}")
        return
    assert isinstance(run, ProgramRun)
    result.max_abs_error = max(case.max_abs_error for case in run.cases)
    result.max_rel_error = max(case.max_rel_error for case in run.cases)
    result.batch_sizes = [case.batch_size for case in run.cases if not case.problem]
    result.model_s, result.export_s = seconds_of(still, cases[-1]), run.seconds
    result.verified = all(case.agrees for case in run.cases)
    _note_random(command, cases[-1], result)
    wrong = next((n for n, case in enumerate(run.cases) if not case.agrees), None)
    if wrong is None:
        return
    if run.cases[wrong].problem:
        size, problem = cases[wrong].batch_size, _first_line(run.cases[wrong].problem)
        samples = "1 sample" if size == 1 else f"{size} samples"
        result.differs = f"the run with {samples}"
        result.notes.append(f"With {samples} it raises {problem}")
        return
    calls = verifier.folder / "calls.pt"
    write_values(calls, calls_of(still, cases[wrong]))
    try:
        found = verifier.ask(LocateJob(command.format, str(path), str(calls), weights))
        assert isinstance(found, Located)
        result.differs = _where(found.path, still)
    except Refused as refused:
        result.differs = "the output"
        result.notes.append(f"The module that differs was not found: {_first_line(str(refused))}")


def _note_random(command: ExportCommand, case: Case, result: Result) -> None:
    """ONNX Runtime draws other random numbers than torch."""
    if command.format != "onnx" or not any(case.drawn):
        return
    result.notes.append(
        f"{sum(case.drawn)} of {len(case.drawn)} outputs are drawn at random, by ONNX Runtime from"
        " other numbers: only their shapes were compared."
    )
    result.verified = result.verified and not all(case.drawn)


def _where(path: str | None, still: nn.Module) -> str:
    if path is None:
        return "the output; no module of the file could be compared by itself"
    if not path:
        return f"{type(still).__name__}.forward; the modules inside agree"
    return f"{path} ({type(still.get_submodule(path)).__name__})"


def _first_line(text: str) -> str:
    """The line of an error that says what happened: TorchScript has it at the end."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    line = lines[-1] if "TorchScript interpreter" in lines[0] else lines[0]
    return line if len(line) <= 300 else f"{line[:300]}…"
