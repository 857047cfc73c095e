"""Every factory's line against what torch makes of it; faults said at their field."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from engine.project.factories import FACTORIES, FieldError, Known, Surroundings, python_line
from engine.protocol import Variable, VariablesSnapshot
from widgets.operations.create_form import CreateForm

AROUND = Surroundings(
    tensors={"t": Known((1, 2, 3, 4), "float32"), "i": Known((2,), "int64")},
    arrays={"a": Known((2,), "float64")},
)


def made(key: str, **typed: str | bool) -> torch.Tensor:
    """What torch makes of the line."""
    variables = {
        "torch": torch,
        "np": np,
        "t": torch.ones(1, 2, 3, 4),
        "i": torch.tensor([1, 2]),
        "a": np.array([1.0, 2.0]),
    }
    exec(python_line(key, "x", typed, AROUND), variables)
    return variables["x"]


@pytest.mark.parametrize("key", FACTORIES)
def test_the_initial_line_of_every_factory_runs(key):
    needed = {"input": "t"} if FACTORIES[key].fields[0].kind == "tensor" else {}
    made(key, **needed)


@pytest.mark.parametrize("key", [k for k, f in FACTORIES.items() if "dtype" in f.options])
def test_requires_grad_makes_a_leaf(key):
    needed = {"input": "t"} if FACTORIES[key].fields[0].kind == "tensor" else {}
    x = made(key, dtype="float64", requires_grad=True, **needed)
    assert (x.dtype, x.requires_grad, x.is_leaf) == (torch.float64, True, True)


@pytest.mark.parametrize("key", [k for k, f in FACTORIES.items() if "memory_format" in f.options])
def test_memory_formats_keep_shape_leaf_and_change_strides(key):
    needed = {"input": "t"} if FACTORIES[key].fields[0].kind == "tensor" else {"size": "1, 2, 3, 4"}
    x = made(key, memory_format="channels_last", dtype="float32", requires_grad=True, **needed)
    assert x.is_contiguous(memory_format=torch.channels_last)
    assert (tuple(x.shape), x.is_leaf, x.requires_grad) == ((1, 2, 3, 4), True, True)


@pytest.mark.parametrize(
    ("key", "typed", "expected"),
    [
        ("tensor", {"data": "[[1, 2], [3, 4]]"}, torch.tensor([[1, 2], [3, 4]])),
        ("tensor", {"data": "[1, inf, -inf]"}, torch.tensor([1, torch.inf, -torch.inf])),
        ("tensor", {"data": "[True, False]"}, torch.tensor([True, False])),
        ("tensor", {"data": "3"}, torch.tensor(3)),
        ("tensor", {"data": "[]"}, torch.tensor([])),
        ("zeros", {"size": ""}, torch.zeros(())),
        ("zeros", {"size": "2 x 3", "dtype": "int8"}, torch.zeros(2, 3, dtype=torch.int8)),
        ("ones", {"size": "(4,)"}, torch.ones(4)),
        ("full", {"size": "2", "fill_value": "1+2j"}, torch.full((2,), 1 + 2j)),
        ("eye", {"n": "2", "m": "3"}, torch.eye(2, 3)),
        ("arange", {"end": "5"}, torch.arange(5)),
        ("arange", {"start": "5", "end": "0", "step": "-2"}, torch.arange(5, 0, -2)),
        ("arange", {"end": "1", "step": "0.25"}, torch.arange(0, 1, 0.25)),
        ("linspace", {"start": "-1", "steps": "3"}, torch.linspace(-1, 1, 3)),
        ("logspace", {"base": "2"}, torch.logspace(0, 3, 5, base=2)),
        ("full_like", {"input": "i", "fill_value": "9"}, torch.tensor([9, 9])),
        ("tensor(array)", {"array": "a"}, torch.tensor([1.0, 2.0], dtype=torch.float64)),
    ],
)
def test_what_is_typed_is_what_torch_makes(key, typed, expected):
    x = made(key, **typed)
    assert x.dtype == expected.dtype
    torch.testing.assert_close(x, expected)


def test_a_seed_draws_the_same_numbers():
    assert torch.equal(made("randn", seed="3"), made("randn", seed="3"))
    drawn = made("randn", seed="3")
    torch.manual_seed(3)
    assert torch.equal(drawn, torch.randn(2, 3))


def test_from_numpy_shares_and_tensor_copies():
    variables: dict[str, Any] = {"torch": torch, "np": np}
    exec(python_line("from_numpy", "x", {"array": "[1.0, 2.0]"}, AROUND), variables)
    exec(python_line("tensor(array)", "y", {"array": "[1.0, 2.0]"}, AROUND), variables)
    variables["x_np"][0] = variables["y_np"][0] = 9.0
    assert (variables["x"].tolist(), variables["y"].tolist()) == ([9.0, 2.0], [1.0, 2.0])


@pytest.mark.parametrize(
    ("key", "typed", "at", "words"),
    [
        ("tensor", {"data": "[[1, 2], [3]]"}, "data", "Entry 1 is a list of 1"),
        ("tensor", {"data": "[1, 'a']"}, "data", "'a' is not a number"),
        ("tensor", {"data": "[1, f()]"}, "data", "is not a number"),
        ("tensor", {"data": "[1, "}, "data", "nested lists"),
        ("tensor", {"data": "[1]", "requires_grad": True}, "requires_grad", "not int64"),
        ("zeros", {"size": "2, -1"}, "size", "cannot be less than 0"),
        ("zeros", {"size": "two"}, "size", "whole numbers"),
        ("zeros", {"memory_format": "channels_last"}, "memory_format", "this has 2"),
        ("zeros", {"pin_memory": True}, "pin_memory", "no CUDA device"),
        ("rand", {"dtype": "int64"}, "dtype", "choose a float dtype"),
        ("randint", {"low": "3", "high": "3"}, "high", "more than low"),
        ("randn", {"seed": "x"}, "seed", "whole numbers"),
        ("arange", {"step": "0"}, "step", "does not lead"),
        ("arange", {"end": "-3"}, "step", "does not lead"),
        ("arange", {"end": "inf"}, "end", "finite"),
        ("zeros_like", {"input": "nope"}, "input", "There is no tensor nope"),
        ("from_numpy", {"array": "nope"}, "array", "no NumPy array named nope"),
    ],
)
def test_faults_are_told_at_their_field(key, typed, at, words):
    with pytest.raises(FieldError, match=words) as fault:
        python_line(key, "x", typed, AROUND)
    assert fault.value.field_name == at


@pytest.mark.parametrize("name", ["", "1x", "for", "a b", "torch"])
def test_names_that_python_or_the_console_needs_are_refused(name):
    with pytest.raises(FieldError) as fault:
        python_line("zeros", name, {}, AROUND)
    assert fault.value.field_name == "name"


# -- the form ------------------------------------------------------------------------------------


@pytest.fixture
def form(qtbot):
    form = CreateForm()
    qtbot.addWidget(form)
    form.resize(400, 560)
    form.show()
    return form


def test_typing_shows_the_line_and_create_asks_to_run_it(form, qtbot):
    form.choose("zeros")
    size = form.editors["size"]
    size.selectAll()
    QTest.keyClicks(size, "4, 5")
    assert form.source == "x = torch.zeros(4, 5)"
    with qtbot.waitSignal(form.run_requested) as asked:
        QTest.mouseClick(form.create_button, Qt.MouseButton.LeftButton)
    assert asked.args == ["x = torch.zeros(4, 5)"]
    with qtbot.waitSignal(form.run_requested):
        QTest.keyClick(size, Qt.Key.Key_Return)


def test_a_fault_stands_under_its_field_and_nothing_can_be_run(form, qtbot):
    form.choose("zeros")
    size = form.editors["size"]
    QTest.keyClicks(size, ", q")
    assert "whole numbers" in form.error("size")
    assert (form.source, form.create_button.isEnabled()) == ("", False)
    with qtbot.assertNotEmitted(form.run_requested):
        QTest.keyClick(size, Qt.Key.Key_Return)
    for _ in range(3):
        QTest.keyClick(size, Qt.Key.Key_Backspace)
    assert (form.error("size"), form.source) == ("", "x = torch.zeros(2, 3)")


def test_what_was_typed_stays_when_the_function_changes(form):
    form.choose("zeros")
    form.editors["size"].setText("7")
    form.editors["dtype"].setCurrentText("float64")
    form.choose("rand")
    assert form.source == "x = torch.rand(7, dtype=torch.float64)"


def test_variables_are_offered_and_a_free_name_proposed(form):
    form.choose("ones_like")
    assert "Create a tensor first" in form.error("input")
    form.show_variables(
        VariablesSnapshot(
            variables=(
                Variable("x", "tensor", "Tensor", shape=(2, 3), dtype="float32"),
                Variable("a", "other", "ndarray", shape=(2,), dtype="float64"),
            )
        )
    )
    assert form.source == "y = torch.ones_like(x)"
    form.choose("from_numpy")
    assert form.editors["array"].findText("a") == 0
    form.name_edit.setText("x")
    assert "torch.from_numpy" in form.source
    form.show_variables(VariablesSnapshot(variables=()))
    assert form.name_edit.text() == "x"


def test_devices_are_offered(form):
    form.choose("zeros")
    form.set_devices(("cpu", "cuda:0"))
    form.editors["device"].setCurrentText("cuda:0")
    assert form.source == 'x = torch.zeros(2, 3, device="cuda:0")'


def test_pinning_is_offered_only_with_a_cuda_device(form):
    form.choose("zeros")
    box = form.editors["pin_memory"]
    assert not box.isEnabled() and "no CUDA device" in box.toolTip()
    form.set_devices(("cpu", "cuda:0"))
    assert box.isEnabled() and "no CUDA device" not in box.toolTip()
    box.setChecked(True)
    assert "pin_memory=True" in form.source
    form.set_devices(("cpu",))  # the engine came back without
    assert not box.isChecked() and "pin_memory" not in form.source
    form.choose("randn")
    assert not form.editors["pin_memory"].isEnabled()


def test_the_fields_of_every_factory_fit_into_a_narrow_dock(qtbot):
    form = CreateForm()
    qtbot.addWidget(form)
    form.resize(240, 500)
    form.show()
    for key in FACTORIES:
        form.choose(key)
        qtbot.waitUntil(lambda: form.width() == 240)
        for field in (form.factory_box, form.name_edit, *form.editors.values()):
            assert field.mapTo(form, field.rect().topRight()).x() < 240 - 8, (key, field)
