"""Modules, parameters, buffers and calls, against torch itself."""

from __future__ import annotations

import msgspec
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from app.templates import load_template
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    OutputSnapshot,
    ReadStructureCommand,
    RunCellCommand,
    StructureSnapshot,
)
from engine.subjects import structure
from engine.subjects.calls import calls_in
from engine.subjects.structure import BINS, module_rows, totals, weight_rows
from engine.tensors.error_help import explain_error


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


@pytest.fixture
def warns_always():
    """torch warns each time here, not once a process."""
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


@pytest.mark.usefixtures("warns_always")
def test_a_gradient_with_a_graph_has_its_norm_without_a_warning():
    module = nn.Linear(2, 1)
    loss = module(torch.ones(1, 2)).square().sum()
    with pytest.warns(UserWarning, match="create_graph"):
        loss.backward(create_graph=True)
    rows = {row.name: row.gradient for row in weight_rows(module)}
    for name, parameter in module.named_parameters():
        assert rows[name] == pytest.approx(parameter.grad.detach().norm().item())
        parameter.grad = None


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
    assert [(c.inputs, c.outputs) for c in calls[""].calls] == [(((4,),), ((4, 7),))]
    assert calls[""].calls[0].macs == counter.get_total_flops() // 2 == 4 * 4 * 4 * 2 + 4 * 4 * 7
    assert [call.macs for call in calls["block.0"].calls] == [64, 64]
    assert [call.macs for call in calls["norm"].calls] == [0]
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


def test_histograms_are_those_of_torch():
    module = nn.Linear(5, 40)
    with torch.no_grad():
        module.weight[0, 0], module.weight[1, 1] = torch.inf, torch.nan
        module.bias.fill_(0.5)
    weight, bias = weight_rows(module)
    finite = module.weight.detach()[module.weight.isfinite()].double()
    low, high = float(finite.min()), float(finite.max())
    assert weight.histogram.counts == tuple(torch.histc(finite, BINS, low, high).int().tolist())
    assert sum(weight.histogram.counts) == 5 * 40 - 2 and weight.histogram.low == low
    assert weight.histogram.low + BINS * weight.histogram.width == pytest.approx(high)
    same = torch.histc(torch.full((40,), 0.5).double(), BINS)
    assert bias.histogram.counts == tuple(same.int().tolist())
    assert bias.histogram.low == -0.5


def test_gradients_are_those_of_torch():
    module = Tied()
    assert {row.gradient for row in weight_rows(module)} == {None}
    module(torch.tensor([1, 2, 3, 0])).square().mean().backward()
    rows = {row.name: row for row in weight_rows(module)}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        if parameter.grad is None:
            assert rows[name].gradient is None and name.endswith("0.bias")
        else:
            assert rows[name].gradient == pytest.approx(parameter.grad.norm().item())


def test_a_sparse_and_a_complex_gradient_have_a_norm():
    table = nn.Embedding(5, 3, sparse=True)
    table(torch.tensor([1, 1, 2])).square().sum().backward()
    assert table.weight.grad.is_sparse
    expected = table.weight.grad.to_dense().norm().item()
    assert weight_rows(table)[0].gradient == pytest.approx(expected)
    module = nn.Linear(2, 2, bias=False, dtype=torch.complex64)
    module(torch.ones(1, 2, dtype=torch.complex64)).abs().sum().backward()
    expected = module.weight.grad.norm().item()
    assert weight_rows(module)[0].gradient == pytest.approx(expected)


def test_activations_are_the_storages_that_autograd_keeps():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2), nn.Softplus())
    x = torch.randn(5, 3)
    rows = {row.path: row for row in module_rows(net, calls_in(net, lambda: net(x).mean()))}
    # A linear keeps its input, relu its output (which the next linear keeps too), softplus its
    # input.
    assert [rows[path].kept_bytes for path in "0123"] == [
        5 * 3 * 4,
        5 * 4 * 4,
        5 * 4 * 4,
        5 * 2 * 4,
    ]
    assert rows[""].kept_bytes == 60 + 80 + 40
    own = {p.untyped_storage().data_ptr() for p in net.parameters()}
    kept = {}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = net(x)
    assert rows[""].kept_bytes == sum(s.nbytes() for p, s in kept.items() if p not in own)
    assert result.requires_grad
    with torch.no_grad():
        assert calls_in(net, lambda: net(x))[""].kept_bytes == 0


def test_a_storage_that_several_calls_keep_counts_once():
    layer, x = nn.Linear(3, 3), torch.randn(4, 3)
    calls = calls_in(layer, lambda: (layer(x) + layer(x)).sum())[""]
    assert [call.kept_bytes for call in calls.calls] == [48, 48] and calls.kept_bytes == 48


