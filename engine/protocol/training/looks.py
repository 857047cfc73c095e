"""How the parameters of a run moved: norms by module, and histograms."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ..commands import Command
from ..dataset_messages import SampleImage
from ..snapshots import Snapshot

MAX_LINES = 12
"""The most lines that are drawn at once."""
MAX_NAMES = 1000
EACH_MODULE = 99
"""Deeper than any module: each has a line of its own."""
BINS = 64
MAX_IMAGE_STEPS = 12


HistogramKind = Literal["weights", "gradients", "logged"]


class ReadModuleNormsCommand(Command, frozen=True, kw_only=True):
    """Read the norms of a run's modules from its folder -> ModuleNormsSnapshot; an empty one for
    the folder "", that of no run. With `of_loop` those of the newest loop of a cell or file.

    A module is named by the first `depth` parts of its path, 0 being the whole model; with
    `by_parameter` each parameter has a line. `names` says which lines are wanted, else the first
    MAX_LINES.
    """

    handler = "training.pictures.looks:read_module_norms"
    newest_only = True
    while_running = True
    folder: str
    depth: int = EACH_MODULE
    by_parameter: bool = False
    names: tuple[str, ...] = ()
    of_loop: bool = False


class NormLine(Struct, frozen=True):
    """The 2-norms of a module's gradients (before clipping), of its weights (before the update) and
    of the update, one for each step; NaN where there is none."""

    name: str
    gradient: tuple[float, ...]
    weight: tuple[float, ...]
    update: tuple[float, ...]


class ModuleNormsSnapshot(Snapshot, frozen=True, kw_only=True):
    """`names` are all lines that there are, `deepest` the number of parts of the longest path."""

    folder: str
    steps: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    deepest: int = 0
    lines: tuple[NormLine, ...] = ()


class ReadHistogramsCommand(Command, frozen=True, kw_only=True):
    """Read the histograms of one parameter of a run, or of its gradient, from the run's folder ->
    HistogramsSnapshot; an empty one for the folder "". An unknown `name` stands for the first
    parameter. With `of_loop` those of the newest loop of a cell or file, or of a script; of the
    kind "logged" what it has given to `lab.log`, also if nothing else was looked at."""

    handler = "training.pictures.looks:read_histograms"
    newest_only = True
    while_running = True
    folder: str
    name: str = ""
    kind: HistogramKind = "weights"
    of_loop: bool = False


class LoggedImages(Struct, frozen=True):
    """Images of one step: the first of `count` in a tensor of shape `shape`, made smaller if they
    are large. Black is the number `low`, white `high`."""

    step: int
    shape: tuple[int, ...]
    count: int
    low: float
    high: float
    images: tuple[SampleImage, ...]


class ReadImagesCommand(Command, frozen=True, kw_only=True):
    """Read the images that the newest loop of a cell, a file or a script has given to `lab.log`
    under one name -> ImagesSnapshot. An unknown `name` stands for the first."""

    handler = "training.pictures.looks:read_images"
    newest_only = True
    while_running = True
    name: str = ""


class ImagesSnapshot(Snapshot, frozen=True, kw_only=True):
    """The images of MAX_IMAGE_STEPS steps at the most, under the name `name` of `names`."""

    name: str = ""
    names: tuple[str, ...] = ()
    steps: tuple[LoggedImages, ...] = ()


class HistogramsSnapshot(Snapshot, frozen=True, kw_only=True):
    """The histograms of the parameter or logged tensor `name`, one of the `names` that were looked
    at. For each of `steps`, `counts` has BINS little-endian uint32 of equal bins from `lows` to
    `highs`, the lowest and the highest finite element; if these are equal, the first bin has all.
    `others` are not finite."""

    folder: str
    name: str = ""
    kind: HistogramKind = "weights"
    names: tuple[str, ...] = ()
    steps: tuple[int, ...] = ()
    lows: tuple[float, ...] = ()
    highs: tuple[float, ...] = ()
    others: tuple[int, ...] = ()
    counts: bytes = b""
