"""The rows of `catalogue.toml`: what is left out of a row, and what a wrong one says."""

from __future__ import annotations

import pytest

from engine.models.signatures import read as torchs
from engine.project import catalogue, table
from engine.project.kinds import Param, Port
from engine.project.table import TableProblem, complete


def changed(old: str, new: str) -> str:
    text = table.PATH.read_text(encoding="utf-8")
    assert old in text
    return text.replace(old, new, 1)


def row(line: str, group: str = "Linear") -> table.Row:
    heading = f"[blocks.{group}]\n"
    found = table.read(changed(heading, heading + line + "\n")).rows
    return next(each for each in found if each.key == line.split('"')[1])


def test_a_row_needs_a_key_a_stem_an_icon_and_words():
    new = row('"nn.Fold" = { stem = "fold", icon = "mdi6.plus", summary = "Folds." }')
    assert (new.title, new.group, new.torch_name, new.call) == (
        "Fold", "Linear", "torch.nn.Fold", "module",
    )  # fmt: skip
    assert new.inputs == (Port("input", "the tensor to work on"),)
    assert new.outputs == (Port("output", "the result"),)
    assert (new.params, new.omit, new.extra, new.schema, new.keywords) == ({}, (), (), "", ())


@pytest.mark.parametrize(
    ("key", "torch_name", "call"),
    [("torch.roll", "torch.roll", "function"), ("Tensor.expand", "torch.Tensor.expand", "method")],
)
def test_the_key_tells_what_is_called(key, torch_name, call):
    new = row(f'"{key}" = {{ title = "T", stem = "t", icon = "mdi6.plus", summary = "S." }}')
    assert (new.torch_name, new.call, new.title) == (torch_name, call, "T")


def test_a_port_is_a_name_and_words_or_a_table():
    new = row(
        '"nn.X" = { stem = "x", icon = "i", summary = "S.", outputs = [], inputs = '
        '["a: one: of two", { name = "b", doc = "two", optional = true, pack = "p" }] }'
    )
    assert new.inputs == (Port("a", "one: of two"), Port("b", "two", True, "p"))
    assert new.outputs == ()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"nn.Linear" = {', '"nn.Linear" = { colour = 1,', ("nn.Linear", "colour")),
        ('"nn.Linear" = { stem = "linear",', '"nn.Linear" = {', ("nn.Linear", "stem")),
        ('"nn.Linear" = { stem = "linear"', '"nn.Linear" = { stem = 1', ("nn.Linear", "$.stem")),
        ('"optim.Adam" = {', '"optim.Adam" = { colour = 1', ("optim.Adam", "colour")),
        ('digits = { title = "Digits",', "digits = {", ("digits", "title")),
        ('noise = { type = "float"', 'noise = { type = "flat"', ("noise", "flat")),
        ("[[bounds]]\nminimum", "[[bounds]]\nleast", ("bounds", "least")),
        ("[optimizers]", "[optimizers", ("line",)),
        ('extra = ["inputs"]', 'extra = ["input"]', ("torch.cat", "[parameters] has no “input”")),
        ('params = ["samples",', 'params = ["sample",', ("moons", "has no “sample”")),
    ],
)
def test_a_wrong_row_is_named_with_its_field(old, new, words):
    with pytest.raises(TableProblem) as caught:
        table.read(changed(old, new))
    assert all(word in str(caught.value) for word in ("catalogue.toml", *words))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "params = { in_features = 64,",
            "params = { in_feature = 64,",
            r"\.toml, nn\.Linear: torch has no parameter “in_f",
        ),
        (
            "alpha = { minimum = 0, maximum = 1 }",
            "alpha = { minimum = 0, largest = 1 }",
            r"optim\.RMSprop, alpha: .*largest",
        ),
    ],
)
def test_a_wrong_correction_of_torchs_parameters_is_told(old, new, words):
    with pytest.raises(TableProblem, match=words):
        complete(table.read(changed(old, new)), torchs())


def test_starting_values_corrections_and_bounds_meet_torchs_parameters():
    upsample = catalogue.kind("nn.Upsample")
    scale = upsample.param("scale_factor")
    assert (scale.initial, scale.type, scale.minimum, scale.required) == (2.0, "float", 0, False)
    assert "recompute_scale_factor" not in [param.name for param in upsample.params]
    padding = catalogue.kind("nn.Conv2d").param("padding")
    assert (padding.choices, padding.minimum, padding.maximum) == (("valid", "same"), 0, 1_000_000)
    assert catalogue.kind("nn.Dropout").param("p").maximum == 1
    assert catalogue.kind("nn.ELU").param("alpha").maximum is None
    assert catalogue.kind("torch.add").param("alpha").minimum is None
    rmsprop = {param.name: param for param in catalogue.optimizers()["optim.RMSprop"]}
    assert (rmsprop["alpha"].minimum, rmsprop["alpha"].maximum) == (0, 1)
    mode = catalogue.kind("nn.Upsample").param("mode")
    assert (mode.minimum, mode.maximum) == (None, None)
    assert catalogue.kind("torch.cat").params[0] == Param(
        "inputs", "int", 2, minimum=2, maximum=16, doc="How many tensors to take (2 to 16)."
    )
    assert catalogue.kind("torch.cat").variadic and not catalogue.kind("torch.add").variadic


def test_the_data_sets_have_parameters_of_their_own():
    moons = catalogue.datasets()["moons"]
    assert [param.name for param in moons.params] == ["samples", "noise", "seed"]
    assert (moons.params[0].default, moons.params[1].default, moons.params[2].default) == (
        1000, 0.1, 0,
    )  # fmt: skip
    assert (moons.sample_shape, moons.classes) == ((2,), 2)
