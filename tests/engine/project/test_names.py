"""Names of blocks and problems: what is said, word for word."""

from __future__ import annotations

import pytest

from engine.project.document import Block, Model
from engine.project.names import fresh_name, name_problem
from engine.project.problems import Problem, located


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "A block needs a name."),
        (
            "a b",
            "“a b” is not a valid Python name: use letters, digits and underscores, and do not"
            " start with a digit.",
        ),
        ("if", "“if” is a Python keyword. Try “if_”."),
        ("\ufb01rst", "Python normalises “\ufb01rst” to “first”: write “first”."),
        ("_x", "Names that start with an underscore belong to nn.Module: remove the underscore."),
        ("eval", "“eval” is already an attribute of nn.Module. Try “eval1”."),
        ("F", "“F” is used by the model's own code. Try “F1”."),
        ("b", "Another block is named “b”. Names must be unique: they are keys of the state_dict."),
        ("c", None),
    ],
)
def test_what_is_wrong_with_a_name(name, words):
    assert name_problem(name, {"a", "b"}) == words


@pytest.mark.parametrize("name", ["self", "torch", "nn", "F", "Model"])
def test_names_of_the_generated_code_are_taken(name):
    assert name_problem(name) == f"“{name}” is used by the model's own code. Try “{name}1”."


def test_a_fresh_name_has_the_first_free_number():
    assert fresh_name("relu", ()) == "relu1"
    assert fresh_name("relu", {"relu", "relu1", "relu3"}) == "relu2"


def test_a_problem_is_told_after_the_name_of_its_block():
    model = Model((Block("b1", "nn.ReLU", "relu1"), Block("b2", "nn.ReLU", "relu2")))
    problems = [Problem("It fails.", block) for block in ("b2", None, "gone")]
    told = [problem.message for problem in located(problems, model)]
    assert told == ["“relu2”: It fails.", "It fails.", "It fails."]
