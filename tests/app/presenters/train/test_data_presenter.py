"""The data set's presenter: when the engine is asked, and what its answers become."""

from __future__ import annotations

import pytest

from app.presenters.train.data import DataPresenter
from engine.project import edits
from engine.project.document import DataSetup, replace
from engine.project.subject import FileSubject, Objective
from engine.protocol import DataSnapshot, DescribeDataCommand, ErrorReport, ErrorSnapshot
from tests.labels import said
from widgets.training.settings.data_form import DataForm


@pytest.fixture
def form(bench, link, qtbot) -> DataForm:
    link.get_ready()
    form = DataForm()
    qtbot.addWidget(form)
    form.presenter = DataPresenter(bench, form, bench.window)
    return form


def use(bench, setup: DataSetup) -> None:
    training = replace(bench.project.training, data=setup)
    bench.store.set_project(edits.set_training(bench.project, training))


def test_a_bundled_set_is_asked_for_in_its_preview_only(form, bench, link):
    use(bench, DataSetup("wine"))
    assert link.sent == []
    form._preview.click()
    (command,) = link.sent
    assert isinstance(command, DescribeDataCommand) and command.data == DataSetup("wine")


def test_data_of_a_file_is_asked_for_at_once_and_its_faults_are_told(form, bench, link):
    use(bench, DataSetup("csv"))
    assert link.sent == [] and said(form, "data_facts") == ""
    use(bench, DataSetup("csv", path="/a.csv"))
    (command,) = link.sent
    assert said(form, "data_facts") == "Reading the data…"
    error = ErrorReport("LabError", "Row 3 has 1 cell; there are 2 columns.", "Correct it.")
    link._receive(ErrorSnapshot(reply_to=command.id, error=error, command="X"))
    assert "Row 3 has 1 cell" in said(form, "data_problem")
    use(bench, DataSetup("csv", {"faults": "skip"}, path="/a.csv"))
    found = DataSnapshot(
        reply_to=link.sent[-1].id, title="CSV table", training=8, validation=2, sample_shape=(1,),
        dtype="float32", targets="numbers",
    )  # fmt: skip
    link._receive(found)
    assert said(form, "data_problem") == "" and "Targets are numbers." in said(form, "data_facts")


def test_data_is_asked_for_again_once_its_python_is_agreed_to(form, bench, link):
    bench.store.unagreed = frozenset({"pairs"})
    use(bench, DataSetup("console", path="pairs"))
    assert [each.unagreed for each in link.sent] == [True]
    bench.store.agree()
    assert [each.unagreed for each in link.sent] == [True, False]


def test_data_is_described_for_code_that_trains_on_it(form, bench, link):
    subject = FileSubject("/work/net.py", "Net()")
    bench.store.set_project(edits.set_subject(bench.project, subject))
    use(bench, DataSetup("csv", path="/a.csv"))
    assert link.sent == []
    of_setup = Objective(of_setup=True)
    bench.store.set_project(edits.set_objective(bench.project, of_setup))
    (command,) = link.sent
    assert isinstance(command, DescribeDataCommand) and command.data.path == "/a.csv"
