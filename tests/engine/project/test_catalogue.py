"""The catalogue against the installed torch, and the values that its parameters take."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files as package_files

import pytest
from torch import nn

from engine.models import signatures
from engine.project import catalogue
from engine.project.catalogue import Param, parse_value
from engine.project.document import Block, Loading


def test_catalogue_json_is_what_its_rows_and_the_installed_torch_say():
    written = signatures.PATH.read_text(encoding="utf-8")
    assert written == signatures.text(), "run: python -m engine.models.signatures"


def test_the_catalogue_needs_no_torch():
    code = "import sys; from engine.project import catalogue; catalogue.kinds(); "
    code += "print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_there_are_the_kinds_a_first_model_needs():
    kinds = catalogue.kinds()
    assert len(kinds) >= 55
    wanted = "Linear Conv1d Conv2d MaxPool2d BatchNorm1d BatchNorm2d LayerNorm Dropout ReLU GELU"
    wanted += " Flatten Embedding LSTM GRU MultiheadAttention CrossEntropyLoss MSELoss"
    assert {f"nn.{name}" for name in wanted.split()} <= set(kinds)
    assert {"Input", "Output", "residual", "torch.cat", "torch.matmul", "Tensor.reshape"} <= set(
        kinds
    )


@pytest.mark.parametrize("key", catalogue.kinds())
def test_every_row_is_told_in_words(key: str):
    kind = catalogue.kind(key)
    assert kind.key == key and kind.stem.isidentifier()
    assert kind.title and kind.group and kind.torch_name
    assert kind.summary.endswith(".") and len(kind.summary) < 120
    assert all(param.doc for param in kind.params)
    assert all(port.doc for port in (*kind.inputs, *kind.outputs))


def test_every_icon_exists():
    fonts = package_files("qtawesome") / "fonts"
    (charmap,) = [
        f
        for f in fonts.iterdir()
        if f.name.startswith("materialdesignicons6") and f.name.endswith(".json")
    ]
    names = json.loads(charmap.read_text(encoding="utf-8"))
    icons = {kind.icon for kind in catalogue.kinds().values()}
    assert {icon for icon in icons if icon.removeprefix("mdi6.") not in names} == set()


def test_defaults_are_torchs_and_initial_values_are_ours():
    lstm = catalogue.kind("nn.LSTM")
    assert lstm.param("batch_first").default is False
    assert catalogue.defaults("nn.LSTM") == {
        "input_size": 8,
        "hidden_size": 32,
        "batch_first": True,
    }
    assert catalogue.kind("nn.BatchNorm2d").param("eps").default == 1e-5
    assert catalogue.kind("nn.BatchNorm2d").param("momentum").optional
    with pytest.raises(KeyError):
        lstm.param("no_such_parameter")


def test_arguments_are_the_blocks_own_over_torchs():
    block = Block("b", "nn.Dropout", "drop", {"p": 0.2})
    assert catalogue.arguments(block) == {"p": 0.2}
    linear = Block("b", "nn.Linear", "fc", {"in_features": 3})
    assert catalogue.arguments(linear) == {"in_features": 3, "bias": True}


def test_variadic_kinds_have_as_many_ports_as_asked_for():
    inputs, outputs = catalogue.ports(Block("b", "torch.cat", "cat1", {"inputs": 3}))
    assert [port.name for port in inputs] == ["tensor0", "tensor1", "tensor2"]
    assert [port.name for port in outputs] == ["output"]
    for count, expected in ((2, 2), (1, 2), (-5, 2), ("many", 2), (16, 16), (17, 16)):
        block = Block("b", "torch.stack", "s", {"inputs": count})
        assert len(catalogue.ports(block)[0]) == expected
    assert len(catalogue.ports(Block("b", "torch.cat", "cat1"))[0]) == 2
    assert {port.pack for port in inputs} == {"tensors"}
    too_many = Block("b", "torch.cat", "cat1", {"inputs": 10**9})
    assert len(catalogue.ports(too_many)[0]) == 16


@pytest.mark.parametrize(
    ("key", "inputs", "outputs"),
    [
        ("nn.Bilinear", ["input1", "input2"], ["output"]),
        ("nn.LSTM", ["input", "h_0", "c_0"], ["output", "h_n", "c_n"]),
        ("Input", [], ["x"]),
        ("Output", ["x"], []),
    ],
)
def test_other_kinds_have_the_ports_of_their_row(key, inputs, outputs):
    found = catalogue.ports(Block("b", key, "b1", {"inputs": 5}))
    assert [[port.name for port in side] for side in found] == [inputs, outputs]


def test_arguments_leave_out_what_is_not_known():
    block = Block("b", "nn.Linear", "fc", {"wings": 2, "bias": False})
    assert catalogue.arguments(block) == {"bias": False}


def test_optimizers_losses_and_data_sets_have_their_parameters():
    adam = {param.name: param.default for param in catalogue.optimizers()["optim.Adam"]}
    assert adam["lr"] == 1e-3 and adam["betas"] == (0.9, 0.999) and "foreach" not in adam
    pairs = {"Triplet", "CosineEmbedding", "HingeEmbedding", "MarginRanking", "GaussianNLL", "CTC"}
    torchs = {f"nn.{name}" for name in dir(nn) if name.endswith("Loss")}
    no_target = {f"nn.{name}" for name in dir(nn) if any(name.startswith(pair) for pair in pairs)}
    with_weights = {"nn.AdaptiveLogSoftmaxWithLoss", "nn.LinearCrossEntropyLoss"}
    assert set(catalogue.losses()) == torchs - no_target - with_weights
    assert all(loss.target for loss in catalogue.losses().values())
    assert {"digits", "diabetes", "moons"} < set(catalogue.datasets())


INT = Param("n", "int", required=True, minimum=1)
INTS = Param("kernel_size", "ints", required=True, minimum=1, choices=("same",))
SHAPE = Param("shape", "shape", required=True, minimum=1)


@pytest.mark.parametrize(
    ("param", "given", "value"),
    [
        (INT, "64", 64),
        (INT, 64, 64),
        (INT, 64.0, 64),
        (INT, " 7 ", 7),
        (INTS, "3", 3),
        (INTS, "3, 5", (3, 5)),
        (INTS, "(3, 5)", (3, 5)),
        (INTS, "[3 5]", (3, 5)),
        (INTS, "3 × 5", (3, 5)),
        (INTS, "(3)", (3,)),
        (INTS, "3,", (3,)),
        (INTS, 3, 3),
        (INTS, 3.0, 3),
        (INT, "+3", 3),
        (INT, "1" * 18, int("1" * 18)),
        (SHAPE, "7", (7,)),
        (SHAPE, 7, (7,)),
        (Param("p", "float", minimum=0, maximum=1), 0, 0.0),
        (Param("p", "float", minimum=0, maximum=1), "1", 1.0),
        (Param("p", "float"), "-2.5", -2.5),
        (Param("b", "floats"), "0.5", (0.5,)),
        (Param("b", "floats"), [1, "2"], (1.0, 2.0)),
        (Param("b", "bool"), " YES ", True),
        (Param("b", "bool"), "off", False),
        (Param("w", "str"), " tanh ", "tanh"),
        (Param("w", "str", optional=True), "none", None),
        (Param("n", "int", minimum=None, maximum=9), "-5", -5),
        (INTS, (3,), (3,)),
        (INTS, "same", "same"),
        (INTS, [2, 2], (2, 2)),
        (SHAPE, "1, 8, 8", (1, 8, 8)),
        (SHAPE, "1x8x8", (1, 8, 8)),
        (SHAPE, "(8, -1)", (8, -1)),
        (Param("p", "float", minimum=0, maximum=1), "0.25", 0.25),
        (Param("p", "float"), 1, 1.0),
        (Param("p", "float"), "1e-3", 1e-3),
        (Param("b", "floats"), "(0.9, 0.99)", (0.9, 0.99)),
        (Param("b", "bool"), "True", True),
        (Param("b", "bool"), "no", False),
        (Param("m", "choice", choices=("a", "b")), "b", "b"),
        (Param("s", "int", optional=True), "", None),
        (Param("s", "int", optional=True), "None", None),
        (Param("a", "choice", choices=("none", "tanh")), "none", "none"),
    ],
)
def test_a_value_is_parsed(param: Param, given: object, value: object):
    parsed = parse_value(param, given)
    assert parsed == value and type(parsed) is type(value)


@pytest.mark.parametrize(
    ("param", "given", "words"),
    [
        (INT, "0", "n must be at least 1, not 0."),
        (INT, "many", "n takes a whole number, such as 64, not 'many'."),
        (INT, "", "n cannot be empty"),
        (INT, None, "n cannot be empty"),
        (INT, 2.5, "not 2.5"),
        (INT, True, "not True"),
        (INTS, "3, x", "kernel_size takes"),
        (INTS, "(0, 3)", "at least 1"),
        (INTS, "()", "takes"),
        (SHAPE, "-1, -1", "-1 once"),
        (SHAPE, "0, 8", "at least 1"),
        (Param("p", "float", minimum=0, maximum=1), 1.5, "p must be between 0 and 1, not 1.5."),
        (Param("p", "float"), "nan", "finite"),
        (Param("p", "float"), "inf", "finite"),
        (Param("m", "choice", choices=("a", "b")), "c", "one of a, b"),
        (Param("b", "bool"), "maybe", "True or False"),
        (Param("b", "bool"), 2, "True or False"),
    ],
)
def test_a_wrong_value_is_refused(param: Param, given: object, words: str):
    with pytest.raises(ValueError) as error:
        parse_value(param, given)
    assert words in str(error.value) and param.name in str(error.value)


@pytest.mark.parametrize(
    ("param", "given", "words"),
    [
        (INT, "x", "n takes a whole number, such as 64, not 'x'."),
        (INT, "1" * 19, f"n takes a whole number, such as 64, not '{'1' * 19}'."),
        (Param("p", "float"), "x", "p takes a number, such as 0.5, not 'x'."),
        (Param("p", "float"), True, "p takes a number, such as 0.5, not True."),
        (Param("p", "float"), (1,), "p takes a number, such as 0.5, not (1,)."),
        (Param("p", "float"), "-inf", "p must be a finite number, not -inf."),
        (Param("b", "bool"), "x", "b takes True or False, not 'x'."),
        (Param("w", "str"), 3, "w takes a word, not 3."),
        (Param("k", "ints"), "x",
         "k takes a whole number or several, such as 3 or (3, 5), not 'x'."),
        (Param("k", "floats"), "x", "k takes numbers, such as (0.9, 0.999), not 'x'."),
        (Param("k", "shape"), "x", "k takes sizes, such as (1, 8, 8), not 'x'."),
        (Param("k", "shape"), "-1 -1", "k can contain -1 once: torch infers one size."),
        (Param("c", "choice", choices=("a", "b")), "x", "c takes one of a, b, not 'x'."),
        (Param("w", "str", choices=("a", "b")), "x", "w takes a word or one of a, b, not 'x'."),
        (Param("k", "ints", choices=("same",)), "x",
         "k takes a whole number or several, such as 3 or (3, 5) or one of same, not 'x'."),
        (Param("n", "int", optional=True), "x",
         "n takes a whole number, such as 64, or None, not 'x'."),
        (INT, "None", "n cannot be empty: give a whole number, such as 64."),
        (Param("n", "int", maximum=9), 10, "n must be at most 9, not 10."),
        (Param("n", "int", minimum=1, maximum=9), 0, "n must be between 1 and 9, not 0."),
        (Param("b", "floats", maximum=1), "0.9, 1.5", "b must be at most 1, not 1.5."),
        (SHAPE, "3, -2", "shape must be at least 1, not -2."),
        (INTS, "-1", "kernel_size must be at least 1, not -1."),
    ],
)  # fmt: skip
def test_a_refusal_word_for_word(param: Param, given: object, words: str):
    with pytest.raises(ValueError) as error:
        parse_value(param, given)
    assert str(error.value) == words


def test_a_loss_that_blocks_cannot_have_says_what_it_takes():
    for key, other in catalogue.other_losses().items():
        assert catalogue.no_loss(key) == (
            f"A model of blocks cannot have {key}: it takes {other.takes}."
        )
        step = other.source(key, "model.loss")
        compile(step, "step", "exec")
        assert step.startswith("def step(batch):\n    ") and step.endswith("\n    return loss\n")
        assert "{" not in step and (key in step or "model.loss" in step)
    assert catalogue.no_loss("nn.Nope") == "There is no loss “nn.Nope”."


def test_data_is_of_a_path_if_it_is_read_from_a_file_or_a_folder():
    kinds = catalogue.datasets()
    of_path = {key for key, kind in kinds.items() if kind.is_of_path}
    assert of_path == {"csv", "idx", "images", "cifar", "text", "numpy"}
    assert {kinds[key].source for key in of_path} <= {"file", "folder", "file or folder"}


def test_batches_repeat_unless_several_workers_give_them_as_they_come():
    for workers, in_order, repeats in (
        (None, True, True), (None, False, True), (0, False, True), (1, False, True),
        (2, True, True), (2, False, False), (3, False, False),
    ):  # fmt: skip
        assert Loading(workers=workers, in_order=in_order).repeats == repeats
