"""Modules, parameters, buffers and calls, against torch itself."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from app.templates import load_template
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import ReadStructureCommand, RunCellCommand, StructureSnapshot
from engine.subjects import structure
from engine.subjects.structure import calls_in, module_rows, totals, weight_rows


class Tied(nn.Module):
    """A shared weight, a frozen one, a shared module, two calls of one layer, and buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.norm = nn.BatchNorm1d(4)
        self.block = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.again = self.block
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embedding.weight
        self.block[0].bias.requires_grad_(False)
        self.register_buffer("steps", torch.arange(3), persistent=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.embedding(ids))
        return self.head(self.again(self.block(x)))


def test_totals_count_shared_tensors_once():
    module = Tied()
    told = totals(module)
    assert told.parameters == sum(p.numel() for p in module.parameters()) == 28 + 8 + 20
    assert told.trainable == told.parameters - 4
    assert told.parameter_bytes == 4 * told.parameters
    assert told.buffers == 4 + 4 + 1 + 3 and told.buffer_bytes == 4 * 8 + 8 + 3 * 8
    assert told.modules == len(list(module.modules())) == 7


def test_weights_are_those_of_torch():
    module = Tied()
    rows = {row.name: row for row in weight_rows(module)}
    named: dict[str, torch.Tensor] = dict(module.named_parameters(remove_duplicate=False))
    named.update(module.named_buffers(remove_duplicate=False))
    assert rows.keys() == named.keys()
    persistent = [name for name in rows if rows[name].persistent]
    assert persistent == list(module.state_dict())
    for name, tensor in named.items():
        row = rows[name]
        assert row.kind == ("parameter" if isinstance(tensor, nn.Parameter) else "buffer")
        assert (row.shape, row.elements, row.bytes) == (
            tuple(tensor.shape),
            tensor.numel(),
            tensor.nbytes,
        )
        assert row.trainable == tensor.requires_grad and row.dtype in str(tensor.dtype)
        assert row.mean == pytest.approx(tensor.double().mean().item(), abs=1e-12)
        if tensor.numel() > 1:
            assert row.std == pytest.approx(tensor.double().std().item(), abs=1e-12)
    assert rows["head.weight"].shared_with == ("embedding.weight",)
    assert rows["block.0.bias"].shared_with == ("again.0.bias",)
    assert rows["norm.num_batches_tracked"].std is None
    assert not rows["steps"].persistent


def test_a_lazy_module_has_no_shapes_yet():
    module = nn.Sequential(nn.LazyLinear(3))
    assert [(row.shape, row.elements, row.mean) for row in weight_rows(module)] == [
        ((), 0, None),
        ((), 0, None),
    ]
    assert module_rows(module)[0].parameters == 0 and totals(module).parameters == 0


def test_special_dtypes_have_no_mean():
    module = nn.Module()
    module.register_buffer("c", torch.zeros(2, dtype=torch.complex64))
    module.register_buffer("empty", torch.zeros(0))
    module.register_buffer("meta", torch.zeros(2, device="meta"))
    assert [(row.mean, row.std) for row in weight_rows(module)] == [(None, None)] * 3


def test_calls_have_the_shapes_and_macs_of_torch_and_change_nothing():
    module, ids = Tied(), torch.tensor([1, 2, 3, 0])
    before = {key: value.clone() for key, value in module.state_dict().items()}
    random = torch.get_rng_state()
    module.norm.eval()
    calls = calls_in(module, lambda: module.train()(ids))
    assert module.training and not module.norm.training
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(value, before[key]) for key, value in module.state_dict().items())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
    with FlopCounterMode(display=False) as counter:
        module.eval()(ids)
    assert [(c.inputs, c.outputs) for c in calls[""]] == [(((4,),), ((4, 7),))]
    assert calls[""][0].macs == counter.get_total_flops() // 2 == 4 * 4 * 4 * 2 + 4 * 4 * 7
    assert [call.macs for call in calls["block.0"]] == [64, 64]
    assert [call.macs for call in calls["norm"]] == [0]
    rows = {row.path: row for row in module_rows(module, calls)}
    assert rows["block"].call_count == 2 and rows["again"].call_count == 0


def test_an_error_in_the_run_leaves_no_hook():
    module = Tied()
    with pytest.raises(IndexError):
        calls_in(module, lambda: module(torch.tensor([99])))
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())


def test_many_calls_are_counted_and_the_first_told():
    layer = nn.Linear(2, 2)
    calls = calls_in(layer, lambda: [layer(torch.zeros(n, 2)) for n in range(1, 21)])
    (row,) = module_rows(layer, calls)
    assert row.call_count == 20 and len(row.calls) == structure.MAX_CALLS
    assert row.calls[-1].inputs == ((structure.MAX_CALLS, 2),)
    assert row.macs == sum(2 * 2 * n for n in range(1, 21))


# -- the command -----------------------------------------------------------------------------------


def joined(answers: list) -> tuple[StructureSnapshot, list, list]:
    assert all(isinstance(answer, StructureSnapshot) for answer in answers)
    modules = [row for answer in answers for row in answer.modules]
    return answers[-1], modules, [row for answer in answers for row in answer.weights]


def test_the_canvas_runs_its_first_batch(ask):
    project = load_template("mlp")
    command = ReadStructureCommand(model=project.model, training=project.training)
    last, modules, weights = joined(ask(command))
    assert last.title == "Canvas" and last.left == 0 and last.unrun == ""
    assert last.batch == "(float32 (64, 1, 8, 8), int64 (64,))"
    assert modules[0].calls[0].outputs == ((64, 10),)
    assert {row.name for row in weights} >= {"linear1.weight", "linear1.bias"}


def test_code_runs_a_step_if_it_has_data_and_tells_why_it_cannot(ask):
    ask(
        RunCellCommand(
            source="net = nn.Linear(3, 2)\ngood = (torch.zeros(9, 3), torch.zeros(9, 2))"
        )
    )
    subject = ConsoleSubject("net")
    (answer,) = ask(ReadStructureCommand(subject=subject))
    assert answer.batch == answer.unrun == "" and answer.modules[0].calls == ()
    (answer,) = ask(ReadStructureCommand(subject=subject, objective=Objective(data="good")))
    assert answer.modules[0].calls[0].inputs == ((9, 3),)
    step = "def step(batch):\n    return model(batch[0][:, :2]).sum()"
    (answer,) = ask(ReadStructureCommand(subject=subject, objective=Objective("good", step=step)))
    assert "RuntimeError: mat1 and mat2" in answer.unrun and len(answer.weights) == 2


def test_a_large_structure_comes_in_parts(ask):
    ask(RunCellCommand(source="net = nn.ModuleList(nn.Linear(1, 1) for _ in range(3000))"))
    answers = ask(ReadStructureCommand(subject=ConsoleSubject("net")))
    _, modules, weights = joined(answers)
    assert len(answers) > 1 and len(modules) == 3001 and len(weights) == 6000
    left = [answer.left for answer in answers]
    assert left == sorted(left, reverse=True) and left[-1] == 0
    counted = 9001
    for answer in answers:
        counted -= len(answer.modules) + len(answer.weights)
        assert answer.left == counted
