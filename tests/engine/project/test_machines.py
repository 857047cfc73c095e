"""The command for several machines, of each kind of subject."""

from __future__ import annotations

import pytest

from engine.project.document import DataSetup, Project, TrainingSetup
from engine.project.machines import NoCommand, train_arguments
from engine.project.subject import ConsoleSubject, FileSubject, Objective

CODE = FileSubject("/home/me/net.py", "Net(10)")


@pytest.mark.parametrize(
    ("project", "path", "arguments"),
    [
        (Project(), "/a/net.tlab", ("/a/net.tlab",)),
        (
            Project(subject=CODE, objective=Objective("loader", "held_out")),
            "",
            ("/home/me/net.py:Net(10)", "--data", "loader", "--validation", "held_out"),
        ),
        (Project(subject=FileSubject("/a/net.pt2", "model")), "", ("/a/net.pt2",)),
        (
            Project(subject=CODE, objective=Objective("x"), training=TrainingSetup(batch_size=7)),
            "/a/net.tlab",
            ("/home/me/net.py:Net(10)", "--data", "x", "--settings", "/a/net.tlab"),
        ),
        (
            Project(subject=CODE, objective=Objective("x"), training=TrainingSetup(processes=2)),
            "/a/net.tlab",
            ("/home/me/net.py:Net(10)", "--data", "x"),
        ),
        (
            Project(subject=CODE, objective=Objective("x", step="def step(b): ...")),
            "/a/net.tlab",
            (
                *("/home/me/net.py:Net(10)", "--data", "x", "--settings", "/a/net.tlab"),
                "--run-cells",
            ),
        ),
        (
            Project(subject=CODE, objective=Objective(step="def step(b): ...", of_setup=True)),
            "/a/net.tlab",
            ("/a/net.tlab", "--run-cells"),
        ),
    ],
)
def test_the_arguments_name_what_is_trained(
    project: Project, path: str, arguments: tuple[str, ...]
) -> None:
    assert train_arguments(project, path) == arguments


@pytest.mark.parametrize(
    ("project", "words"),
    [
        (Project(), "Save the project first"),
        (Project(subject=ConsoleSubject("net")), "objects of the console"),
        (
            Project(subject=CODE, objective=Objective("x", step="def step(b): ...")),
            "Save the project first: the command takes its settings and its step",
        ),
        (Project(subject=CODE, training=TrainingSetup(seed=7)), "Save the project first"),
        (Project(subject=CODE, objective=Objective(of_setup=True)), "Save the project first"),
        (
            Project(
                subject=CODE,
                objective=Objective(of_setup=True),
                training=TrainingSetup(data=DataSetup("console", path="x")),
            ),
            "objects of the console",
        ),
    ],
)
def test_what_has_no_command_is_told(project: Project, words: str) -> None:
    with pytest.raises(NoCommand, match=words):
        train_arguments(project, "")
