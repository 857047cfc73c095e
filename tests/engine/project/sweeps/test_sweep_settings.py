"""A sweep as it is written: ranges and lists, what makes sense, and the project of each trial."""

from __future__ import annotations

from math import inf, nan

import pytest

from app import templates
from engine.project.document import replace
from engine.project.edits.parameters import EditError
from engine.project.limits import MAX_TRIALS
from engine.project.sweeps.sweep import (
    MAX_VALUES,
    RATE,
    Choice,
    Sweep,
    SweepProblem,
    in_words,
    parse_choice,
    setting_name,
)
from engine.project.sweeps.trials import MAX_CHOICES, check_sweep, with_values

MLP = templates.load_template("mlp")
SGD = replace(
    MLP,
    training=replace(
        MLP.training, optimizer="optim.SGD", optimizer_params={"lr": 0.1, "momentum": 0.9}
    ),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e-4..1e-1:log", Choice("x", low=1e-4, high=1e-1, log=True)),
        (" 16 .. 128 ", Choice("x", low=16, high=128)),
        ("0..1", Choice("x", low=0, high=1)),
        ("1..2.5 : log", Choice("x", low=1.0, high=2.5, log=True)),
        ("-1..0.0", Choice("x", low=-1.0, high=0.0)),
        ("16, 32,,16", Choice("x", (16, 32))),
        ("true, False, none, relu, 1e-3", Choice("x", (True, False, None, "relu", 1e-3))),
        ("5", Choice("x", (5,))),
        (",".join(map(str, range(MAX_VALUES))), Choice("x", tuple(range(MAX_VALUES)))),
    ],
)
def test_a_range_or_a_list(text: str, expected: Choice) -> None:
    found = parse_choice("x", text)
    assert found == expected
    assert [type(end) for end in (found.low, found.high)] == [
        type(end) for end in (expected.low, expected.high)
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there is nothing to try"), (" , ", "there is nothing to try"),
        ("2..2", r"a range goes up, and 2\.\.2 does not"), ("3..2", "a range goes up"),
        ("0..1:log", "begins above 0, not at 0"), ("-1..1:log", "begins above 0, not at -1"),
        ("a..2", "“a” is not a number"), ("1..true", "“true” is not a number"),
        ("1..inf", "“inf” is not a number"), ("nan..1", "“nan” is not a number"),
        (",".join(map(str, range(MAX_VALUES + 1))), "a list has at most 100 values"),
    ],
)  # fmt: skip
def test_what_is_no_range_and_no_list_is_told(text: str, words: str) -> None:
    with pytest.raises(SweepProblem, match=f"^x: .*{words}"):
        parse_choice("x", text)


def test_settings_have_short_names_and_optimizers_too() -> None:
    assert [setting_name(n) for n in ("lr", "learning_rate", " training.seed ", "training.lr")] == [
        RATE, RATE, "seed", RATE,
    ]  # fmt: skip
    assert parse_choice("optimizer", "Adam, optim.SGD").values == ("optim.Adam", "optim.SGD")
    assert parse_choice("kind", "Adam").values == ("Adam",)
    values = {RATE: 0.0031415, "batch_size": 32, "blocks.a.p": 1.0, "optimizer": "optim.Adam"}
    assert in_words(values) == "lr 0.00314, batch_size 32, a.p 1, optimizer Adam"


def test_whole_numbers_are_drawn_only_between_whole_numbers() -> None:
    assert Choice("x", low=1, high=4).is_whole
    assert not Choice("x", low=1, high=4.0).is_whole
    assert not Choice("x", low=1.0, high=4).is_whole


@pytest.mark.parametrize(
    ("value", "best", "lower", "higher"),
    [
        (None, nan, False, False), (nan, 1.0, False, False), (1.0, nan, True, True),
        (1.0, 2.0, True, False), (2.0, 1.0, False, True), (1.0, 1.0, False, False),
        (inf, nan, True, True),
    ],
)  # fmt: skip
def test_the_better_figure(value, best: float, lower: bool, higher: bool) -> None:
    assert Sweep(()).is_better(value, best) == lower
    assert Sweep((), maximise=True).is_better(value, best) == higher


