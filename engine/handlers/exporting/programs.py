"""Exports of programs: a fresh process runs them with several batch sizes, and compares."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import torch
from torch import nn

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
from ...exporting.train_script import beside, write_script
from ...exporting.verifying import Refused, Verifier
from ...exporting.weights import writing
from ...protocol import ExportCommand
from ...protocol.exporting.formats import Format
from ...random_states import random_states, states_kept
from ...verifier.jobs import Converted, ConvertJob, Located, LocateJob, ProgramJob, ProgramRun
from ...verifier.values import Case, difference
from ...verifier.values import write as write_values
from ..subjects.subject import Drawn, Subject, first_weights
from .results import Result, Work
from .sources import Source

FREED_AT_ONCE_BYTES = 64 * 2**20
"""A program with more bytes of parameters is freed as soon as it is written."""


def write_and_run(work: Work) -> Iterator[str]:
    """Yields what is done next. Raises LabError if the format cannot hold the model, or the file
    cannot be written."""
    lab, command, result = work.lab, work.command, work.result
    result.stages = 3 if work.verifier else 2
    if command.format == "script" and command.fresh:
        work.source = Source(work.source.subject.fresh())
    yield "Running the model on a batch"
    with states_kept():  # the run that comes next draws the same
        call = work.source.subject.example()
    with lab.control.user_code():
        still = still_copy(work.source.module)  # a run may go on meanwhile
        cases = _cases(still, call)
        if command.dtype:
            call = call.cast(getattr(torch, command.dtype))
            before, cases = cases, _cases(still.to(getattr(torch, command.dtype)), call)
            result.notes.append(_told_cast(command.dtype, before, cases))
        result.keys = tuple(own_state(still))
    yield f"Writing {work.path.name}"
    with lab.control.user_code():
        fixed = _write(work, still, call)
    if sum(each.nbytes for each in still.parameters()) > FREED_AT_ONCE_BYTES:
        gc.collect()  # a program of torch is in circles of references, its tensors with it
    if work.verifier is None:
        return
    yield "Running it in a fresh process"
    if fixed:
        result.notes.append(fixed)
        cases = [case for case in cases if case.batch_size == call.size]
    with lab.control.user_code():
        _compare(work, work.verifier, still, cases)


def _cases(still: nn.Module, call: Example) -> list[Case]:
    try:
        return cases_of(still, call)
    except Exception as error:
        floats = (each.dtype for each in call.tensors if each.is_floating_point())
        dtype = next(floats, torch.float32)
        inside = "" if dtype == torch.float32 else f" in {str(dtype).removeprefix('torch.')}"
        raise LabError(
            f"The model does not run on its batch{inside}: {type(error).__name__}: {error}",
            hint="Mend it, then export again." if not inside else "Export it without a dtype.",
        ) from error


def _told_cast(dtype: str, before: list[Case], after: list[Case]) -> str:
    """How far the outputs are from those before the cast, but for random ones."""
    apart = [
        difference(x, y)
        for one, other in zip(before, after, strict=False)
        for x, y, drawn in zip(one.outputs, other.outputs, one.drawn, strict=False)
        if not drawn
    ]
    if not apart:
        return f"Its numbers are {dtype}."
    largest = max(each.absolute for each in apart)
    return (
        f"Its numbers are {dtype}, and so are those that it takes: its outputs are at most"
        f" {largest:.3g} away from those of the model."
    )


def _write(work: Work, still: nn.Module, call: Example) -> str:
    """Write the files; returns why the number of samples is fixed, "" if it is free."""
    command, source, path = work.command, work.source, work.path
    work.result.files = [path]
    if command.format in ("py", "script"):
        work.result.files = _write_python(command.format, source.subject, call, path)
        return ""
    if command.format == "zip":
        code, fixed = source.subject.package_code(still, call)
        with writing(path) as file:
            package.write_archive(
                file, source.subject.title, code, own_state(still), call, command.dtype
            )
        return fixed
    if command.format == "onnx":
        program = _onnx(work, still, call)
    else:
        program = _program(command.format, still, call)
    with writing(path) as file:
        program.save(file)
    return program.fixed


def _program(format: Format, still: nn.Module, call: Example) -> Program:
    if format == "torchscript-script":
        return scripted(still)
    return traced(still, call) if format == "torchscript-trace" else exported(still, call)


def _write_python(format: Format, subject: Subject, call: Example, path: Path) -> list[Path]:
    if format == "py":
        save_code(subject.python, subject.module, call.args, path)
        return [path]
    with states_kept():
        before = random_states()
        objective = subject.objective()
        drawn = Drawn(before, random_states())
    text, data = subject.script(objective, drawn, path)
    subject.prove(text, path)
    write_script(text, first_weights(subject.module), data, path)
    return [path, beside(path)]


def _onnx(work: Work, still: nn.Module, call: Example) -> Program:
    """The program in ONNX, which a process of its own converts: it takes long, and the one that
    verifies is to know nothing of it. Raises LabError."""
    converter, opset = work.converter, work.command.opset
    assert converter is not None
    program = exported(still, call, ONNX_BY_EXPORT)
    source, converted = converter.folder / "program.pt2", converter.folder / "program.onnx"
    with source.open("wb") as file:
        program.save(file)
    names = names_of_outputs(still, call)
    try:
        answer = converter.ask(ConvertJob(str(source), str(converted), names, opset))
    except Refused as refused:
        raise refusal(ONNX, refused, refused.error) from refused
    assert isinstance(answer, Converted)
    work.result.opset = answer.opset
    if opset and answer.opset != opset:
        work.result.notes.append(
            f"The file has opset {answer.opset}: torch could not convert this model to {opset}."
        )

    def save(file: BinaryIO) -> None:
        with converted.open("rb") as made:
            shutil.copyfileobj(made, file)

    return Program(save, program.fixed)


def _compare(work: Work, verifier: Verifier, still: nn.Module, cases: list[Case]) -> None:
    command, path, result = work.command, work.path, work.result
    weights = ""
    if command.format == "py":  # a file of Python has none
        weights = str(verifier.folder / "weights.pt")
        torch.save(own_state(still), weights)
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
