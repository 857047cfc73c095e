"""The form of batches of code: order, padding, arguments of the DataLoader."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QCheckBox, QToolButton

from engine.project import edits
from engine.project.document import GIVEN, DataSetup, Loading, Project, TrainingSetup
from widgets.forms import ParamForm
from widgets.training.settings.batches_form import BatchesForm

WORKERS = [
    "prefetch_factor",
    "pin_memory",
    "persistent_workers",
    "timeout",
    "start_method",
    "in_order",
]


@pytest.fixture
def form(qtbot) -> BatchesForm:
    form = BatchesForm()
    qtbot.addWidget(form)
    form.told = []
    form.setup_edited.connect(lambda setup, words: form.told.append((setup, words)))
    return form


def of(**loading) -> TrainingSetup:
    return TrainingSetup(data=DataSetup(loading=Loading(**loading)))


def test_it_shows_the_fields_that_apply(form: BatchesForm) -> None:
    fields = form.findChild(ParamForm, "setup_batches_form")
    usual = ["shuffle", "drop_last", "workers"]
    for setup, names in (
        (of(), [*usual, "padding"]),
        (of(workers=2), [*usual, *WORKERS, "padding"]),
        (of(padding="left"), [*usual, "padding", "padding_value", "gives"]),
    ):
        form.show_setup(setup)
        assert [param.name for param in fields.params] == names


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("shuffle", False, False),
        ("drop_last", True, True),
        ("workers", "2", 2),
        ("padding", "right", "right"),
        ("padding_value", "-1", -1.0),
        ("gives", "mask", "mask"),
        ("persistent_workers", True, True),
        ("timeout", "30", 30.0),
        ("start_method", "spawn", "spawn"),
        ("in_order", False, False),
    ],
)
def test_each_field_is_edited_and_the_document_takes_it(
    form: BatchesForm, name: str, text, value
) -> None:
    before = {"workers": 1, "padding": "left"}
    form.show_setup(of(**before))
    form.findChild(ParamForm, "setup_batches_form").field(name).committed.emit(text)
    ((setup, _),) = form.told
    assert setup == of(**{**before, name: value})
    assert edits.set_training(Project(), setup).training == setup


def test_the_document_keeps_its_bounds() -> None:
    with pytest.raises(edits.EditError, match="timeout is -1"):
        edits.set_training(Project(), of(timeout=-1.0))


def test_objects_of_code_are_named_and_the_document_takes_them(form: BatchesForm) -> None:
    form.show_setup(of(workers=1))
    form.given.offer_names(["balanced", "sampler_of_rows", "rows"])
    fields = form.findChild(ParamForm, "setup_batches_given_form")
    assert [param.name for param in fields.params] == list(GIVEN)
    for name in GIVEN:
        form.told.clear()
        fields.field(name).committed.emit(f" mine.{name} ")
        ((setup, words),) = form.told
        assert setup == of(workers=1, **{name: f"mine.{name}"})
        assert words == f"Set {name.replace('_', ' ')} to mine.{name}"
        assert edits.set_training(Project(), setup).training == setup
    completer = fields.field("sampler").lineEdit().completer()
    completer.setCompletionPrefix("sam")
    assert completer.completionCount() == 1
    assert completer.currentCompletion() == "sampler_of_rows"


def test_the_objects_are_folded_until_there_is_one(form: BatchesForm) -> None:
    form.show()
    more, given = (
        form.findChild(QToolButton, f"{n}_more") for n in ("batches", "setup_batches_given")
    )
    form.show_setup(of())
    assert not more.isChecked() and not given.isChecked()
    form.show_setup(of(collate_fn="mine"))
    assert more.isChecked() and given.isChecked()


def test_a_share_is_held_out_with_the_fields_of_a_split(form: BatchesForm) -> None:
    form.show()
    share, split = (
        form.findChild(QCheckBox, "setup_hold_out"),
        form.findChild(ParamForm, "setup_split_form"),
    )
    form.show_setup(TrainingSetup())
    assert not share.isChecked() and split.isHidden()
    share.click()
    ((setup, words),) = form.told
    assert setup.data.hold_out and words == "Hold out a share for validation"
    form.show_setup(setup)
    assert [param.name for param in split.params] == [
        "validation_fraction", "stratified", "split_seed",
    ]  # fmt: skip
    split.value_edited.emit("validation_fraction", 0.5)
    assert form.told[-1][0].data == DataSetup(hold_out=True, validation_fraction=0.5)
