"""Exports of programs: a fresh process runs them with several batch sizes, and compares."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import torch
from torch import nn

from ...exporting import package
from ...exporting.code_export import save_code
from ...exporting.examples import (
    Example,
    calls_of,
    cases_of,
    first_random,
    names_of_outputs,
    seconds_of,
    still,
)
from ...exporting.programs import Program, exported, scripted, traced
from ...exporting.refusals import ONNX, ONNX_BY_EXPORT, refusal
from ...exporting.state import own_state
from ...exporting.train_script import beside, write_script
from ...exporting.verifying import Refused, Verifier
from ...exporting.weights import writing
from ...protocol import ExportCommand
from ...protocol.exporting.formats import Format
from ...recording.compiled import unwrapped
from ...restoring.random_states import random_states, states_kept
from ...system.errors import LabError
from ...verifier.jobs import Converted, ConvertJob, Located, LocateJob, ProgramJob, ProgramRun
from ...verifier.values import Case, difference
from ...verifier.values import write as write_values
from ..subjects.subject import Drawn, first_weights
from .results import Result, Work
from .sources import Source

FREED_AT_ONCE_BYTES = 64 * 2**20
"""A program with more bytes of parameters is freed as soon as it is written."""


def write_and_run(work: Work) -> Iterator[str]:
    """Yields what is done next. Raises LabError if the format cannot hold the model, or the file
    cannot be written."""
    command, result = work.command, work.result
    result.stages = 3 if work.verifier else 2
    if command.format == "script" and command.fresh:
        work.source = Source(work.source.subject.fresh())
    yield "Running the model on a batch"
    with states_kept():  # the run that comes next draws the same
        call = work.source.subject.example()
    with _still(work, "") as module:
        cases = _cases(module, call)
    if command.dtype:
        call = call.cast(getattr(torch, command.dtype))
        with _still(work, command.dtype) as module:
            before, cases = cases, _cases(module, call)
        result.notes.append(_told_cast(command.dtype, before, cases))
    yield f"Writing {work.path.name}"
    with _still(work, command.dtype) as module:  # whose buffers are as before the runs
        result.keys = tuple(own_state(module))
        if command.format not in ("py", "script"):
            fixed = _write_program(work, module, call)
    if command.format in ("py", "script"):
        fixed = _write_python(work, call)
    if sum(each.nbytes for each in work.source.module.parameters()) > FREED_AT_ONCE_BYTES:
        gc.collect()  # a program of torch is in circles of references, its tensors with it
    if work.verifier is None:
        return
    yield "Running it in a fresh process"
    if fixed:
        result.notes.append(fixed)
        cases = [case for case in cases if case.batch_size == call.size]
    _compare(work, work.verifier, cases)


@contextmanager
def _still(work: Work, dtype: str) -> Iterator[nn.Module]:
    """The module of the user, which is `still` in this context, where an interrupt ends what runs
    of it. Nothing is yielded to the session inside: a run that goes on trains the module."""
    with (
        states_kept(),
        still(work.source.module, dtype) as module,
        work.lab.control.user_code(),
    ):
        yield module


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
    kept = {
        output.dtype
        for case in after
        for output in case.outputs
        if output.is_floating_point() and output.dtype != getattr(torch, dtype)
    }
    more = "".join(
        f" It gives {str(each).removeprefix('torch.')} all the same: its code casts, or computes"
        " with tensors that are no parameters or buffers of it, which stay as they are."
        for each in kept
    )
    if not apart:
        return f"Its numbers are {dtype}.{more}"
    largest = max(each.absolute for each in apart)
    return (
        f"Its numbers are {dtype}, and so are those that it takes: its outputs are at most"
        f" {largest:.3g} away from those of the model.{more}"
    )


def _write_program(work: Work, still: nn.Module, call: Example) -> str:
    """Write the file; returns why the number of samples is fixed, "" if it is free."""
    command, source, path = work.command, work.source, work.path
    work.result.files = [path]
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


def _write_python(work: Work, call: Example) -> str:
    """Write the files; their number of samples is free."""
    subject, path = work.source.subject, work.path
    if work.command.format == "py":
        work.result.files = [path]
        with work.lab.control.user_code():
            save_code(subject.python, subject.module, call.args, path)
        return ""
    work.result.files = [path, beside(path)]
    with work.lab.control.user_code():
        with states_kept():
            before = random_states()
            objective = subject.objective()
            drawn = Drawn(before, random_states())
        text, data = subject.script(objective, drawn, path)
        subject.prove(text, path)
        write_script(text, first_weights(subject.module), data, path)
    return ""


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


def _compare(work: Work, verifier: Verifier, cases: list[Case]) -> None:
    command, path, result = work.command, work.path, work.result
    weights = ""
    told = verifier.folder / "cases.pt"
    write_values(told, cases)
    with _still(work, command.dtype) as module:
        if command.format == "py":  # a file of Python has none
            weights = str(verifier.folder / "weights.pt")
            torch.save(own_state(module), weights)
        result.model_s = seconds_of(module, cases[-1])
        result.unverified = _told_random(module, cases)
    try:
        with work.lab.control.user_code():
            run = verifier.ask(ProgramJob(command.format, str(path), str(told), weights))
    except Refused as refused:
        result.differs = "the whole file"
        result.notes.append(f"It cannot be opened: {refused.error}: {_first_line(str(refused))}")
        return
    assert isinstance(run, ProgramRun)
    result.max_abs_error = max(case.max_abs_error for case in run.cases)
    result.max_rel_error = max(case.max_rel_error for case in run.cases)
    result.batch_sizes = list(
        dict.fromkeys(case.batch_size for case in run.cases if not case.problem)
    )
    result.export_s = run.seconds
    wrong = next((n for n, case in enumerate(run.cases) if not case.agrees), None)
    result.verified = wrong is None and not result.unverified
    _note_random(command, cases[-1], result)
    if wrong is None:
        return
    if run.cases[wrong].problem:
        size, problem = cases[wrong].batch_size, _first_line(run.cases[wrong].problem)
        samples = "1 sample" if size == 1 else f"{size} samples"
        result.differs = f"the run with {samples}"
        result.notes.append(f"With {samples} it raises {problem}")
        return
    calls = verifier.folder / "calls.pt"
    with _still(work, command.dtype) as module:
        write_values(calls, calls_of(module, cases[wrong]))
    try:
        with work.lab.control.user_code():
            found = verifier.ask(LocateJob(command.format, str(path), str(calls), weights))
        assert isinstance(found, Located)
        result.differs = _where(found.path, unwrapped(work.source.module))
    except Refused as refused:
        result.differs = "the output"
        result.notes.append(f"The module that differs was not found: {_first_line(str(refused))}")


def _told_random(module: nn.Module, cases: list[Case]) -> str:
    """That the module itself draws at random, and where; "" if it does not."""
    case = next((case for case in cases if any(case.drawn)), None)
    if case is None:
        return ""
    path = first_random(module, case)
    words = "The model itself gives different outputs in two runs in eval mode"
    if path is None:
        return f"{words}."
    if not path:
        return f"{words}: its own forward does, {type(module).__name__}.forward."
    part = type(module.get_submodule(path)).__name__
    return f"{words}: the first module to do so is {path} ({part})."


def _note_random(command: ExportCommand, case: Case, result: Result) -> None:
    """What was compared of outputs that are drawn at random."""
    if not any(case.drawn):
        return
    how = (
        "by ONNX Runtime from other numbers: only their shapes were compared."
        if command.format == "onnx"
        else "and were compared with the same seed."
    )
    result.notes.append(
        f"{sum(case.drawn)} of {len(case.drawn)} outputs are drawn at random, {how}"
    )


def _where(path: str | None, module: nn.Module) -> str:
    if path is None:
        return "the output; no module of the file could be compared by itself"
    if not path:
        return f"{type(module).__name__}.forward; the modules inside agree"
    return f"{path} ({type(module.get_submodule(path)).__name__})"


def _first_line(text: str) -> str:
    """The line of an error that says what happened: TorchScript has it at the end."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    line = lines[-1] if "TorchScript interpreter" in lines[0] else lines[0]
    return line if len(line) <= 300 else f"{line[:300]}…"
