"""The subject is chosen in one place and kept in the project."""

from __future__ import annotations

import pytest

from app.presenters.export import ExportPresenter
from app.presenters.python_files import PythonFiles
from app.presenters.subject import SubjectPresenter
from app.presenters.train.train import TrainPresenter
from engine.project import edits
from engine.project.document import replace
from engine.project.subject import CanvasSubject, ConsoleSubject, FileSubject, Objective
from engine.protocol import (
    ExportCommand,
    TrainCommand,
    Variable,
    VariablesSnapshot,
)
from tests.app.conftest import SCRIPT
from widgets.subject.chooser import SubjectChooser
from widgets.training.train_view import TrainView


@pytest.fixture
def chooser(bench, qtbot) -> SubjectChooser:
    """A chooser of a project whose console has a module."""
    chooser = SubjectChooser()
    qtbot.addWidget(chooser)
    presenter = SubjectPresenter(bench, PythonFiles(bench, bench.window), chooser, bench.window)
    chooser.setProperty("presenter", presenter)
    bench.store.take(
        VariablesSnapshot(
            variables=(
                Variable("x", "tensor", "Tensor"),
                Variable("model", "module", "Net"),
                Variable("n", "number", "int"),
            )
        )
    )
    return chooser


def offered(chooser: SubjectChooser) -> list[str]:
    chooser.button.menu().aboutToShow.emit()
    return [action.text() for action in chooser.button.menu().actions() if action.text()]


def trigger(chooser: SubjectChooser, text: str) -> None:
    offered(chooser)
    next(a for a in chooser.button.menu().actions() if a.text() == text).trigger()


def test_modules_of_the_console_are_offered(bench, chooser):
    assert offered(chooser) == ["Canvas", "Console", "model", "Open a Python file…"]


def test_a_choice_is_an_undo_step_of_the_project(bench, chooser):
    history = bench.history
    assert chooser.button.text() == "Subject: Canvas"
    trigger(chooser, "model")
    assert bench.project.subject == ConsoleSubject("model")
    assert chooser.button.text() == "Subject: model"
    assert history.stack.undoText() == "Work on model"
    history.stack.undo()
    assert bench.project.subject == CanvasSubject()
    assert chooser.button.text() == "Subject: Canvas"
    history.stack.redo()
    offered(chooser)
    checked = [a.text() for a in chooser.button.menu().actions() if a.isChecked()]
    assert checked == ["model"]


def test_without_modules_the_menu_says_how_to_get_one(bench, chooser):
    bench.store.take(VariablesSnapshot(variables=()))
    assert offered(chooser)[1].startswith("Make a module in the console")


def test_training_and_export_send_the_subject(bench, link, chooser, qtbot):
    view = TrainView()
    qtbot.addWidget(view)
    train = TrainPresenter(bench, view, bench.window)
    link.get_ready()
    trigger(chooser, "model")
    link.sent.clear()
    train.train()
    assert not [c for c in link.sent if isinstance(c, TrainCommand)]
    assert "There is no data to train on" in view.bar._result.text()
    objective = Objective(data="loader")
    bench.edit("Set the data", lambda project: edits.set_objective(project, objective))
    train.train()
    command = link.sent[-1]
    assert isinstance(command, TrainCommand)
    assert (command.subject, command.objective) == (ConsoleSubject("model"), objective)
    ExportPresenter(bench, bench.window).export("pt", "/x.pt")
    command = link.sent[-1]
    assert isinstance(command, ExportCommand) and command.subject == ConsoleSubject("model")


def test_a_module_of_several_names_is_offered_once(bench, chooser):
    bench.store.take(
        VariablesSnapshot(
            variables=(
                Variable("net", "module", "GraphModule", same_as="canvas.model"),
                Variable("model", "module", "Net"),
                Variable("again", "module", "Net", same_as="model"),
            )
        )
    )
    assert offered(chooser) == ["Canvas", "Console", "model", "Open a Python file…"]
    for name, text in (("net", "Canvas"), ("again", "model")):
        chooser.show_subject(ConsoleSubject(name))
        offered(chooser)
        checked = [a.text() for a in chooser.button.menu().actions() if a.isChecked()]
        assert checked == [text]


def test_a_module_without_parameters_stands_in_a_menu_of_its_own(bench, chooser):
    answer = VariablesSnapshot(
        variables=(
            Variable("criterion", "module", "CrossEntropyLoss", size_bytes=0),
            Variable("model", "module", "Net", size_bytes=40),
        )
    )
    bench.store.take(answer)
    other = "Functions of tensors, and modules without parameters"
    for _ in range(2):  # the menu is filled each time that it opens
        assert offered(chooser) == ["Canvas", "Console", "model", other, "Open a Python file…"]
    action = next(a for a in chooser.button.menu().actions() if a.text() == other)
    (criterion,) = action.menu().actions()
    criterion.trigger()
    assert bench.project.subject == ConsoleSubject("criterion")


def test_functions_of_tensors_are_offered_but_the_step(bench, chooser):
    answer = VariablesSnapshot(
        variables=(Variable("f", "function", "function"), Variable("step", "function", "function"))
    )
    bench.store.take(answer)
    assert offered(chooser) == ["Canvas", "Console", "f", "Open a Python file…"]


def test_the_methods_of_a_module_are_offered_among_functions(bench, chooser):
    net = Variable("net", "module", "VAE", size_bytes=40, methods=("encode", "decode"))
    bench.store.take(VariablesSnapshot(variables=(net,)))
    other = "Functions of tensors, and modules without parameters"
    assert offered(chooser) == ["Canvas", "Console", "net", other, "Open a Python file…"]
    action = next(a for a in chooser.button.menu().actions() if a.text() == other)
    encode, decode = action.menu().actions()
    assert (encode.text(), decode.text()) == ("net.encode", "net.decode")
    encode.trigger()
    assert bench.project.subject == ConsoleSubject("net.encode")


def test_a_model_of_a_file_is_the_subject_and_stays_offered(bench, link, chooser):
    chooser.property("presenter").open_model("/x/net.pt2")
    assert bench.project.subject == FileSubject("/x/net.pt2", "model")
    assert chooser.button.text() == "Subject: net.pt2" and not chooser.need.text()
    link.ended.emit()
    bench.history.stack.undo()
    assert offered(chooser) == ["Canvas", "/x/net.pt2", "net.pt2", "Open a Python file…"]
    trigger(chooser, "net.pt2")
    assert bench.project.subject == FileSubject("/x/net.pt2", "model")


def test_of_a_script_its_model_is_the_subject_until_it_is_left(bench, chooser, link):
    script = replace(SCRIPT, models=("net", "critic"))
    before = replace(bench.project, objective=Objective(data="cells"))
    bench.store.set_project(before)
    link.attach_to(script)
    link.get_ready()
    assert bench.project.subject == ConsoleSubject("net")
    assert chooser.button.text() == "Subject: net"
    assert [command.subject for command in link.sent][-1] == ConsoleSubject("net")
    assert not bench.files.document_modified
    link.close()
    assert bench.project == before


def test_a_subject_that_is_chosen_in_a_script_stays_no_longer_than_the_script(bench, chooser, link):
    link.attach_to(replace(SCRIPT, models=("net",)))
    link.get_ready()
    trigger(chooser, "model")
    assert bench.project.subject == ConsoleSubject("model")
    link.close()
    assert bench.project.subject == CanvasSubject()
