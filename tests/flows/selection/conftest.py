"""Programs with a graph: of blocks, and of a file."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from app import templates
from engine.project import edits
from engine.project.subject import FileSubject, Objective
from tests.engine.subjects import models
from tests.flows.selection.lit import WAIT_MS, drained, drawn, structure


@pytest.fixture
def blocks(program, qtbot):
    """The MLP template with its backward pass begun, and the Model workspace in front."""
    program.bench.files.new(templates.load_template("mlp"))
    program.bench.link.drain()
    program.workspaces.at_passes().start_backward()
    drawn(program, qtbot)
    program.workspaces.at_model()
    return program


@pytest.fixture
def gpt(program, qtbot, tmp_path, monkeypatch):
    """A GPT of a file as the subject, its structure read and its backward pass begun."""
    monkeypatch.setattr(sys, "path", sys.path.copy())
    file = tmp_path / "gpt.py"
    shutil.copy(Path(models.__path__[0]) / "gpt.py", file)
    program.python_files.run(str(file))
    program.bench.link.drain()
    program.subject.choose(FileSubject(str(file), "GPT(vocab_size)"))
    objective = Objective(data="loader")
    program.bench.edit("Set the data", lambda p: edits.set_objective(p, objective))
    program.workspaces.at_model()
    qtbot.waitUntil(
        lambda: drained(program) and structure(program).shows_structure, timeout=WAIT_MS
    )
    program.workspaces.at_passes().start_backward()
    drawn(program, qtbot)
    yield program
    sys.modules.pop("gpt", None)
