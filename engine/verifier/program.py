"""`python -m engine.verifier.program`: answers jobs from standard input on standard output, until
the input ends."""

from __future__ import annotations

import os
import warnings
from time import perf_counter

import torch

from . import weights_readers
from .jobs import (
    Answer,
    CaseRun,
    ConvertJob,
    Failed,
    Job,
    LocateJob,
    ProgramJob,
    ProgramRun,
    WeightsJob,
    WeightsRead,
    decode_job,
    encode,
)
from .programs import open_program
from .values import Case, difference, entry, leaves, read_cases

TIMED_CALLS = 5


def main() -> None:
    jobs = os.fdopen(os.dup(0), "rb")  # exit() in a program closes sys.stdin
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what libraries print is no answer
    warnings.simplefilter("ignore")  # torch.jit is deprecated; its files stay
    for line in jobs:
        try:
            answer = _answer(decode_job(line))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # told by the process that asked
            answer = Failed(type(error).__name__, str(error))
        answers.write(encode(answer) + b"\n")


def _answer(job: Job) -> Answer:
    match job:
        case WeightsJob():
            state = weights_readers.read(job.format, job.path)
            return WeightsRead({name: entry(tensor) for name, tensor in state})
        case ProgramJob():
            return _run(job)
        case LocateJob():
            from .locating import locate

            return locate(job)
        case ConvertJob():
            from .converting import convert

            return convert(job)


def _run(job: ProgramJob) -> ProgramRun:
    program = open_program(job.format, job.path, job.weights)
    cases = read_cases(job.cases)
    runs, times = [], []
    for case in cases:
        try:
            runs.append(_compared(program, case, is_onnx=job.format == "onnx"))
            if case is cases[-1]:
                times = [_timed(program, case) for _ in range(TIMED_CALLS)]
        except (Exception, SystemExit) as error:  # it does not take this batch size
            runs.append(CaseRun(case.batch_size, problem=f"{type(error).__name__}: {error}"))
    return ProgramRun(runs, min(times, default=0.0))


def _compared(program, case: Case, is_onnx: bool) -> CaseRun:
    """Two runs, with two seeds: an output that the model draws at random is compared in the first.
    ONNX Runtime draws random numbers of its own: of outputs that depend on them, only the shape is
    compared."""
    absolute = relative = 0.0
    agrees = True
    for is_first, seed in ((True, case.seed), (False, case.seed + 1)):
        torch.manual_seed(seed)
        with torch.no_grad():
            found = leaves(program(*case.args, **case.kwargs))
        if len(found) != len(case.outputs):
            raise ValueError(f"{len(found)} outputs instead of {len(case.outputs)}")
        for expected, output, drawn in zip(case.outputs, found, case.drawn, strict=True):
            if drawn and (is_onnx or not is_first):
                agrees = agrees and (expected.shape == output.shape or not is_onnx)
                continue
            apart = difference(expected, output)
            absolute, relative = max(absolute, apart.absolute), max(relative, apart.relative)
            agrees = agrees and apart.agrees
    return CaseRun(case.batch_size, absolute, relative, agrees)


def _timed(program, case: Case) -> float:
    begun = perf_counter()
    with torch.no_grad():
        program(*case.args, **case.kwargs)
    return perf_counter() - begun


if __name__ == "__main__":
    main()
