"""Norms of nested modules at a depth, histograms and images, as they are told of a run."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan, sqrt
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.handlers.training.pictures import looks
from engine.handlers.training.pictures.looks import read_histograms, read_images, read_module_norms
from engine.lab import Lab
from engine.loops.logged import image
from engine.project.document import Project
from engine.protocol import (
    MAX_IMAGE_STEPS,
    ModuleNormsSnapshot,
    ReadHistogramsCommand,
    ReadImagesCommand,
    ReadModuleNormsCommand,
    StepColumns,
)
from engine.runs.parameter_figures import Histogram, Look, ParameterRow
from engine.runs.writer import RunWriter

NORMS: dict[str, list[tuple[float, float, float]]] = {
    "head": [(1.0, 2.0, 0.5), (1.0, 2.0, nan)],
    "a.b.weight": [(3.0, 4.0, 1.0), (nan, 4.0, 1.0)],
    "a.b.bias": [(4.0, nan, 1.0), (nan, 3.0, inf)],
    "a.c.weight": [(nan, 1.0, 2.0), (12.0, 1.0, 2.0)],
}
"""Gradient, weight and update at steps 2 and 5."""


@pytest.fixture
def folder(tmp_path: Path) -> str:
    writer = RunWriter.new(tmp_path, Project())
    writer.begin()
    for i, step in enumerate((2, 5)):
        rows = tuple(
            ParameterRow(step, place, name, *norms[i])
            for place, (name, norms) in enumerate(NORMS.items())
        )
        counts = bytes([i] * 8)
        histograms = tuple(Histogram(n, "weights", step, -1.0, i, 7, counts) for n in NORMS)
        writer.add(StepColumns((step,), *((1.0,),) * 5, (1,)), (), [Look(rows, histograms)])
    writer.end("finished")
    return str(writer.folder)


@pytest.fixture
def norms(folder: str) -> Callable[..., ModuleNormsSnapshot]:
    def read(**fields: Any) -> ModuleNormsSnapshot:
        command = ReadModuleNormsCommand(folder=folder, **fields)
        (found,) = read_module_norms(Lab(lambda _: None), command)
        assert found.folder == folder and found.steps == (2, 5) and found.deepest == 2
        return found

    return read


@pytest.mark.parametrize(
    ("depth", "names"),
    [(0, ("",)), (1, ("", "a")), (2, ("", "a.b", "a.c")), (9, ("", "a.b", "a.c"))],
)
def test_parameters_are_taken_together_down_to_a_depth(norms, depth: int, names: tuple) -> None:
    found = norms(depth=depth)
    assert found.names == names == tuple(line.name for line in found.lines)


def test_what_a_parameter_does_not_have_is_left_out_of_the_sum(norms) -> None:
    root, inner, other = norms(depth=2).lines
    assert repr((root.gradient, root.weight, root.update)) == repr(
        ((1.0, 1.0), (2.0, 2.0), (0.5, nan))
    )
    assert repr((inner.gradient, inner.weight, inner.update)) == repr(
        ((5.0, nan), (4.0, 5.0), (sqrt(2.0), inf))
    )
    assert repr(other.gradient) == repr((nan, 12.0))
    (_, together) = norms(depth=1).lines
    assert together.gradient == (5.0, 12.0) and together.weight == (sqrt(17.0), sqrt(26.0))


def test_each_parameter_by_itself_and_only_those_that_are_wanted(norms) -> None:
    assert norms(by_parameter=True, depth=1).names == tuple(NORMS)
    found = norms(by_parameter=True, names=("a.c.weight", "gone", "head"))
    assert [line.name for line in found.lines] == ["head", "a.c.weight"]
    assert found.names == tuple(NORMS)
    assert len(norms(by_parameter=True, names=("gone",)).lines) == 4  # of another model


def test_lines_and_names_have_a_bound(norms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "MAX_LINES", 2)
    monkeypatch.setattr(looks, "MAX_NAMES", 3)
    found = norms(by_parameter=True)
    assert (len(found.lines), found.names) == (2, tuple(NORMS)[:3])


def test_histograms_of_the_parameter_that_is_asked_for_or_the_first(folder: str) -> None:
    for name, told in (("a.c.weight", "a.c.weight"), ("gone", "head"), ("", "head")):
        command = ReadHistogramsCommand(folder=folder, name=name)
        (found,) = read_histograms(Lab(lambda _: None), command)
        assert (found.name, found.names, found.steps) == (told, tuple(NORMS), (2, 5))
        assert (found.lows, found.highs, found.others) == ((-1.0, -1.0), (0.0, 1.0), (7, 7))
        assert found.counts == bytes(8) + bytes([1] * 8)


def test_of_many_logged_images_some_are_told_with_the_first_and_the_last() -> None:
    lab = Lab(lambda _: None)
    logged = lab.console.namespace.lab.tensors
    for step in range(1, 3 * MAX_IMAGE_STEPS):
        for name in ("one", "other"):
            logged._look(name, image(torch.full((2, 2), step / 100)), step)
    for name, told in (("other", "other"), ("gone", "one")):
        (found,) = read_images(lab, ReadImagesCommand(name=name))
        steps = [each.step for each in found.steps]
        assert (found.name, found.names) == (told, ("one", "other"))
        assert len(steps) == MAX_IMAGE_STEPS and steps == sorted(set(steps))
        assert (steps[0], steps[-1]) == (1, logged.images("one")[-1].step)