def test_a_trial_has_its_values_and_all_else_of_the_project() -> None:
    values = {"batch_size": 7, RATE: 0.5, "data.split_seed": 5, "blocks.linear1.bias": False}
    found = with_values(MLP, values)
    assert (found.training.batch_size, found.training.optimizer_params["lr"]) == (7, 0.5)
    assert found.training.data == replace(MLP.training.data, split_seed=5)
    (changed,) = (b for b in found.model.blocks if b not in MLP.model.blocks)
    assert (changed.name, changed.params["bias"]) == ("linear1", False)
    back = replace(found, training=MLP.training, model=MLP.model)
    assert back == MLP


def test_the_options_of_another_optimizer_are_left_out_if_it_varies_too() -> None:
    found = with_values(SGD, {"optimizer": "optim.Adam", "optimizer_params.momentum": 0.5})
    assert found.training.optimizer == "optim.Adam"
    assert found.training.optimizer_params == {"lr": 0.1}
    found = with_values(SGD, {"optimizer": "optim.SGD", "optimizer_params.momentum": 0.5})
    assert found.training.optimizer_params == {"lr": 0.1, "momentum": 0.5}
    with pytest.raises(EditError, match="momentum"):
        with_values(MLP, {"optimizer_params.momentum": 0.5})


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("blocks.gone.p", "no block `gone`"), ("blocks", "no setting `blocks`"),
        ("nothing", "no setting `nothing`"), ("batch_size.more", "no setting `batch_size.more`"),
        ("data.nothing", "no setting `data.nothing`"), ("batch_size", "int"),
    ],
)  # fmt: skip
def test_a_setting_that_there_is_not_is_told(name: str, words: str) -> None:
    with pytest.raises(EditError, match=words):
        with_values(MLP, {name: "text"})


SEEDS = Choice("seed", (1, 2))


@pytest.mark.parametrize(
    ("sweep", "words"),
    [
        (Sweep(()), "Choose a setting to vary"),
        (Sweep((SEEDS, SEEDS)), "seed is there twice"),
        (Sweep((SEEDS,), trials=0), "not 0"),
        (Sweep((SEEDS,), trials=MAX_TRIALS + 1), "A sweep has 1 to"),
        (Sweep((Choice("batch_size", low=0, high=5),)), "batch_size cannot be 0"),
        (Sweep((Choice("batch_size", low=1, high=2.5),)), "batch_size cannot be 2.5"),
        (Sweep((Choice("epochs", (3, "many")),)), "epochs cannot be many"),
        (
            Sweep((Choice("optimizer", ("optim.Adam",)), Choice("optimizer_params.wings", (1,)))),
            "optimizer_params.wings cannot be 1|There is no",
        ),
        (Sweep((Choice("optimizer", ("optim.Gone",)),)), "optimizer cannot be optim.Gone"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_told(sweep: Sweep, words: str) -> None:
    with pytest.raises(SweepProblem, match=words):
        check_sweep(sweep, MLP)


def test_a_sweep_at_the_bounds_makes_sense() -> None:
    check_sweep(Sweep((SEEDS,), trials=1), MLP)
    check_sweep(Sweep((SEEDS,), trials=MAX_TRIALS), MLP)
    kinds = Choice("optimizer", ("optim.Adam", "optim.SGD"))
    momentum = Choice("optimizer_params.momentum", low=0.5, high=0.9)  # only SGD has it
    check_sweep(Sweep((momentum, kinds)), MLP)
    with pytest.raises(SweepProblem, match="momentum"):
        check_sweep(Sweep((momentum,)), MLP)
    rates = Choice(RATE, (0.1,))
    names = [Choice(f"blocks.linear1.{n}", (True,)) for n in range(MAX_CHOICES)]
    with pytest.raises(SweepProblem, match=f"varies at most {MAX_CHOICES} settings"):
        check_sweep(Sweep((rates, *names)), MLP)
