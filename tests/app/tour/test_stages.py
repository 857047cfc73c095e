"""The tour's stages fail, with words, when the window did not do what it should."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from app.tour.autograd_stage import AutogradStage
from app.tour.export_stage import ExportStage
from app.tour.hand import TourFailure
from app.tour.stage import Album
from app.tour.tensors_stage import TensorsStage
from app.tour.train_stage import TrainStage
from engine.protocol import (
    CellSnapshot,
    ComparisonSnapshot,
    EpochRow,
    ErrorReport,
    ErrorSnapshot,
    Variable,
    VariablesSnapshot,
)


def test_pictures_are_numbered_in_their_order(qtbot, tmp_path) -> None:
    label = QLabel("seen")
    qtbot.addWidget(label)
    label.resize(120, 40)
    album = Album(tmp_path)
    album.add(label, "start")
    label.setText("other")
    album.add(label, "end")
    assert album.names == ["01-start.png", "02-end.png"]
    assert sorted(path.name for path in tmp_path.iterdir()) == album.names
    last = QImage(str(tmp_path / "02-end.png"))
    assert last.convertToFormat(QImage.Format.Format_RGB32) == label.grab().toImage()
    with pytest.raises(TourFailure, match=r"the picture .*no-folder.01-start\.png could not be"):
        Album(tmp_path / "no-folder").add(label, "start")


def test_a_widget_is_found_by_type_and_name_if_it_is_visible(qtbot, stage_of) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    hidden, label, shown = QPushButton(parent), QLabel(parent), QPushButton(parent)
    pressed: list[str] = []
    for each in (hidden, label, shown):
        each.setObjectName("go")
    shown.clicked.connect(lambda: pressed.append("shown"))
    parent.show()
    hidden.hide()
    stage = stage_of()
    assert stage.find(parent, QPushButton, "go") is shown
    stage.press(parent, "go")
    assert pressed == ["shown"]
    shown.hide()
    for name in ("go", "other"):
        with pytest.raises(TourFailure, match=f"nothing called “{name}” is to be seen"):
            stage.press(parent, name)


def test_what_is_done_is_counted_from_one(stage_of) -> None:
    stage = stage_of()
    for key in ("wires", "blocks", "wires"):
        stage.count(key)
    assert stage.report == {"wires": 2, "blocks": 1}


def test_a_snapshot_is_waited_for_until_it_meets_the_condition(stage_of) -> None:
    stage = stage_of()
    seen = []

    def meets(cell: CellSnapshot) -> bool:
        seen.append(cell)
        if len(seen) == 1:  # the engine answers while the tour waits
            stage.store.take(CellSnapshot(ok=True, error=None, file="second"))
        return cell.file == "second"

    stage.store.take(CellSnapshot(ok=True, error=None, file="first"))
    assert stage.wait_for(CellSnapshot, meets, "the second cell").file == "second"
    assert [cell.file for cell in seen] == ["first", "second"]
    error = ErrorReport(type="LabError", message="there is no x")
    stage.store.take(ErrorSnapshot(command="RunCellCommand", error=error))
    with pytest.raises(TourFailure, match="RunCellCommand: there is no x"):
        stage.wait_for(CellSnapshot, lambda cell: True, "any cell")


@pytest.mark.parametrize(("difference", "fails"), [(0.0, False), (1e-9, True)])
def test_gradients_that_differ_fail_the_tour(qtbot, stage_of, difference, fails) -> None:
    view = QWidget()
    qtbot.addWidget(view)
    compare = QPushButton(view)
    compare.setObjectName("pass_compare")
    view.show()
    stage = stage_of(AutogradStage, window=view)
    stage._view = view
    compared = ComparisonSnapshot(max_difference=difference, differences={}, revision=1)
    compare.clicked.connect(lambda: stage.store.take(compared))
    if fails:
        with pytest.raises(TourFailure, match=r"differ from backward\(\) by 1e-09"):
            stage._compare()
    else:
        stage._compare()
    assert stage.report == {"max_gradient_difference": difference}
    assert stage.album.names == ["01-gradients-compared.png"]


@pytest.mark.parametrize(("accuracy", "fails"), [(0.95, False), (0.949, True)])
def test_a_model_that_has_not_learned_fails_the_tour(
    stage_of, training_snapshot, accuracy, fails
) -> None:
    stage = stage_of(TrainStage)
    stage._rows = []
    for epoch in (1, 2):
        row = EpochRow(
            epoch, 10 * epoch, 0.2, 0.9 + epoch / 100, 0.3, accuracy if epoch == 2 else 0.1
        )
        stage._collect(training_snapshot(epoch_rows=(row,)))
    end = training_snapshot(steps_per_second=120.0)
    if fails:
        with pytest.raises(TourFailure, match=r"accuracy is 0\.949, not 0\.95 or more"):
            stage._read_results(end)
    else:
        stage._read_results(end)
    assert stage.report == {
        "epochs": 2,
        "train_accuracy": 0.92,
        "val_accuracy": accuracy,
        "steps_per_second": 120.0,
    }


def test_a_slice_that_shares_no_memory_fails_the_tour(stage_of) -> None:
    stage = stage_of(TensorsStage)
    for storages in ((1, 2), (None, None)):
        with pytest.raises(TourFailure, match="do not bear the same chip"):
            stage._see_sharing()
        x, y = (
            Variable(name, "tensor", "Tensor", storage=storage)
            for name, storage in zip("xy", storages, strict=True)
        )
        stage.store.take(VariablesSnapshot(variables=(x, y)))
    with pytest.raises(TourFailure, match="do not bear the same chip"):
        stage._see_sharing()
    same = tuple(Variable(name, "tensor", "Tensor", storage=3) for name in "xy")
    stage.store.take(VariablesSnapshot(variables=same))
    stage._see_sharing()


def test_a_cell_that_fails_fails_the_tour(stage_of) -> None:
    stage = stage_of(TensorsStage)
    stage.store.take(CellSnapshot(ok=False, error=ErrorReport(type="NameError", message="no x")))
    with pytest.raises(TourFailure, match="x = 1 failed: no x"):
        stage._wait_for_cell("x = 1")
    stage.store.take(CellSnapshot(ok=True, error=None))
    stage._wait_for_cell("x = 1")
    assert stage.report == {"cells_run": 1}


def test_files_that_do_not_load_without_the_program_fail_the_tour(stage_of, tmp_path) -> None:
    """The other way is gone by the tour itself."""
    (tmp_path / "model.py").write_text("", encoding="utf-8")
    with pytest.raises(
        TourFailure, match=r"do not load in bare Python: [\s\S]*has no attribute 'Model'"
    ):
        stage_of(ExportStage)._load_without_us()


def test_a_stage_reads_the_project_of_its_program(stage_of) -> None:
    stage = stage_of()
    assert stage.project is stage.store.project
    with pytest.raises(NotImplementedError):
        stage.run()
