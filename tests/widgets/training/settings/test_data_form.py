"""The form of the data set: files, drops, the columns of a table, and what is told of the data."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QComboBox, QPushButton

from engine.project.document import Column, DataSetup, replace
from engine.protocol import ClassCount, ColumnFigures, DataSnapshot, NamedColumn
from tests.labels import said
from widgets.training.settings.data_form import DataForm, kind_for

CSV = DataSetup("csv", path="/data/a.csv")
TABLE = DataSnapshot(
    title="CSV table",
    training=48,
    validation=12,
    sample_shape=(2,),
    dtype="float32",
    targets="classes",
    classes=(ClassCount("no", 27, 7), ClassCount("yes", 21, 5)),
    class_count=2,
    columns=(ColumnFigures("age", 1.0, 80.0, 40.5129, 12.2471),),
    roles=(
        NamedColumn("id", Column("ignore")),
        NamedColumn("age", Column("feature", "number")),
        NamedColumn("town", Column("feature", "category")),
        NamedColumn("y", Column("target", "category")),
    ),
    rows=((0.5, 1.0),),
    target_rows=("no",),
    skipped=("Row 9 has 1 cell; there are 4 columns.",),
    skipped_count=3,
)


@pytest.fixture
def form(qtbot) -> DataForm:
    form = DataForm()
    qtbot.addWidget(form)
    form.edits = []
    form.edited.connect(lambda setup, text: form.edits.append(setup))
    form.show_setup(CSV)
    form.show_report(True)
    return form


def test_what_is_in_the_data_is_told(form: DataForm) -> None:
    form.report.show_data(TABLE)
    assert said(form, "data_facts") == (
        "48 samples for training, 12 for validation. Shape of a sample: (2,), float32.\n"
        "2 classes, training + validation: no: 27 + 7, yes: 21 + 5.\n"
        "(0.5, 1) → no"
    )
    form.report.show_data(replace(TABLE, stored=True))
    assert "read from their files.\n2 classes" in said(form, "data_facts")
    assert said(form, "data_skipped") == (
        "Skipped: 3.\nRow 9 has 1 cell; there are 4 columns.\n… and 2 more"
    )
    table = form.report.columns
    cells = {
        table.horizontalHeaderItem(place).text(): table.item(1, place).text()
        for place in (0, 3, 4, 5)
    }
    assert cells == {"column": "age", "range": "1 to 80", "mean": "40.5", "std": "12.2"}


def test_a_role_that_is_chosen_is_an_edit_and_there_is_one_target(form: DataForm) -> None:
    form.show_setup(DataSetup("csv", path="/data/a.csv", columns={"y": Column("target")}))
    form.report.show_data(TABLE)
    box = form.report.columns.cellWidget(1, 1)
    assert isinstance(box, QComboBox)
    box.setCurrentIndex(box.findData("target"))
    box.activated.emit(box.currentIndex())
    assert form.edits[-1].columns == {"age": Column("target", "number"), "y": Column("feature")}


def test_a_fault_is_told_in_place_and_goes_when_the_data_can_be_read(form: DataForm) -> None:
    form.report.show_data(TABLE)
    form.report.show_problem("Row 3, column “x”: the value is missing.")
    assert said(form, "data_problem") == "Row 3, column “x”: the value is missing."
    assert said(form, "data_facts") == "" and form.report.columns.rowCount() == 4
    form.report.show_data(TABLE)
    assert said(form, "data_problem") == ""


def test_a_file_that_is_dropped_is_used_by_its_kind(form: DataForm, tmp_path: Path) -> None:
    path = tmp_path / "digits.npz"
    path.write_bytes(b"")
    form.show_setup(DataSetup("wine", {"standardise": "nothing"}))
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    copy, left = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    event = QDropEvent(QPointF(5, 5), copy, data, left, Qt.KeyboardModifier.NoModifier)
    form.dropEvent(event)
    assert form.edits[-1] == DataSetup("numpy", path=str(path))


def test_another_file_of_the_same_kind_keeps_the_settings(form: DataForm) -> None:
    form.show_setup(replace(CSV, params={"missing": "mean"}, columns={"y": Column("target")}))
    form.set_path("/data/b.csv")
    assert form.edits[-1] == DataSetup("csv", {"missing": "mean"}, path="/data/b.csv")


@pytest.mark.parametrize(
    ("name", "now", "kind"),
    [
        ("a.csv", "digits", "csv"),
        ("a.csv.gz", "digits", "csv"),
        ("a.npy", "csv", "csv"),
        ("a.npy", "images", "numpy"),
        ("data_batch_1.bin", "digits", "cifar"),
        ("train-images-idx3-ubyte.gz", "digits", "idx"),
        ("book.txt", "digits", "text"),
        ("folder", "csv", "images"),
        ("folder", "cifar", "cifar"),
    ],
)
def test_the_kind_of_a_file_is_the_chosen_one_or_that_of_its_name(
    name: str, now: str, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.mkdir() if name == "folder" else path.write_bytes(b"")
    assert kind_for(str(path), now) == kind


@pytest.mark.parametrize(
    ("kind", "buttons"), [("csv", ["file"]), ("images", ["folder"]), ("idx", ["file", "folder"])]
)
def test_a_kind_asks_for_its_file_or_folder(form: DataForm, kind: str, buttons: list[str]) -> None:
    form.show_setup(DataSetup(kind))
    wanted: list[str] = []
    form.path_wanted.connect(wanted.append)
    for what in ("file", "folder"):
        button = form.findChild(QPushButton, f"setup_choose_{what}")
        if not button.isHidden():
            button.click()
    assert wanted == buttons
    assert said(form, "setup_data_path").endswith("or drop it here.")


def test_another_kind_forgets_path_and_columns(form: DataForm) -> None:
    form.show_setup(DataSetup("csv", path="/a.csv", columns={"y": Column("target")}))
    form._choose("text")
    assert form.edits[-1] == DataSetup("text")


def test_the_preview_of_a_bundled_set_is_asked_for_when_it_is_opened(form: DataForm) -> None:
    form.show_setup(DataSetup("wine"))
    form.show_report(False)
    asked: list[bool] = []
    form.report_wanted.connect(lambda: asked.append(form.previews))
    assert form.report.isHidden()
    form._preview.click()
    assert asked == [True] and not form.report.isHidden()
