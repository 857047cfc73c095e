"""Arguments of `lab.log` besides numbers: tensors, their histograms, and images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil
from time import perf_counter
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from ..protocol import LoggedImages
from ..runs.parameter_figures import Histogram, spread
from ..tensors.readable import readable
from ..training.looks.histograms import histogram as counts_of
from .hooks import is_out_of_reach, quiet
from .images import is_image, look_at_images

SHARE = 0.01
"""Copying and counting take at most this share of a loop's time, but for the first looks."""
FREE_LOOKS = 16
"""The first looks at each name, which are free: many loops are over in a second."""
MAX_COUNTED = 1 << 22
"""The most elements that are counted. Of a larger tensor every second, third ... element is
counted."""
MAX_KEPT_BYTES = 1 << 22
"""The newest tensor of a name is kept up to this size."""
MAX_HISTOGRAMS, MAX_IMAGES = 256, 64
"""The most steps of one name. Beyond that half of them stay, evenly over the steps."""


class Logged(NamedTuple):
    """A tensor, and how it is to be logged."""

    kind: Literal["tensor", "histogram", "image"]
    values: Any


def histogram(values: Any) -> Logged:
    """`lab.log(outputs=lab.histogram(x))` draws the elements of x over the steps, and keeps no
    tensor."""
    return Logged("histogram", values)


def image(values: Any) -> Logged:
    """`lab.log(sample=lab.image(x))` shows an image: (H, W), (C, H, W), (H, W, C) with 1, 3 or 4
    channels, or a batch of them, of which the first ones are shown."""
    return Logged("image", values)


def as_logged(name: str, value: Any) -> Logged | None:
    """The tensor to log for a value; None for a number. Raises TypeError and ValueError."""
    if isinstance(value, Logged):
        kind, values = value
        try:
            values = values if isinstance(values, Tensor) else torch.as_tensor(values)
        except (TypeError, ValueError, RuntimeError):
            what = type(value.values).__name__
            raise TypeError(f"lab.log({name}=lab.{kind}(...)) takes a tensor, not {what}") from None
    elif isinstance(value, Tensor) and value.numel() != 1:
        kind, values = "tensor", value
    elif isinstance(value, np.ndarray) and value.size != 1:
        kind, values = "tensor", torch.as_tensor(value)
    else:
        return None
    if values.is_complex():
        raise ValueError(f"lab.log({name}=...) takes real numbers, not {values.dtype}")
    if kind == "image" and not is_image(values.shape):
        raise ValueError(
            f"lab.log({name}=lab.image(...)) takes (H, W), (C, H, W), (H, W, C) with 1, 3 or 4"
            f" channels, or a batch of them, not shape {tuple(values.shape)}"
        )
    return Logged(kind, values)


Look = TypeVar("Look", Histogram, LoggedImages)


class LoggedTensors:
    """The tensors that a loop has logged. `newest` are copies on the CPU, by name. Any thread may
    read."""

    def __init__(self) -> None:
        self.newest: Mapping[str, Tensor] = {}
        self._histograms: dict[str, tuple[Histogram, ...]] = {}
        self._images: dict[str, tuple[LoggedImages, ...]] = {}
        self._due_s: dict[str, float] = {}
        self._looks: Counter[str] = Counter()
        self._is_of_loop_before = False

    def begin(self) -> None:
        """Other code runs: what was logged before is shown until it logs something."""
        self._is_of_loop_before = True

    def add(self, found: Mapping[str, Logged], step: int) -> None:
        """Look at these tensors of this step, or at some of them: of many short steps, at a few."""
        if not found or is_out_of_reach():
            return
        if self._is_of_loop_before:
            self._is_of_loop_before = False
            self.newest, self._histograms, self._images = {}, {}, {}
            self._due_s, self._looks = {}, Counter()
        for name, logged in found.items():
            began_s = perf_counter()
            if self._looks[name] < FREE_LOOKS or began_s >= self._due_s[name]:
                with quiet():
                    self._look(name, logged, step)
                now_s = perf_counter()
                self._looks[name] += 1
                self._due_s[name] = now_s + (now_s - began_s) * len(self._looks) / SHARE

    def histogram_names(self) -> list[str]:
        return list(self._histograms)

    def histograms(self, name: str) -> Sequence[Histogram]:
        return self._histograms.get(name, ())

    @property
    def has_images(self) -> bool:
        """Whether the code that runs now, or has run last, has logged images."""
        return bool(self._images) and not self._is_of_loop_before

    def image_names(self) -> list[str]:
        return list(self._images)

    def images(self, name: str) -> Sequence[LoggedImages]:
        return self._images.get(name, ())

    def _look(self, name: str, logged: Logged, step: int) -> None:
        dense = readable(logged.values).dense
        if dense is None:
            return
        if logged.kind != "histogram" and dense.nbytes <= MAX_KEPT_BYTES:
            self.newest = {**self.newest, name: dense.clone()}
        if logged.kind == "image":
            before = self._images.get(name, ())
            after = _added(before, look_at_images(dense, step), MAX_IMAGES)
            self._images = {**self._images, name: after}
            return
        found = counts_of(dense.reshape(-1)[:: ceil(dense.numel() / MAX_COUNTED) or 1])
        if found is not None:
            counts = found.counts.astype("<u4").tobytes()
            row = Histogram(name, "logged", step, found.low, found.high, found.others, counts)
            rows = _added(self._histograms.get(name, ()), row, MAX_HISTOGRAMS)
            self._histograms = {**self._histograms, name: rows}


def _added(before: tuple[Look, ...], look: Look, limit: int) -> tuple[Look, ...]:
    """The looks at the steps before that of this one, and this one."""
    looks = (*(each for each in before if each.step < look.step), look)
    if len(looks) <= limit:
        return looks
    kept = set(spread([each.step for each in looks], limit // 2))
    return tuple(each for each in looks if each.step in kept)
