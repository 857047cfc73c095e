"""Wiring: loops cannot be drawn, and an unfinished model says what it lacks."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.project import wiring
from engine.project.document import Block, Model, Wire, replace

BLOCKS = tuple(Block(f"b{i}", "torch.add", f"add{i}") for i in range(6))
PORTS = ("input", "other")


def wire(source: str, target: str, port: str = "input") -> Wire:
    return Wire(source, "output", target, port)


def edges(model: Model) -> nx.DiGraph:
    graph = nx.DiGraph([(w.source, w.target) for w in model.wires])
    graph.add_nodes_from(block.id for block in model.blocks)
    return graph


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from(PORTS))))
def test_no_series_of_allowed_edits_makes_a_loop(edits: list[tuple[int, int, str]]):
    model = Model(BLOCKS)
    for source, target, port in edits:
        new = wire(f"b{source}", f"b{target}", port)
        reason = wiring.can_connect(model, new)
        if reason is None:
            kept = tuple(w for w in model.wires if (w.target, w.target_port) != (new.target, port))
            model = replace(model, wires=(*kept, new))
        elif new not in model.wires:
            looped = edges(model)
            looped.add_edge(new.source, new.target)
            assert not nx.is_directed_acyclic_graph(looped)
        assert nx.is_directed_acyclic_graph(edges(model))
    order = wiring.topological_order(model)
    assert sorted(order) == sorted(block.id for block in model.blocks)
    assert all(order.index(w.source) < order.index(w.target) for w in model.wires)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=10))
def test_any_loop_is_named(pairs: list[tuple[int, int]]):
    model = Model(BLOCKS, tuple(wire(f"b{a}", f"b{b}") for a, b in pairs))
    if nx.is_directed_acyclic_graph(edges(model)):
        wiring.topological_order(model)
        return
    with pytest.raises(wiring.WiringError) as error:
        wiring.topological_order(model)
    loop = error.value.blocks
    graph = edges(model)
    assert all(graph.has_edge(a, b) for a, b in zip(loop, (*loop[1:], loop[0]), strict=True))
    (problem,) = wiring.check(model)
    assert problem.message == str(error.value) and problem.block == loop[0]


@pytest.mark.parametrize(
    ("new", "words"),
    [
        (wire("b0", "b0"), "“add0” cannot be its own input: a model runs from Input to Output."),
        (wire("b0", "b1"), "These ports are connected already."),
        (wire("b0", "b9"), "This block does not exist any more."),
        (wire("b9", "b0"), "This block does not exist any more."),
        (Wire("b0", "left", "b2", "input"), "“add0” has no output “left”: it has output."),
        (Wire("b0", "output", "b2", "left"), "“add2” has no input “left”: it has input, other."),
        (Wire("b0", "output", "in", "x"), "“x” has no input “x”: it has none."),
    ],
)
def test_a_bad_wire_is_refused_with_the_reason(new: Wire, words: str):
    source = Block("in", "Input", "x", {"shape": (3,)})
    model = Model((*BLOCKS, source), (wire("b0", "b1"),))
    assert wiring.can_connect(model, new) == words


def test_a_block_of_an_unknown_kind_has_no_ports():
    model = Model((*BLOCKS, Block("u", "nn.Nothing", "u1")))
    assert wiring.can_connect(model, wire("u", "b0")) == (
        "“u1” has no output “output”: it has none."
    )
    assert wiring.can_connect(model, wire("b0", "u")) == "“u1” has no input “input”: it has none."


def test_an_occupied_port_can_be_wired_again():
    model = Model(BLOCKS, (wire("b0", "b1"),))
    assert wiring.can_connect(model, wire("b2", "b1")) is None
    assert wiring.can_connect(model, wire("b0", "b1", "other")) is None


def test_blocks_that_could_run_next_run_in_the_documents_order():
    blocks = tuple(BLOCKS[i] for i in (3, 0, 5, 1, 4, 2))
    model = Model(blocks, (wire("b2", "b3"), wire("gone", "b0"), wire("b1", "gone")))
    assert wiring.topological_order(model) == ("b0", "b5", "b1", "b4", "b2", "b3")
    assert wiring.topological_order(Model(blocks)) == tuple(block.id for block in blocks)


def test_downstream_is_all_that_a_block_feeds_and_itself():
    model = Model(BLOCKS, (wire("b0", "b1"), wire("b1", "b2"), wire("b1", "b3"), wire("b4", "b1")))
    assert wiring.downstream(model, "b1") == {"b1", "b2", "b3"}
    assert wiring.downstream(model, "b5") == {"b5"}


def test_a_loop_is_told_word_for_word():
    model = Model(BLOCKS, (wire("b0", "b1"), wire("b1", "b2"), wire("b2", "b1", "other")))
    with pytest.raises(wiring.WiringError) as error:
        wiring.topological_order(model)
    first, second = (model.block(key).name for key in error.value.blocks)
    words = f"The wires make a loop: “{first}” → “{second}” → “{first}”. Delete one of them."
    assert str(error.value) == words and {first, second} == {"add1", "add2"}
    assert wiring.can_connect(Model(BLOCKS, (wire("b0", "b1"),)), wire("b1", "b0")) == (
        "This wire would close a loop: “add1” depends on “add0” already."
    )


def good() -> Model:
    return Model(
        (
            Block("i", "Input", "x", {"shape": (3,)}),
            Block("l", "nn.Linear", "linear1", {"in_features": 3, "out_features": 2}),
            Block("o", "Output", "output1"),
        ),
        (Wire("i", "x", "l", "input"), Wire("l", "output", "o", "x")),
    )


def with_block(model: Model, block_id: str, **changes) -> Model:
    blocks = tuple(replace(b, **changes) if b.id == block_id else b for b in model.blocks)
    return replace(model, blocks=blocks)


def test_a_finished_model_has_no_problems():
    assert wiring.check(good()) == ()
    assert wiring.prediction_of(good()) == ("l", "output")
    assert wiring.prediction_of(Model(good().blocks)) is None


@pytest.mark.parametrize(
    ("model", "block", "words"),
    [
        (Model(), None, "no Input"),
        (Model(good().blocks[:2], good().wires[:1]), None, "no Output"),
        (replace(good(), wires=good().wires[1:]), "l", "Input “input” ("),
        (with_block(good(), "l", params={"in_features": 3}), "l", "out_features is not set"),
        (with_block(good(), "l", params={"in_features": 3, "out_features": 0}), "l", "at least 1"),
        (with_block(good(), "l", name="2nd"), "l", "not a valid Python name"),
        (with_block(good(), "l", name="train"), "l", "already an attribute of nn.Module"),
        (with_block(good(), "o", name="linear1"), "o", "Another block is named"),
        (with_block(good(), "l", kind="nn.Nothing"), "l", "no kind of block “nn.Nothing”"),
        (
            replace(good(), blocks=(*good().blocks, Block("j", "Input", "y", {"shape": (3,)}))),
            "j",
            "one Input",
        ),
    ],
)
def test_what_is_amiss_is_said_of_the_block(model: Model, block: str | None, words: str):
    errors = [p for p in wiring.check(model) if p.severity == "error"]
    assert [p for p in errors if p.block == block and words in p.message], errors


def test_a_dead_end_is_a_warning():
    model = good()
    model = Model((*model.blocks, Block("r", "nn.ReLU", "relu1")), (*model.wires, wire("l", "r")))
    (problem,) = wiring.check(model)
    assert problem.severity == "warning" and problem.block == "r"
    assert problem.message == ("“relu1” is not connected to the Output, so it has no effect.")


def test_while_nothing_is_wired_to_the_output_no_block_is_a_dead_end():
    problems = wiring.check(Model(good().blocks))
    assert [(p.block, p.port, p.severity) for p in problems] == [
        ("l", "input", "error"), ("o", "x", "error"),
    ]  # fmt: skip
    assert problems[0].message == "Input “input” (the tensor to work on) is not connected."
    assert problems[1].message == "Input “x” (the model's prediction) is not connected."


@pytest.mark.parametrize(
    ("kind", "title"), [("Input", "Input"), ("Output", "Output"), ("nn.MSELoss", "loss")]
)
def test_a_second_end_of_one_sort_is_one_too_many(kind, title):
    loss = (Block("c", "nn.MSELoss", "loss1"),) if title == "loss" else ()
    model = replace(good(), blocks=(*good().blocks, *loss, Block("e", kind, "extra")))
    found = [p for p in wiring.check(model) if p.block == "e"]
    first = {"Input": "x", "Output": "output1", "loss": "loss1"}[title]
    assert found[0].message == (
        f"The model has more than one {title}: delete “extra” or “{first}”."
    )


def test_a_model_without_ends_is_told_where_to_get_them():
    words = [problem.message for problem in wiring.check(Model())]
    assert words == [
        f"The model has no {end}. Drag one from the palette, group Input / Output."
        for end in ("Input", "Output")
    ]


def test_a_parameter_that_is_not_set_is_told_with_what_it_means():
    (problem,) = wiring.check(with_block(good(), "l", params={"in_features": 3}))
    assert problem.message == "out_features is not set. Size of each output sample."


def test_the_two_states_of_an_lstm_go_together():
    lstm = Block("l", "nn.LSTM", "lstm1", {"input_size": 3, "hidden_size": 2})
    model = Model(
        (good().blocks[0], lstm, good().blocks[2]),
        (
            Wire("i", "x", "l", "input"),
            Wire("i", "x", "l", "h_0"),
            Wire("l", "output", "o", "x"),
        ),
    )
    (problem,) = wiring.check(model)
    assert problem.port == "c_0"
    open_state = replace(model, wires=(model.wires[0], model.wires[2]))
    assert wiring.check(open_state) == ()


def test_output_and_loss_must_agree_on_the_prediction():
    loss = Block("c", "nn.CrossEntropyLoss", "loss1")
    model = good()
    blocks = (*model.blocks, loss)
    same = Model(blocks, (*model.wires, Wire("l", "output", "c", "input")))
    assert wiring.check(same) == ()
    other = Model(blocks, (*model.wires, Wire("i", "x", "c", "input")))
    (problem,) = wiring.check(other)
    assert problem.block == "c" and problem.port == "input"
    assert problem.message == (
        "The loss must get what the model returns: connect the loss and the Output to the same"
        " port."
    )
    second = Block("d", "nn.MSELoss", "loss2")
    problems = wiring.check(Model((*blocks, second), other.wires))
    assert [(p.block, p.port) for p in problems] == [("d", None), ("c", "input"), ("d", "input")]
    (open_loss,) = wiring.check(Model(blocks, model.wires))
    assert (open_loss.block, open_loss.port) == ("c", "input")


@pytest.mark.parametrize("turned", [False, True])
def test_the_output_tells_the_prediction_before_the_loss(turned):
    model = Model(
        (*good().blocks, Block("c", "nn.CrossEntropyLoss", "loss1")),
        (*good().wires, Wire("i", "x", "c", "input")),
    )
    if turned:
        model = Model(model.blocks[::-1], model.wires[::-1])
    assert wiring.prediction_of(model) == ("l", "output")


def test_without_an_output_the_loss_gets_what_the_model_returns():
    loss = Block("o", "nn.MSELoss", "loss1")
    model = replace(good(), blocks=(*good().blocks[:2], loss))
    model = replace(model, wires=(model.wires[0], Wire("l", "output", "o", "input")))
    assert wiring.check(model) == ()
    assert wiring.prediction_of(model) == ("l", "output")
