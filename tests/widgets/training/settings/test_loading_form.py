"""The form of transforms and batches, and the sample images of the preview."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QLabel, QPushButton, QToolButton

from engine.project import edits
from engine.project.catalogue import transforms
from engine.project.document import (
    DataSetup,
    Loading,
    Project,
    TrainingSetup,
    Transform,
    replace,
)
from engine.protocol import DataSnapshot, SampleImage
from widgets.forms import ParamForm
from widgets.training.settings.data_report import SampleImages
from widgets.training.settings.loading_form import LoadingForm

CROP, NOISE = Transform("RandomCrop", {"padding": 2}), Transform("GaussianNoise")


@pytest.fixture
def form(qtbot) -> LoadingForm:
    form = LoadingForm()
    qtbot.addWidget(form)
    form.show()
    form.told = []
    form.edited.connect(lambda setup, words: form.told.append((setup, words)))
    return form


def press(form: LoadingForm, name: str) -> None:
    form.findChild(QToolButton, name).click()


def test_it_is_folded_until_something_differs(form: LoadingForm) -> None:
    add = form.findChild(QPushButton, "add_transform")
    form.show_setup(DataSetup())
    assert not add.isVisible()
    form.show_setup(DataSetup(loading=Loading(drop_last=True)))
    assert add.isVisible()


@pytest.mark.parametrize("key", list(transforms()))
def test_each_transform_is_added_as_the_document_takes_it(form: LoadingForm, key: str) -> None:
    form.show_setup(DataSetup(transforms=(CROP,)))
    menu = form.findChild(QPushButton, "add_transform").menu()
    next(action for action in menu.actions() if action.text() == key).trigger()
    ((setup, words),) = form.told
    assert words == f"Add {key}" and setup.transforms == (CROP, Transform(key))
    project = edits.set_training(Project(), TrainingSetup(data=setup))
    assert project.training.data.transforms == setup.transforms


def test_a_transform_is_changed_moved_and_removed(form: LoadingForm, qtbot) -> None:
    setup = DataSetup(transforms=(CROP, NOISE))
    form.show_setup(setup)
    field = form.findChild(ParamForm, "transform_1_form").field("sigma")
    field.selectAll()
    qtbot.keyClicks(field, "0.5")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    press(form, "transform_1_up")
    press(form, "transform_0_remove")
    assert form.told == [
        (replace(setup, transforms=(CROP, replace(NOISE, params={"sigma": 0.5}))),
         "Set sigma to 0.5"),
        (replace(setup, transforms=(NOISE, CROP)), "Move GaussianNoise up"),
        (replace(setup, transforms=(NOISE,)), "Remove RandomCrop"),
    ]  # fmt: skip
    form.show_setup(DataSetup(transforms=(NOISE,)))
    assert form.findChild(QToolButton, "transform_0_up").isHidden()


def test_loading_is_edited(form: LoadingForm) -> None:
    form.show_setup(DataSetup(loading=Loading(workers=2)))
    form.findChild(ParamForm, "setup_loading_form").findChildren(QCheckBox)[0].click()
    assert form.told == [
        (DataSetup(loading=Loading(shuffle=False, workers=2)), "Set shuffle to False")
    ]


def test_no_more_transforms_than_a_project_may_have(form: LoadingForm) -> None:
    add = form.findChild(QPushButton, "add_transform")
    form.show_setup(DataSetup(transforms=(NOISE,) * 20))
    assert not add.isEnabled()
    form.show_setup(DataSetup(transforms=(NOISE,) * 19))
    assert add.isEnabled()


def test_sample_images_have_their_pixels_and_classes(qtbot) -> None:
    shown = SampleImages()
    qtbot.addWidget(shown)
    grey = SampleImage(2, 1, True, bytes([0, 255]))
    red = SampleImage(1, 1, False, bytes([255, 0, 0]))
    data = DataSnapshot(
        title="A", training=1, validation=0, sample_shape=(1, 1, 2), dtype="float32",
        targets="classes", images=(grey, red), image_targets=("cat", "dog"),
        transformed=(red, grey),
    )  # fmt: skip
    shown.show_data(data)
    found = [shown.findChild(QLabel, f"data_image_{row}_{i}") for row in (0, 3) for i in (0, 1)]
    first = found[0].pixmap().toImage()
    assert (first.width(), first.height()) == (40, 20)
    assert [first.pixelColor(x, 10).name() for x in (5, 35)] == ["#000000", "#ffffff"]
    assert found[1].pixmap().toImage().pixelColor(20, 20).name() == "#ff0000"
    assert found[0].accessibleName() == "Sample of class cat"
    assert found[2].pixmap().toImage() == found[1].pixmap().toImage()
    shown.show_data(replace(data, images=(), image_targets=(), transformed=()))
    assert shown.isHidden()
