"""Live shapes, counts and problems, with plain torch as oracle."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from torch import fx

from engine.models import shapes
from engine.models.check import check
from engine.models.live import LiveModel
from engine.project.document import (
    Block,
    DataSetup,
    Model,
    ParamValue,
    Project,
    TrainingSetup,
    Wire,
)
from engine.project.edits import EditError, set_param
from engine.project.problems import Fix, Problem
from engine.protocol import ModelSnapshot
from tests.engine.models.strategies import KINDS, Step, batch_for, chain, models, new_block, one_of
from tests.examples import examples


class Recorder(fx.Interpreter):
    """Runs a module node by node and keeps every value."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.seen: dict[fx.Node, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        self.seen[n] = super().run_node(n)
        return self.seen[n]


def at(dim: int | str, batch: int) -> int:
    """A symbolic size (`"B"`, `"2B"`, `"B+3"`) at this batch."""
    if isinstance(dim, int):
        return dim
    factor, offset = dim.split("B")
    return int(factor or 1) * batch + int(offset or 0)


def compare(model: Model) -> None:
    live, known = LiveModel(model, seed=0), shapes.infer(model)
    assert [p for found in known.values() for p in found.problems if p.severity == "error"] == []
    for batch in (2, 5):
        recorder = Recorder(live.module)
        recorder.run(batch_for(model, batch))
        for (block_id, port), node in live.blocks.values.items():
            spec, value = known[block_id].outputs[port], recorder.seen[node]
            assert tuple(at(dim, batch) for dim in spec.shape) == tuple(value.shape)
            assert f"torch.{spec.dtype}" == str(value.dtype)
    for block in model.blocks:
        parameters = (
            list(live.module.get_submodule(block.name).parameters())
            if (block.name in live.module._modules)
            else []
        )
        assert known[block.id].parameters == sum(p.numel() for p in parameters)
        assert known[block.id].parameter_bytes == sum(p.nbytes for p in parameters)
        bytes_of_one = sum(
            math.prod(at(dim, 1) for dim in spec.shape) * getattr(torch, spec.dtype).itemsize
            for spec in known[block.id].outputs.values()
        )
        assert known[block.id].activation_bytes == bytes_of_one


@settings(max_examples=examples(12))
@given(models())
def test_shapes_and_counts_of_random_models_are_the_real_ones(model: Model):
    compare(model)


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_and_counts_of_every_kind_are_the_real_ones(kind: str):
    compare(one_of(kind))


@pytest.mark.parametrize(
    ("sizes", "written"),
    [
        ((5, 5), 5),
        ((7, 11), "B"),
        ((14, 22), "2B"),
        ((10, 14), "B+3"),
        ((6, 10), "B-1"),
        ((1, 3), "?"),
    ],
)
def test_the_batch_is_a_symbol(sizes: tuple[int, int], written: int | str):
    assert shapes.symbolic(*sizes) == written


def test_looking_touches_neither_weights_nor_random_numbers():
    model = chain(
        ("Input", {"shape": (1, 8, 8)}), ("nn.Conv2d", {}), ("nn.BatchNorm2d", {}),
        ("nn.Dropout", {}), ("nn.Flatten", {}), ("nn.Linear", {"in_features": 9}), ("Output", {}),
    )  # fmt: skip
    live = LiveModel(
        chain(*[("Input", {"shape": (8, 4, 4)}), ("nn.BatchNorm2d", {}), ("Output", {})]), 0
    )
    before = {key: value.clone() for key, value in live.module.state_dict().items()}
    state = torch.get_rng_state()
    shapes._make_fake.cache_clear()
    shapes._try_on_real.cache_clear()
    assert any(found.problems for found in shapes.infer(model).values())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(live.module.state_dict()[key], before[key]) for key in before)


