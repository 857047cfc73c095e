"""Train's form for code offers the data that the subject's code has."""

from __future__ import annotations

import pytest

from app.presenters.train.objective import ObjectivePresenter
from app.presenters.train.train import TrainPresenter
from engine.project import edits
from engine.project.document import DataSetup, replace
from engine.project.subject import CanvasSubject, ConsoleSubject, FileSubject, Objective
from engine.protocol import FileObject, FileSnapshot, Variable, VariablesSnapshot, WriteStepCommand
from widgets.forms import ParamForm
from widgets.training.train_view import TrainView

PATH = "/work/net.py"


@pytest.fixture
def view(bench, qtbot) -> TrainView:
    """Train's page, made after a file and a cell have run."""
    bench.store.take(
        FileSnapshot(
            path=PATH,
            digest="",
            objects=(
                FileObject("Net", "class", "Net"),
                FileObject("train_loader", "data", "DataLoader"),
            ),
        )
    )
    bench.store.take(
        VariablesSnapshot(
            variables=(
                Variable("x", "tensor", "Tensor"),
                Variable("model", "module", "Net"),
                Variable("pairs", "other", "list"),
                Variable("y", "tensor", "Tensor"),
            )
        )
    )
    view = TrainView()
    qtbot.addWidget(view)
    TrainPresenter(bench, view, bench.window)
    ObjectivePresenter(bench, view.form, bench.window)
    return view


def offered(view: TrainView) -> list[str]:
    model = view.form.objective.data.completer().model()
    return [model.data(model.index(row, 0)) for row in range(model.rowCount())]


def work_on(bench, subject) -> None:
    bench.edit("Work on it", lambda project: edits.set_subject(project, subject))


def test_a_subject_that_is_chosen_after_its_file_ran_has_its_data_offered(bench, view):
    assert offered(view) == []
    work_on(bench, FileSubject(PATH, "Net()"))
    assert offered(view) == ["train_loader"]
    assert view.form.objective.data.placeholderText() == "such as train_loader"
    work_on(bench, FileSubject("/work/other.py", "Net()"))
    assert offered(view) == []
    work_on(bench, ConsoleSubject("model"))
    assert offered(view) == ["x", "pairs", "y"]
    assert view.form.objective.data.placeholderText() == "such as x, pairs, …"


def test_the_arguments_of_a_loader_have_the_objects_of_the_subjects_code_offered(bench, view):
    def objects(form: str) -> list[str]:
        field = view.form.findChild(ParamForm, f"setup_{form}_given_form").field("sampler")
        return field.lineEdit().completer().model().stringList()

    assert objects("loading") == objects("batches") == ["x", "model", "pairs", "y"]
    work_on(bench, FileSubject(PATH, "Net()"))
    assert objects("batches") == ["Net", "train_loader"]
    work_on(bench, FileSubject("/work/other.py", "Net()"))
    assert objects("batches") == []


def test_words_on_missing_data_go_once_data_are_named(bench, view):
    work_on(bench, FileSubject(PATH, "Net()"))
    view.bar.train_requested.emit()
    assert view.bar._problem.startswith("There is no data to train on.")
    objective = Objective("train_loader")
    bench.edit("Name data", lambda project: edits.set_objective(project, objective))
    assert view.bar._problem == ""


def test_what_the_form_says_is_put_into_the_document(bench, view):
    work_on(bench, FileSubject(PATH, "Net()"))
    objective = Objective("train_loader")
    view.form.objective.edited.emit(objective, "Name data")
    assert bench.project.objective == objective
    assert bench.history.stack.undoText() == "Name data"


def test_the_usual_step_is_asked_again_of_an_engine_that_became_ready(bench, view):
    work_on(bench, FileSubject(PATH, "Net()"))
    bench.edit("Name data", lambda project: edits.set_objective(project, Objective("train_loader")))
    bench.link.sent.clear()
    bench.link.get_ready()
    assert [c.objective.data for c in bench.link.sent if isinstance(c, WriteStepCommand)] == [
        "train_loader"
    ]


def test_a_data_set_is_for_code_too_and_the_step_follows_its_settings(bench, view):
    def asked() -> list:
        return [c for c in bench.link.sent if isinstance(c, WriteStepCommand)]

    form = view.form
    work_on(bench, FileSubject(PATH, "Net()"))
    assert form.data.isHidden() and not form._batches.isHidden()
    form.objective.source.setCurrentIndex(1)
    form.objective.source.activated.emit(1)
    assert bench.project.objective == Objective(of_setup=True)
    assert not form.data.isHidden() and form._batches.isHidden()
    bench.link.get_ready()
    bench.link.sent.clear()
    iris = replace(bench.project.training, data=DataSetup("iris"))
    bench.edit("Use iris", lambda project: edits.set_training(project, iris))
    assert [c.training.data.kind for c in asked()] == ["iris"]
    work_on(bench, FileSubject(PATH, "Other()"))
    assert bench.project.objective == Objective(of_setup=True)
    view.bar.train_requested.emit()
    assert view.bar._problem == ""  # there is data
    bench.history.stack.undo()
    bench.history.stack.undo()
    bench.history.stack.undo()
    assert not bench.project.objective.of_setup and form.data.isHidden()


def test_the_step_is_written_with_the_loss_that_is_chosen(bench, view):
    """A typed step gives way to it, and comes back by Undo."""

    def asked() -> list[tuple[str, bool]]:
        sent = [c for c in bench.link.sent if isinstance(c, WriteStepCommand)]
        return [(c.training.loss, c.objective.loss_of_setup) for c in sent]

    box, usual = view.form.loss._loss, bench.project.training
    work_on(bench, FileSubject(PATH, "Net()"))
    typed = Objective("loader", step="def step(batch): return 1")
    bench.edit("Type a step", lambda project: edits.set_objective(project, typed))
    bench.link.get_ready()
    bench.link.sent.clear()
    assert box.currentData() == "" and box.itemText(0) == "that of the step below"
    box.setCurrentIndex(box.findData("nn.CosineEmbeddingLoss"))
    box.activated.emit(box.currentIndex())
    assert bench.project.objective == Objective("loader", loss_of_setup=True)
    assert box.currentData() == "nn.CosineEmbeddingLoss"
    assert asked() == [("nn.CosineEmbeddingLoss", True)]
    view.form.loss._form.value_edited.emit("margin", 0.5)
    assert bench.project.training.loss_params == {"margin": 0.5} and len(asked()) == 2
    box.setCurrentIndex(0)
    box.activated.emit(0)
    assert bench.project.objective == Objective("loader") and box.currentData() == ""
    bench.history.stack.undo()
    bench.history.stack.undo()
    bench.history.stack.undo()
    assert bench.project.objective == typed and bench.project.training.loss == usual.loss


def test_blocks_do_not_get_a_loss_that_they_cannot_have(bench, view):
    work_on(bench, FileSubject(PATH, "Net()"))
    bench.edit("Choose", lambda project: edits.set_loss(project, "nn.CTCLoss"))
    assert bench.project.training.loss == "nn.CTCLoss"
    work_on(bench, CanvasSubject())
    assert bench.project.training.loss == "nn.CrossEntropyLoss"
    assert view.form.loss._loss.findData("") == -1
