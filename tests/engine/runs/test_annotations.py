"""The user's words at steps of a run, in its folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.handlers.training.runs import annotate_run, read_annotations, read_run
from engine.lab import Lab
from engine.project.document import Project
from engine.protocol import (
    AnnotateRunCommand,
    Annotation,
    ReadAnnotationsCommand,
    ReadRunCommand,
    StepColumns,
)
from engine.runs import annotations
from engine.runs.record import RunProblem
from engine.runs.writer import RunWriter
from engine.system.errors import LabError

WORDS = (Annotation(2, "it falls here ✓"), Annotation(7, "noise", plot="gradient_norm"))


@pytest.fixture
def run(tmp_path: Path) -> RunWriter:
    writer = RunWriter.new(tmp_path / "runs", Project())
    writer.begin()
    numbers = tuple(range(1, 10))
    floats = tuple(map(float, numbers))
    writer.add(StepColumns(numbers, floats, floats, floats, floats, floats, numbers), ())
    writer.end("finished")
    return writer


def lab() -> Lab:
    return Lab(lambda _: None)


def test_what_is_written_is_read_also_with_the_curves(run: RunWriter) -> None:
    folder = str(run.folder)
    assert [
        a.annotations for a in read_annotations(lab(), ReadAnnotationsCommand(folder=folder))
    ] == [()]
    (answer,) = annotate_run(lab(), AnnotateRunCommand(folder=folder, annotations=WORDS))
    assert answer.annotations == WORDS == annotations.load(run.folder)
    (kept,) = read_run(lab(), ReadRunCommand(folder=folder))
    assert kept.annotations == WORDS
    assert json.loads((run.folder / annotations.FILE).read_bytes())[0]["text"] == "it falls here ✓"
    assert (run.folder / annotations.FILE).stat().st_mode & 0o077 == 0
    list(annotate_run(lab(), AnnotateRunCommand(folder=folder, annotations=())))
    assert annotations.load(run.folder) == ()


def test_a_run_that_goes_on_from_a_step_takes_those_before_it_along(run: RunWriter) -> None:
    annotations.save(run.folder, WORDS)
    fork = run.forked(5)
    fork.begin(5)
    assert annotations.load(fork.folder) == WORDS[:1]
    fork.close()
    early = run.forked(1)
    early.begin(1)
    assert annotations.load(early.folder) == ()
    early.close()
    latest = run.forked(7)
    latest.begin(7)
    assert annotations.load(latest.folder) == WORDS  # the one at the step itself, too
    latest.close()


def test_as_much_as_may_be_is_kept(run: RunWriter) -> None:
    found = (Annotation(2**53, "a" * 200, plot="b" * 200), Annotation(0, "c")) * 100
    list(annotate_run(lab(), AnnotateRunCommand(folder=str(run.folder), annotations=found)))
    assert annotations.load(run.folder) == found


@pytest.mark.parametrize(
    "found",
    [
        (Annotation(-1, "a"),),
        (Annotation(1, ""),),
        (Annotation(2**53 + 1, "a"),),
        (Annotation(1, "a" * 201),),
        (Annotation(1, "a", plot="b" * 201),),
        (Annotation(1, "two\nlines"),),
        (Annotation(1, "a"),) * 201,
    ],
)
def test_what_cannot_be_kept_is_refused_and_when_read_told(run: RunWriter, found) -> None:
    command = AnnotateRunCommand(folder=str(run.folder), annotations=found)
    with pytest.raises(LabError) as told:
        list(annotate_run(lab(), command))
    assert told.value.hint and annotations.load(run.folder) == ()
    annotations.save(run.folder, found)
    with pytest.raises(RunProblem, match=r"annotations\.json is damaged"):
        annotations.load(run.folder)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'[{"step": "1"}]', b"\xff", b"[" * 9999])
def test_a_damaged_file_is_told(run: RunWriter, content: bytes) -> None:
    (run.folder / annotations.FILE).write_bytes(content)
    with pytest.raises(LabError, match=r"annotations\.json"):
        list(read_annotations(lab(), ReadAnnotationsCommand(folder=str(run.folder))))