def test_blocks_after_a_failing_one_are_unknown():
    model = chain(("Input", {"shape": (8,)}), ("nn.Linear", {}), ("nn.ReLU", {}), ("Output", {}))
    known = shapes.infer(model)
    assert [len(known[f"b{i}"].problems) for i in range(4)] == [0, 1, 0, 0]
    assert known["b0"].outputs and not known["b1"].outputs and not known["b2"].outputs
    assert known["b1"].parameters == 64 * 64 + 64


def only(*steps: Step, severity: str = "error") -> Problem:
    model = chain(*steps, ("Output", {}))
    found = [p for known in shapes.infer(model).values() for p in known.problems]
    (problem,) = [p for p in found if p.severity == severity]
    return problem


def image(*shape: int) -> Step:
    return "Input", {"shape": shape}


def test_a_reshape_says_that_the_batch_is_not_first():
    batch_second = ("torch.transpose", {"dim0": 0, "dim1": 1})
    problem = only(image(4, 5), batch_second, ("Tensor.reshape", {"shape": (7,)}))
    assert problem.message.startswith("Reshape keeps dim 0, for the batch; in (4, B, 5) the")


@pytest.mark.parametrize(
    "params",
    [{"kernel_size": 4}, {"kernel_size": 6, "padding": 1}, {"kernel_size": 2, "dilation": 3}],
)
def test_a_window_may_just_fit(params: dict[str, ParamValue]):
    model = chain(image(1, 4, 4), ("nn.Conv2d", params), ("Output", {}))
    known = shapes.infer(model)
    assert not any(found.problems for found in known.values())
    assert known["b1"].outputs["output"].shape[2:] == (1, 1)


