"""The optimizers' rules, word for word. Their numbers are compared with torch's in the tests of a
run's first update."""

from __future__ import annotations

import pytest

from engine.project.updates import UpdateRule, options_of, update_rule

ADAM = "mean and square are running means of the gradient and of its square, corrected for their"
ADAM += " start at 0."
FIRST_RMSPROP = "old − lr · grad / (√((1 − alpha) · grad²) + eps)"


@pytest.mark.parametrize(
    ("optimizer", "params", "rule"),
    [
        ("optim.SGD", {}, UpdateRule("old − lr · grad", "", "old − lr · grad")),
        (
            "optim.SGD",
            {"momentum": 0.9, "dampening": 0.5},
            UpdateRule(
                "old − lr · velocity",
                "velocity = momentum · velocity + (1 − dampening) · grad; it begins as the first"
                " gradient.",
                "old − lr · grad",
            ),
        ),
        (
            "optim.SGD",
            {"momentum": 0.9, "nesterov": True, "maximize": True, "weight_decay": 0.1},
            UpdateRule(
                "old − lr · (((−grad) + weight_decay · old) + momentum · velocity)",
                "velocity = momentum · velocity + ((−grad) + weight_decay · old); it begins as the"
                " first gradient.",
                "old − lr · (1 + momentum) · ((−grad) + weight_decay · old)",
            ),
        ),
        (
            "optim.Adam",
            {},
            UpdateRule(
                "old − lr · mean / (√square + eps)", ADAM, "old − lr · grad / (|grad| + eps)"
            ),
        ),
        (
            "optim.AdamW",
            {"amsgrad": True, "weight_decay": 0.1},
            UpdateRule(
                "(1 − lr · weight_decay) · old − lr · mean / (√square + eps)",
                f"{ADAM} The largest square so far is used.",
                "(1 − lr · weight_decay) · old − lr · grad / (|grad| + eps)",
            ),
        ),
        (
            "optim.RMSprop",
            {},
            UpdateRule(
                "old − lr · grad / (√square + eps)",
                "square is a running mean of the gradient's square.",
                FIRST_RMSPROP,
            ),
        ),
        (
            "optim.RMSprop",
            {"momentum": 0.9},
            UpdateRule(
                "old − lr · velocity",
                "square is a running mean of the gradient's square; velocity = momentum · velocity"
                " + grad / (√square + eps).",
                FIRST_RMSPROP,
            ),
        ),
        (
            "optim.RMSprop",
            {"centered": True},
            UpdateRule(
                "old − lr · grad / (√(square − mean²) + eps)",
                "square is a running mean of the gradient's square, mean one of the gradient.",
                "old − lr · grad / (√(alpha · (1 − alpha) · grad²) + eps)",
            ),
        ),
        (
            "optim.Adagrad",
            {"lr_decay": 0.1},
            UpdateRule(
                "old − lr / (1 + steps · lr_decay) · grad / (√total + eps)",
                "total is the sum of all squared gradients, beginning at"
                " initial_accumulator_value. steps counts the steps before.",
                "old − lr · grad / (√(initial_accumulator_value + grad²) + eps)",
            ),
        ),
        (
            "optim.Adagrad",
            {},
            UpdateRule(
                "old − lr · grad / (√total + eps)",
                "total is the sum of all squared gradients, beginning at"
                " initial_accumulator_value.",
                "old − lr · grad / (√(initial_accumulator_value + grad²) + eps)",
            ),
        ),
    ],
)
def test_a_rule_word_for_word(optimizer, params, rule):
    assert update_rule(optimizer, params) == rule


def test_options_are_those_chosen_else_torchs():
    options = options_of("optim.SGD", {"lr": 0.5, "wings": 2})
    assert (options["lr"], options["momentum"], options["nesterov"]) == (0.5, 0, False)
    assert "wings" not in options
    with pytest.raises(KeyError):
        update_rule("optim.Luck", {})


@pytest.mark.parametrize(
    ("optimizer", "rule", "first"),
    [
        ("optim.Adadelta", "old − lr · √(moved + eps) / √(square + eps) · grad",
         "old − lr · √(eps) / √((1 − rho) · grad² + eps) · grad"),
        ("optim.Adamax", "old − lr · mean / largest", "old − lr · grad / (|grad| + eps)"),
        ("optim.RAdam", "old − lr · trust · mean / (√square + eps)", "old − lr · grad"),
        ("optim.ASGD", "(1 − lambd · eta) · old − eta · grad",
         "(1 − lambd · lr) · old − lr · grad"),
        ("optim.Rprop", "old − size · sign(grad)", "old − lr · sign(grad)"),
    ],
)  # fmt: skip
def test_the_rules_of_the_other_optimizers(optimizer: str, rule: str, first: str) -> None:
    told = update_rule(optimizer, {})
    assert (told.step, told.first) == (rule, first) and told.words


@pytest.mark.parametrize("optimizer", ["NAdam", "Adafactor", "LBFGS", "Muon", "SparseAdam"])
def test_some_optimizers_have_words_only(optimizer: str) -> None:
    told = update_rule(f"optim.{optimizer}", {})
    assert (told.step, told.first) == ("", "") and told.words.endswith(".")
