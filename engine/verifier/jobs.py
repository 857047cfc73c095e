"""Jobs for the process, and its answers: one JSON text a line."""

from __future__ import annotations

import msgspec
from msgspec import Struct


class WeightsJob(Struct, frozen=True, tag=True):
    """Read the tensors of a file or folder -> WeightsRead."""

    format: str
    path: str


class ProgramJob(Struct, frozen=True, tag=True):
    """Run a program on each of the `cases` (a file of `values.write`) -> ProgramRun. `weights` is a
    state_dict for a program that has none."""

    format: str
    path: str
    cases: str
    weights: str = ""


class LocateJob(Struct, frozen=True, tag=True):
    """Find the first module of a program whose output differs from the one in `calls`, a file of
    the live modules' calls -> Located."""

    format: str
    path: str
    calls: str
    weights: str = ""


class ConvertJob(Struct, frozen=True, tag=True):
    """Convert a program of torch.export (`source`) to ONNX at `path` -> Converted. `opset` 0 is
    torch's own."""

    source: str
    path: str
    outputs: list[str]
    opset: int = 0


class Entry(Struct, frozen=True):
    """A tensor that was read."""

    dtype: str
    shape: tuple[int, ...]
    digest: str


class WeightsRead(Struct, frozen=True, tag=True):
    tensors: dict[str, Entry]


class CaseRun(Struct, frozen=True):
    """How a program ran with one batch size. The errors are over all outputs that are not drawn at
    random; `agrees`: they are in the tolerance of their dtype. `problem` is what it raised."""

    batch_size: int
    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    agrees: bool = False
    problem: str = ""


class ProgramRun(Struct, frozen=True, tag=True):
    """`seconds` is the time of one call with the last case, the shortest of some."""

    cases: list[CaseRun]
    seconds: float = 0.0


class Located(Struct, frozen=True, tag=True):
    """The path of a module, "" for the whole model's own forward. None: no module differs, or none
    could be compared."""

    path: str | None


class Converted(Struct, frozen=True, tag=True):
    """`opset` is the one that the file has."""

    opset: int


class Failed(Struct, frozen=True, tag=True):
    """`error` is the name of the exception's class."""

    error: str
    message: str


Job = WeightsJob | ProgramJob | LocateJob | ConvertJob
Answer = WeightsRead | ProgramRun | Located | Converted | Failed

encode = msgspec.json.Encoder().encode
decode_job = msgspec.json.Decoder(Job).decode
decode_answer = msgspec.json.Decoder(Answer).decode