@pytest.mark.parametrize(
    ("shape", "kind", "params", "words", "fix"),
    [
        ((576,), "nn.Linear", {"in_features": 512},
         "Linear expects 512 features, gets 576: set in_features to 576", ("in_features", 576)),
        ((1, 8, 8), "nn.Linear", {}, "put a Flatten before it to make (B, 64)", None),
        ((3, 8, 8), "nn.Conv2d", {}, "expects 1 channels, gets 3", ("in_channels", 3)),
        ((3, 8), "nn.Conv1d", {}, "expects 1 channels, gets 3", ("in_channels", 3)),
        ((8, 8), "nn.Conv2d", {}, "expects (batch, channels, height, width), gets (B, 8, 8)."
                                  " Add a dimension of size 1 with Unsqueeze.", None),
        ((1, 1, 8, 8), "nn.Conv2d", {}, "(B, 1, 1, 8, 8). Merge dimensions with Flatten", None),
        ((8,), "nn.AvgPool2d", {}, "expects (batch, channels, height, width), gets (B, 8).", None),
        ((1, 4, 4), "nn.Conv2d", {"kernel_size": 5}, "(5, 5) of Conv2d is larger"
                                                     " than its input (4, 4)", None),
        ((1, 1, 1), "nn.MaxPool2d", {}, "The window (2, 2) of MaxPool2d is larger than its"
                                        " input (1, 1)", None),
        ((1, 4, 4), "nn.Conv2d", {"kernel_size": 7, "padding": 1}, "(7, 7) of Conv2d is", None),
        ((1, 4, 4), "nn.Conv2d", {"kernel_size": 3, "dilation": 2}, "(5, 5) of Conv2d is", None),
        ((5, 4, 4), "nn.BatchNorm2d", {}, "expects 8 channels, gets 5", ("num_features", 5)),
        ((5,), "nn.BatchNorm1d", {}, "expects 64 features, gets 5", ("num_features", 5)),
        ((6, 4), "nn.GroupNorm", {}, "expects 8 channels, gets 6", ("num_channels", 6)),
        ((7, 32), "nn.LayerNorm", {}, "gets (B, 7, 32): set normalized_shape to 32",
         ("normalized_shape", 32)),
        ((7, 32), "nn.LayerNorm", {"normalized_shape": (6, 32)}, "(7, 32)",
         ("normalized_shape", (7, 32))),
        ((5, 9), "nn.LSTM", {}, "expects 8 features per step, gets 9", ("input_size", 9)),
        ((5, 9), "nn.GRU", {}, "expects 8 features per step, gets 9", ("input_size", 9)),
        ((5, 9), "nn.MultiheadAttention", {}, "expects 16 features per step, gets 9",
         ("embed_dim", 9)),
        ((5, 9), "nn.TransformerEncoderLayer", {}, "expects 16", ("d_model", 9)),
        ((5,), "nn.Embedding", {}, "whole numbers (int64), gets float32", None),
        ((64,), "Tensor.reshape", {"shape": (8, 7)}, "has 64 elements, but (8, 7) holds 56", None),
        ((64,), "Tensor.reshape", {"shape": (7, -1)}, "(7, -1) cannot be filled from", None),
        ((64,), "torch.softmax", {"dim": 3}, "There is no dim 3", None),
        ((3, 4), "torch.permute", {"dims": (0, 1)}, "cannot take (B, 3, 4)", None),
        ((3, 4), "torch.matmul", {}, "(B, 3, 4) @ (B, 3, 4) does not fit", None),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said_with_both_shapes_and_a_fix(
    shape: tuple[int, ...],
    kind: str,
    params: dict[str, ParamValue],
    words: str,
    fix: tuple[str, ParamValue] | None,
):
    problem = only(image(*shape), (kind, params))
    assert words in problem.message and problem.block == "b1"
    assert "Error" in problem.detail
    if fix is None:
        assert problem.fix is None
        return
    name, value = fix
    assert problem.fix == Fix(f"Set {name} to {value}", "b1", name, value)
    fixed = chain(image(*shape), (kind, {**params, name: value}), ("Output", {}))
    errors = [p for known in shapes.infer(fixed).values() for p in known.problems]
    if kind in ("nn.MultiheadAttention", "nn.TransformerEncoderLayer"):
        # 9 features cannot be shared by 2 heads: one more fix.
        assert [p.fix.param for p in errors if p.fix] in (["num_heads"], ["nhead"])
    else:
        assert errors == []


def test_torchs_own_message_is_kept_whole():
    problem = only(image(10), ("nn.Linear", {"in_features": 20}))
    with pytest.raises(RuntimeError) as error:
        torch.nn.Linear(20, 64)(torch.zeros(7, 10))
    assert problem.detail == f"RuntimeError: {error.value}"


def test_arguments_that_torch_refuses_are_said():
    problem = only(image(5, 16), ("nn.MultiheadAttention", {"embed_dim": 16, "num_heads": 3}))
    assert "embed_dim (16) must be divisible by num_heads (3)" in problem.message
    assert problem.fix is not None and problem.fix.value == 2
    problem = only(image(4, 8, 8), ("nn.Conv2d", {"in_channels": 4, "groups": 3}))
    assert "in_channels must be divisible by groups" in problem.message


@pytest.mark.parametrize(
    ("kind", "params", "other", "words"),
    [
        ("torch.add", {}, 5, "(B, 8) and (B, 5) cannot be added: dim 1 is 8 in one and 5"),
        ("residual", {}, 5, "cannot be added"),
        ("torch.mul", {}, 5, "cannot be multiplied"),
        ("torch.cat", {"dim": 0}, 5, "cannot be joined along dim 0: dim 1 is 8"),
        ("torch.stack", {}, 5, "cannot be joined: dim 1 is 8 in one and 5"),
        ("torch.matmul", {}, 5, "(B, 8) @ (B, 5) does not fit"),
    ],
)  # fmt: skip
def test_two_tensors_that_do_not_go_together(
    kind: str, params: dict[str, ParamValue], other: int, words: str
):
    joined = new_block("j", kind, params)
    model = Model(
        (
            new_block("i", "Input", {"shape": (8,)}, "x"),
            new_block("l", "nn.Linear", {"in_features": 8, "out_features": other}),
            joined,
            new_block("o", "Output", {}),
        ),
        (
            Wire("i", "x", "l", "input"),
            Wire("i", "x", "j", PORTS[kind][0]),
            Wire("l", "output", "j", PORTS[kind][1]),
            Wire("j", "output", "o", "x"),
        ),
    )
    (problem,) = shapes.infer(model)["j"].problems
    assert words in problem.message and problem.port == PORTS[kind][1] and problem.detail


PORTS = {
    **dict.fromkeys(("torch.add", "torch.mul", "torch.matmul"), ("input", "other")),
    **dict.fromkeys(("torch.cat", "torch.stack"), ("tensor0", "tensor1")),
    "residual": ("x", "skip"),
}


def test_a_huge_block_is_worked_out_and_never_made():
    model = chain(image(1, 8, 8), ("nn.Upsample", {"scale_factor": 200_000.0}), ("Output", {}))
    known = shapes.infer(model)["b1"]
    assert known.problems == [] and known.outputs["output"].shape == ("B", 1, 1_600_000, 1_600_000)
    huge = 2_000_000
    model = chain(image(huge), ("nn.Linear", {"in_features": huge, "out_features": huge}))
    known = shapes.infer(model)["b1"]
    assert known.parameters == huge * huge + huge and known.activation_bytes == 4 * huge
    problem = only(image(10), ("nn.Linear", {"in_features": huge, "out_features": huge}))
    assert problem.fix is not None and problem.fix.value == 10


@pytest.mark.parametrize("kind", ["nn.LSTM", "nn.GRU", "nn.RNN"])
def test_more_layers_than_torch_makes_in_a_second_are_refused_before_it_is_asked(kind):
    stack = Block("b1", kind, "rnn1", {"input_size": 8, "hidden_size": 8, "num_layers": 100_000})
    report = check(Model(blocks=(stack,)), TrainingSetup())
    messages = [problem.message for problem in report.blocks[0].problems]
    assert "num_layers must be between 1 and 100, not 100000." in messages
    with pytest.raises(EditError, match="num_layers must be between 1 and 100"):
        set_param(Project(model=Model(blocks=(stack,))), "b1", "num_layers", "101")


def test_a_window_that_torch_would_count_over_for_ever_is_refused():
    pool = Block("b1", "nn.MaxPool1d", "pool1", {"kernel_size": 2**40})
    (message,) = [
        problem.message
        for problem in check(Model(blocks=(pool,)), TrainingSetup()).blocks[0].problems
        if "kernel_size" in problem.message
    ]
    assert message == "kernel_size must be at most 1,000,000, not 1.09951e+12."


def test_heads_without_number_are_told_at_once_with_the_largest_that_fits():
    params: dict[str, ParamValue] = {"embed_dim": 12, "num_heads": 10**9}
    attention = Block("b1", "nn.MultiheadAttention", "attention1", params)
    (problem,) = [
        p
        for p in check(Model(blocks=(attention,)), TrainingSetup()).blocks[0].problems
        if "divisible" in p.message
    ]
    assert problem.fix is not None and problem.fix.value == 12


def test_traps_are_warnings():
    problem = only(image(5, 8), ("nn.LSTM", {"batch_first": False}), severity="warning")
    assert "batch_first is off" in problem.message
    assert problem.fix == Fix("Set batch_first to True", "b1", "batch_first", True)
    problem = only(image(8), ("nn.LSTM", {}), severity="warning")
    assert "one sequence without a batch" in problem.message
    problem = only(image(5, 8), ("nn.LSTM", {"dropout": 0.5}), severity="warning")
    assert "num_layers greater than 1" in problem.message


# -- the model as a whole -------------------------------------------------------------------------


def report_of(snapshot: ModelSnapshot, block: str) -> tuple[Problem, ...]:
    return next(report.problems for report in snapshot.blocks if report.block == block)


def mlp(**out: ParamValue) -> Model:
    return chain(
        image(1, 8, 8), ("nn.Flatten", {}), ("nn.Linear", {"out_features": 10, **out}),
        ("nn.ReLU", {}), ("Output", {}),
    )  # fmt: skip


def test_a_model_that_fits_is_runnable_and_counted():
    snapshot = check(mlp(), TrainingSetup())
    assert snapshot.runnable and snapshot.problems == ()
    assert snapshot.parameters == 64 * 10 + 10 and snapshot.parameter_bytes == 4 * 650
    assert snapshot.activation_bytes == 4 * (64 + 64 + 10 + 10)
    assert snapshot.blocks[2].outputs["output"].shape == ("B", 10)


def test_the_input_must_have_the_shape_of_the_samples():
    snapshot = check(mlp(), TrainingSetup(data=DataSetup("moons")))
    (problem,) = report_of(snapshot, "b0")
    assert problem.fix == Fix("Set shape to (2,)", "b0", "shape", (2,)) and not snapshot.runnable


def test_the_output_must_have_a_score_for_each_class():
    snapshot = check(mlp(out_features=3), TrainingSetup())
    (problem,) = report_of(snapshot, "b4")
    assert problem.fix is not None and problem.fix.block == "b2" and problem.fix.value == 10
    assert not snapshot.runnable
    spare = check(mlp(out_features=12), TrainingSetup())
    assert report_of(spare, "b4")[0].severity == "warning" and spare.runnable
    mse = check(mlp(out_features=12), TrainingSetup(loss="nn.MSELoss"))
    assert report_of(mse, "b4")[0].severity == "error" and not mse.runnable


def test_the_loss_wants_one_row_for_each_sample():
    model = chain(image(1, 8, 8), ("nn.Identity", {}), ("Output", {}))
    (problem,) = report_of(check(model, TrainingSetup()), "b2")
    assert "(B, 10)" in problem.message and "(B, 1, 8, 8)" in problem.message
    lost = chain(image(1, 8, 8), ("torch.mean", {"dim": 0}), ("Output", {}))
    assert not check(lost, TrainingSetup()).runnable


def test_an_unknown_loss_is_told():
    model = chain(image(1, 8, 8), ("nn.Flatten", {}), ("Output", {}))
    report = check(model, TrainingSetup(loss="nn.Nothing"))
    assert "There is no loss “nn.Nothing”. Choose another." in [p.message for p in report.problems]


def test_softmax_before_cross_entropy_is_a_warning():
    model = chain(
        image(1, 8, 8), ("nn.Flatten", {}), ("nn.Linear", {"out_features": 10}), ("nn.Softmax", {}),
        ("nn.CrossEntropyLoss", {}),
    )  # fmt: skip
    snapshot = check(model, TrainingSetup())
    (problem,) = report_of(snapshot, "b3")
    assert problem.severity == "warning" and snapshot.runnable


def test_any_unfinished_model_gets_an_answer():
    training = TrainingSetup()
    assert not check(Model(), training).runnable
    odd = Model(
        (
            Block("a", "nn.Nothing", "a1"),
            Block("b", "Tensor.reshape", "b1"),
            Block("c", "Input", "x", {"shape": (0,)}),
            Block("d", "nn.Linear", "d1", {"in_features": "many", "out_features": 3}),
            Block("e", "torch.cat", "e1", {"inputs": 2}),
        ),
        (Wire("c", "x", "d", "input"), Wire("c", "x", "gone", "input")),
    )
    snapshot = check(odd, TrainingSetup(data=DataSetup("gone")))
    assert not snapshot.runnable and all(report.problems for report in snapshot.blocks)
    loop = Model(
        (Block("p", "nn.ReLU", "p1"), Block("q", "nn.ReLU", "q1")),
        (Wire("p", "output", "q", "input"), Wire("q", "output", "p", "input")),
    )
    snapshot = check(loop, training)
    (problem,) = [p for report in snapshot.blocks for p in report.problems]
    assert "make a loop" in problem.message and "make a loop" in snapshot.code