def test_a_step_that_differentiates_twice_gets_the_gradients_of_plain_torch():
    first, last = nn.Linear(3, 4), nn.Linear(4, 1)
    net, x = nn.Sequential(first, nn.Tanh(), last), torch.randn(5, 3, requires_grad=True)
    found = []

    def step():
        """The gradient penalty of a critic."""
        (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
        penalty = (slope.norm(dim=1) - 1).square().mean()
        found.append(torch.autograd.grad(penalty, [first.weight, last.weight]))

    step()
    calls = calls_in(net, step)
    assert [call.macs for call in calls[""].calls] == [5 * (3 * 4 + 4)]
    plain, counted, timed = found
    assert all(map(torch.equal, counted, plain)) and all(map(torch.equal, timed, plain))


class Differentiating(nn.Module):
    """torch.func refuses saved tensor hooks in its transforms."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(torch.func.grad(lambda y: (y**3).sum())(x))


def test_where_torch_cannot_tell_activations_are_unknown():
    calls = calls_in(module := Differentiating(), lambda: module(torch.ones(2, 3)))
    assert calls[""].kept_bytes is None and calls["layer"].calls[0].kept_bytes is None
    assert calls["layer"].calls[0].macs == 6


def test_every_call_has_a_time_and_the_measured_run_prints_nothing(capsys):
    module, ids = Tied(), torch.tensor([1, 2, 3, 0])
    ran = []

    def run() -> None:
        print("a line of the step")
        ran.append(torch.rand(()).item())
        module(ids)

    calls = calls_in(module, run)
    assert len(ran) == 2 and ran[0] == ran[1]
    assert capsys.readouterr().out == "a line of the step\n"
    of_parts = [call.ms for path in calls if path for call in calls[path].calls]
    assert all(ms > 0 for ms in of_parts) and len(of_parts) == 9
    assert calls[""].calls[0].ms >= max(of_parts)
    row = module_rows(module, calls)[2]
    assert row.ms == sum(call.ms for call in calls[row.path].calls)


class Forgiving(nn.Module):
    """Calls a layer that raises, and goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong, self.right = nn.Linear(2, 2), nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        try:
            return self.wrong(x)
        except RuntimeError:
            return self.right(x)


def test_a_step_of_chance_that_calls_other_modules_the_next_time_is_told():
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    turns = iter((0, 1))  # as random.choice could draw them
    calls = calls_in(module, lambda: module[next(turns)](torch.ones(1, 2)))
    assert list(calls) == ["0"]
    assert calls["0"].calls[0].outputs == ((1, 2),) and calls["0"].calls[0].ms == 0


def test_a_call_that_raises_is_not_counted():
    module = Forgiving()
    calls = calls_in(module, lambda: module(torch.ones(4, 3)).sum())
    assert calls.keys() == {"", "right"}
    assert calls[""].kept_bytes == calls["right"].kept_bytes == 48


# -- the command -----------------------------------------------------------------------------------


def joined(answers: list) -> tuple[StructureSnapshot, list, list]:
    assert all(isinstance(answer, StructureSnapshot) for answer in answers)
    modules = [row for answer in answers for row in answer.modules]
    return answers[-1], modules, [row for answer in answers for row in answer.weights]


def test_the_canvas_runs_its_first_batch(ask):
    project = load_template("mlp")
    command = ReadStructureCommand(model=project.model, training=project.training)
    last, modules, weights = joined(ask(command))
    assert last.title == "Canvas" and last.left == 0 and last.unrun is None
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
    assert answer.batch == "" and answer.unrun is None and answer.modules[0].calls == ()
    (answer,) = ask(ReadStructureCommand(subject=subject, objective=Objective(data="good")))
    assert answer.modules[0].calls[0].inputs == ((9, 3),)
    step = "def step(batch):\n    return model(batch[0][:, :2]).sum()"
    (answer,) = ask(ReadStructureCommand(subject=subject, objective=Objective("good", step=step)))
    error = answer.unrun
    assert error.type == "RuntimeError" and error.message.startswith("mat1 and mat2")
    assert error.line == 2 and "return model(batch[0][:, :2]).sum()" in error.traceback
    assert error.hint == explain_error(RuntimeError(error.message)) and len(answer.weights) == 2
    (answer,) = ask(ReadStructureCommand(subject=subject, objective=Objective(data="[]")))
    assert answer.unrun.message == "The data has no batch."
    assert answer.unrun.hint == "Give data with samples."


COUNTED = """
runs = []
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
    def forward(self, x):
        print("a run")
        runs.append(self.training)
        return self.layer(x)
net = Net()
x, y, positive = torch.randn(6, 3), torch.randn(6, 2), torch.randn(6, 3)
"""


@pytest.mark.parametrize(
    ("data", "step", "calls"),
    [
        ("(x, y)", "", 1),
        ("(x, positive, x)", "", 3),
        ("(x, y)", "def step(batch): return model(batch[0]).sum() + model(batch[0]).sum()", 2),
    ],
)
def test_the_users_code_runs_twice_to_count_and_to_time_and_prints_once(
    lab, ask, data, step, calls
):
    told = []
    lab.emit = told.append
    ask(RunCellCommand(source=COUNTED))
    command = ReadStructureCommand(
        subject=ConsoleSubject("net"), objective=Objective(data, "", step)
    )
    (answer,) = ask(command)
    assert answer.unrun is None and answer.modules[1].call_count == calls
    assert answer.modules[1].macs == calls * 6 * 3 * 2
    assert lab.console.namespace.variables["runs"] == [True] * 2 * calls
    printed = "".join(each.text for each in told if isinstance(each, OutputSnapshot))
    assert printed == "a run\n" * calls


def test_a_large_structure_comes_in_parts(ask, monkeypatch):
    limit = 4000
    monkeypatch.setattr("engine.handlers.structures.reading.MAX_SNAPSHOT_BYTES", limit)
    ask(RunCellCommand(source="net = nn.ModuleList(nn.Linear(1, 1) for _ in range(50))"))
    answers = ask(ReadStructureCommand(subject=ConsoleSubject("net")))
    _, modules, weights = joined(answers)
    assert len(answers) > 1 and len(modules) == 51 and len(weights) == 100
    sizes = [
        sum(len(msgspec.msgpack.encode(row)) for row in (*answer.modules, *answer.weights))
        for answer in answers
    ]
    assert all(limit // 3 < size <= limit // 2 for size in sizes[:-1])
    left = [answer.left for answer in answers]
    assert left == sorted(left, reverse=True) and left[-1] == 0
    counted = 151
    for answer in answers:
        counted -= len(answer.modules) + len(answer.weights)
        assert answer.left == counted
