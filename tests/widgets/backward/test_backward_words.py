"""What is said of a pass, word by word."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec.structs import replace

from engine.protocol import ComparisonSnapshot, NextNode, PendingGradient
from tests.widgets.backward.autograd_snapshots import GRAPH, NAMES, backward, summary_of, value_of
from widgets.backward.node_words import NodeWords
from widgets.backward.step_pane import next_sections, step_sections
from widgets.backward.words import (
    NOT_NEEDED,
    UNDEFINED,
    comparison_text,
    facts_text,
    gradients_text,
    incoming_text,
    position_text,
)

ONE, BAD = summary_of(np.ones(1, np.float32)), summary_of(np.array([1, np.nan], np.float32))


@pytest.mark.parametrize(
    ("fields", "plain", "edited", "words"),
    [
        ({}, "y.backward()", False, "Equals y.backward(): max difference 0 over all parameters."),
        ({}, "autograd.grad()", True, "Equals autograd.grad(): max difference 0 over all inputs."),
        (
            {"max_difference": 0.5, "zeroed": True}, "y.backward()", True,
            "Differs from y.backward() because zero_grad emptied .grad during this pass.",
        ),
        (
            {"max_difference": 0.5, "differences": {"a": 0.25, "b": 0.5, "c": 0.125}}, "f()", False,
            "Differs from f(): max difference 0.5, in b.",
        ),
        (
            {"max_difference": 0.5}, "f()", True,
            "Differs because you edited a gradient. Max difference 0.5.",
        ),
        (
            {"max_difference": math.inf, "differences": {"a": 1.0, "b": math.inf}}, "f()", False,
            "Differs from f(): only one of the two passes has a gradient, in b.",
        ),
        (
            {"max_difference": math.inf}, "f()", True,
            "Differs because you edited a gradient: only one of the two passes has a gradient.",
        ),
    ],
)  # fmt: skip
def test_a_comparison_in_words(fields, plain, edited, words) -> None:
    told = ComparisonSnapshot(**{"max_difference": 0.0, "differences": {}, **fields})
    assert comparison_text(told, plain, edited) == words


END = " Every .grad is filled in: Compare checks it against loss.backward()."


@pytest.mark.parametrize(
    ("position", "fields", "truncated", "words"),
    [
        (0, {"real_engine": True, "retain_graph": False}, 0, "0 of 6 nodes have run."),
        (1, {"pass_number": 1}, 0, "1 of 6 nodes have run."),
        (1, {"pass_number": 2}, 1_234, "Pass 2: 1 of 6 nodes have run. 1,234 more nodes are not"
         " shown."),
        (1, {"retain_graph": False, "freed_bytes": 8}, 0, "1 of 6 nodes have run."),
        (1, {"real_engine": True, "freed_bytes": 8}, 0, "1 of 6 nodes have run."),
        (1, {"real_engine": True, "retain_graph": False, "freed_bytes": 2048}, 0,
         "1 of 6 nodes have run. 2 KiB of saved tensors freed."),
        (6, {"real_engine": True, "retain_graph": False}, 0, "6 of 6 nodes have run." + END),
        (6, {"inputs": ("x",)}, 0, "6 of 6 nodes have run. The gradients of the inputs are"
         " computed: Compare checks them against autograd.grad()."),
    ],
)  # fmt: skip
def test_the_position_of_a_pass_in_words(position, fields, truncated, words) -> None:
    told = replace(backward(position), **fields)
    assert position_text(told, replace(GRAPH, truncated=truncated)) == words


def test_what_a_pass_frees_is_told() -> None:
    told = replace(backward(1), freed_bytes=512, saved_bytes=2048, real_engine=True)
    would = (
        "Of the 2 KiB that forward saved (parameters aside), backward() without retain_graph"
        " would have freed 512 B by now."
    )
    assert facts_text(told) == would
    assert facts_text(replace(told, retain_graph=False)) == (
        "The engine has freed 512 B of the 2 KiB that forward saved (parameters aside)."
    )
    assert facts_text(replace(told, retain_graph=False, real_engine=False)) == would


def test_gradients_that_have_arrived_are_told_by_their_norms() -> None:
    assert gradients_text(PendingGradient(1, 1, 1, ())) == "held by the engine"
    assert gradients_text(PendingGradient(1, 1, 1, (ONE,))) == "norm 1"
    assert gradients_text(PendingGradient(1, 1, 1, (ONE, None, BAD))) == "norms 1, –, 1 NaN"


@pytest.mark.parametrize(
    ("pending", "following", "words"),
    [
        ((), None, "no gradient has arrived yet"),
        ((PendingGradient(3, 1, 1, (ONE,)),), None, "no gradient has arrived yet"),
        ((PendingGradient(2, 1, 1, (ONE,)),), None, "norm 1"),
        ((PendingGradient(2, 1, 2, (ONE,)),), None, "norm 1 · 1 of 2 contributions"),
        ((PendingGradient(2, 1, 1, (ONE,)),), NextNode(3, (), hooks="1 hook"), "norm 1"),
        ((PendingGradient(2, 1, 1, (ONE,)),), NextNode(2, ()), "norm 1"),
        (
            (PendingGradient(3, 1, 1, (BAD,)), PendingGradient(2, 2, 3, (ONE,))),
            NextNode(2, (), (value_of("g", np.full(4, 2.0)), None), hooks="1 hook"),
            "norm 1 → 4, – · 2 of 3 contributions · 1 hook",
        ),
    ],
)
def test_what_has_arrived_at_a_node_in_a_line(pending, following, words) -> None:
    told = replace(backward(1), pending=pending, next=following)
    assert incoming_text(told, 2) == words


def test_a_node_is_told_by_name_rule_and_what_it_keeps() -> None:
    words = NodeWords(GRAPH, {"b3": "relu1"})
    assert words.title(1) == "ReluBackward0 · relu1"
    assert words.title(2) == "AddmmBackward0 · b2"
    plain = replace(GRAPH.nodes[0], block=None)
    graph = replace(GRAPH, nodes=(plain, *GRAPH.nodes[1:]))
    assert NodeWords(graph, NAMES).title(0) == "MeanBackward0"
    assert words.title(5) != "Node 5" and words.title(6) == "Node 6"
    assert words.node(6) is None
    assert words.about(6) == "This node lies beyond the part of the graph that is shown."
    relu = GRAPH.rules["ReluBackward0"]
    assert words.about(1) == f"{relu} Keeps 32 B from forward."
    assert words.about(2) == GRAPH.rules["AddmmBackward0"]


def test_the_gradients_of_a_step_and_of_the_next_node_have_their_sections() -> None:
    step = backward(3).step
    assert step is not None
    assert step_sections(step) == [
        ("", step.incoming, UNDEFINED), ("", step.outgoing, NOT_NEEDED),
    ]  # fmt: skip
    after = step.incoming[0]
    told = step_sections(replace(step, grad_after=after))
    none = ".grad was None; it is now the incoming gradient"
    assert told[2:] == [("", (None,), none), ("", (after,), "")]
    assert next_sections(None) == []
    following = NextNode(2, (after,))
    assert next_sections(following) == [("", (after,), UNDEFINED)]
    edited = replace(following, edited=(None,))
    assert next_sections(edited)[1:] == [("", (None,), "Cut: the edit gives no gradient")]
