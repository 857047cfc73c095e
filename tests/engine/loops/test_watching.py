"""Watched modules: the figures of each step against plain hooks, and nothing else changed."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from engine.lab import Lab
from engine.loops.watching import Watching
from engine.project.document import Model, TrainingSetup
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    MAX_WATCHED,
    WATCHED_FIGURES,
    CellSnapshot,
    LoopSnapshot,
    ReadStructureCommand,
    RunCellCommand,
    Snapshot,
    StructureSnapshot,
    TrainCommand,
    TrainingSnapshot,
    WatchCommand,
    WatchedSnapshot,
)
from engine.server.session import handler_of
from engine.system.errors import LabError

NET = ConsoleSubject("net")
MEAN, STD, ZEROS, NORM, GRADIENT, PARAMETERS = WATCHED_FIGURES


def made() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 2))


class PlainHooks:
    """Keeps the outputs of modules and their gradients, as one would by hand."""

    def __init__(self, module: nn.Module, paths: tuple[str, ...]) -> None:
        self.outputs: dict[str, list[Tensor]] = {path: [] for path in paths}
        for path in paths:
            part = module.get_submodule(path)
            part.register_forward_hook(lambda m, a, out, path=path: self._keep(path, out))

    def _keep(self, path: str, output: Any) -> None:
        output.retain_grad()
        self.outputs[path].append(output)

    def take(self, module: nn.Module) -> dict[str, float]:
        found = {}
        for path, outputs in self.outputs.items():
            wide = torch.float64 if outputs[0].dtype == torch.float64 else torch.float32
            numbers = torch.cat([output.detach().flatten() for output in outputs]).to(wide)
            gradients = torch.cat([output.grad.flatten() for output in outputs]).to(wide)
            part = module.get_submodule(path)
            own = [p.grad.flatten().to(wide) for p in part.parameters() if p.grad is not None]
            values = {
                MEAN: numbers.mean(),
                STD: numbers.std(),
                ZEROS: (numbers == 0).float().mean(),
                NORM: numbers.norm(),
                GRADIENT: gradients.norm(),
                **({PARAMETERS: torch.cat(own).norm()} if own else {}),
            }
            found.update({f"{path}: {name}": float(value) for name, value in values.items()})
            outputs.clear()
        return found


@pytest.mark.parametrize(
    ("dtype", "close"), [(torch.float32, 1e-5), (torch.float64, 1e-12), (torch.bfloat16, 1e-5)]
)
def test_the_figures_are_those_of_plain_hooks_over_all_calls_of_a_step(dtype, close):
    paths = ("1", "3")
    plain, net = made().to(dtype), made().to(dtype)
    hooks, watching = PlainHooks(plain, paths), Watching()
    watching.watch(NET, net, paths)
    for step in range(3):
        x = torch.randn(5 + step, 4, dtype=dtype)
        for module in (plain, net):
            torch.manual_seed(step)
            module.zero_grad()
            (module(x).square().mean() + 3 * module(x[:2] + 1).sum()).backward()
        told = {name: float(value) for name, value in watching.take().items()}
        assert told == pytest.approx(hooks.take(plain), rel=close)
    for ours, theirs in zip(net.parameters(), plain.parameters(), strict=True):
        assert ours.grad is not None and theirs.grad is not None
        assert torch.equal(ours.grad, theirs.grad)


def test_a_step_that_does_not_call_the_module_has_no_figures():
    net, watching = made(), Watching()
    watching.watch(NET, net, ("", "3"))
    assert watching.take() == {}
    net[3](torch.ones(1, 6))
    assert {name.partition(":")[0] for name in watching.take()} == {"3"}
    with torch.no_grad():
        net(torch.ones(1, 4))
    assert watching.take() == {}
    watching.begin(is_measured=False)
    net(torch.ones(1, 4))
    assert watching.take() == {}
    net(torch.ones(1, 4))
    assert f"the whole subject: {MEAN}" in watching.take()


def test_a_module_of_one_parameter_has_the_norm_of_its_gradient():
    net, watching = nn.Linear(3, 2, bias=False), Watching()
    watching.watch(NET, net, ("",))
    net(torch.ones(2, 3)).sum().backward()
    told = watching.take()
    assert net.weight.grad is not None
    assert told[f"the whole subject: {PARAMETERS}"] == net.weight.grad.norm()


class Several(nn.Module):
    def forward(self, x: Tensor) -> Any:
        return {"places": x.argmax(1), "values": [x, x * 2]}


def test_of_several_tensors_the_first_real_one_counts():
    module, watching = Several(), Watching()
    watching.watch(NET, module, ("",))
    x = torch.tensor([[1.0, 0.0], [5.0, 0.0]], requires_grad=True)
    module(x * 1)["values"][0].sum().backward()
    told = watching.take()
    assert told[f"the whole subject: {MEAN}"] == 1.5
    assert told[f"the whole subject: {ZEROS}"] == 0.5
    assert told[f"the whole subject: {GRADIENT}"] == 2.0


def test_an_output_that_is_changed_in_place_is_told_as_it_was():
    layer = nn.Linear(3, 3)
    net, watching = nn.Sequential(layer, nn.ReLU(inplace=True)), Watching()
    watching.watch(NET, net, ("0",))
    x = torch.randn(4, 3)
    net(x).sum().backward()
    expected = torch.nn.functional.linear(x, layer.weight, layer.bias).detach()
    told = watching.take()
    assert float(told[f"0: {MEAN}"]) == pytest.approx(float(expected.mean()))
    assert float(told[f"0: {GRADIENT}"]) == pytest.approx(float((expected > 0).sum().sqrt()))


def test_a_recomputation_in_backward_is_not_counted_again():
    net, watching = made(), Watching()
    watching.watch(NET, net, ("0",))
    outputs = []
    net[0].register_forward_hook(lambda module, args, out: outputs.append(out.detach().clone()))
    hidden = checkpoint(lambda x: net[0](x).tanh(), torch.randn(4, 4), use_reentrant=False)
    (hidden * 2).sum().backward()
    told = watching.take()
    assert len(outputs) == 2 and torch.equal(*outputs)
    assert float(told[f"0: {NORM}"]) == pytest.approx(float(outputs[0].norm()))
    expected = float((2 * (1 - outputs[0].tanh() ** 2)).norm())
    assert float(told[f"0: {GRADIENT}"]) == pytest.approx(expected)


def test_it_keeps_nothing_alive_and_takes_its_hooks_away():
    net, watching = made(), Watching()
    watching.watch(NET, net, ("0", "3"))
    output = net(torch.ones(2, 4))
    seen = weakref.ref(output)
    output.sum().backward()
    del output
    gc.collect()
    assert seen() is None
    watching.watch(NET, net, ())
    assert not any(part._forward_hooks for part in net.modules()) and watching.paths == ()
    watching.watch(NET, net, ("0",))
    there = weakref.ref(net)
    del net
    gc.collect()
    assert there() is None and watching.take() == {}


def test_an_output_of_one_number_or_without_a_gradient() -> None:
    net, watching = nn.Linear(2, 1).requires_grad_(False), Watching()
    watching.watch(NET, net, ("",))
    net(torch.ones(1, 2))
    told = watching.take()
    assert told.keys() == {f"the whole subject: {name}" for name in (MEAN, STD, ZEROS, NORM)}
    assert told[f"the whole subject: {STD}"].isnan()  # as torch.std of one number


def test_the_gradient_of_a_sparse_parameter_counts_as_its_dense_one() -> None:
    table, watching = nn.Embedding(4, 2, sparse=True), Watching()
    watching.watch(NET, table, ("",))
    table(torch.tensor([1, 1, 2])).square().sum().backward()
    assert table.weight.grad is not None
    norm = float(table.weight.grad.to_dense().norm())
    assert float(watching.take()[f"the whole subject: {PARAMETERS}"]) == pytest.approx(norm)


class Mixed(nn.Module):
    def forward(self, x: Tensor) -> Any:
        return [x[:0], x.relu().to_sparse(), x + 1]


def test_outputs_that_are_empty_or_sparse_are_passed_over() -> None:
    module, watching = Mixed(), Watching()
    watching.watch(NET, module, ("",))
    module(torch.tensor([1.0, 3.0]))
    assert watching.take()[f"the whole subject: {MEAN}"] == 3.0


def test_a_copy_of_a_watched_module_is_not_watched() -> None:
    net, watching = made(), Watching()
    watching.watch(NET, net, ("3",))
    copy.deepcopy(net)(torch.ones(2, 4))
    assert watching.take() == {}
    net(torch.ones(2, 4))
    assert watching.take()


def test_a_module_that_was_made_again_is_followed_with_the_parts_that_it_has() -> None:
    net, watching = made(), Watching()
    watching.watch(NET, net, ("0", "3", "3"))
    assert watching.paths == ("0", "3")
    net(torch.ones(2, 4))
    watching.follow(NET, net)
    assert watching.take()  # the sums of the same module stay
    smaller = nn.Sequential(nn.Linear(4, 2))
    watching.follow(ConsoleSubject("other"), smaller)
    assert watching.paths == ("0", "3")
    watching.follow(NET, smaller)
    net(torch.ones(2, 4))
    assert watching.paths == ("0",) and watching.take() == {}
    smaller(torch.ones(2, 4))
    assert watching.take()


def test_so_many_modules_are_watched_as_are_allowed() -> None:
    net, watching = nn.Sequential(*[nn.ReLU() for _ in range(MAX_WATCHED)]), Watching()
    watching.watch(NET, net, tuple(map(str, range(MAX_WATCHED))))
    assert len(watching.paths) == MAX_WATCHED


def test_a_module_whose_output_cannot_be_read_is_left_alone_after_one_message(monkeypatch, caplog):
    def broken(_: Tensor) -> None:
        raise RuntimeError("it has no numbers")

    monkeypatch.setattr("engine.loops.watching._sums", broken)
    net, watching = made(), Watching()
    watching.watch(NET, net, ("1",))
    for _ in range(3):
        net(torch.ones(2, 4)).sum().backward()
        assert watching.take() == {}
    assert [record.message for record in caplog.records] == ["A module cannot be watched."]


def test_a_hook_that_is_left_on_a_graph_does_nothing_after_the_end():
    net, watching = made(), Watching()
    watching.watch(NET, net, ("3",))
    output = net(torch.ones(2, 4))
    watching.watch(NET, net, ())
    output.sum().backward()
    assert watching.take() == {}


# -- in the engine ---------------------------------------------------------------------------------


@pytest.fixture
def lab() -> Lab:
    return Lab(emit=lambda snapshot: None)


def ask(lab: Lab, command: Any) -> list[Snapshot]:
    return [s for s in handler_of(type(command))(lab, command) if s is not None]


CELL = """
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
data = (torch.randn(40, 4), torch.randn(40, 2))
held_out = (torch.randn(16, 4) + 5, torch.randn(16, 2))
opt = torch.optim.SGD(net.parameters(), 0.1)
"""
LOOP = """
for i in range(3):
    opt.zero_grad()
    net(data[0]).square().mean().backward()
    opt.step()
"""
SETUP = TrainingSetup(epochs=2, batch_size=8)
TRAIN = TrainCommand(
    model=Model(),
    training=SETUP,
    subject=NET,
    objective=Objective(data="data", validation="held_out"),
)


def net_of(lab: Lab) -> nn.Module:
    return lab.console.namespace.variables["net"]


def trained(lab: Lab, *watched: str) -> tuple[dict[str, Tensor], list[TrainingSnapshot]]:
    ask(lab, RunCellCommand(source=CELL))
    if watched:
        (told,) = ask(lab, WatchCommand(subject=NET, paths=watched, training=SETUP))
        assert told == WatchedSnapshot(paths=watched)
    runs = [s for s in ask(lab, TRAIN) if isinstance(s, TrainingSnapshot)]
    assert runs[-1].state == "finished"
    return {name: p.clone() for name, p in net_of(lab).state_dict().items()}, runs


def test_training_has_the_same_bits_and_a_figure_for_every_step(lab):
    plain, runs = trained(Lab(emit=lambda snapshot: None))
    assert not any(":" in name for run in runs for name in run.steps.figures)
    watched, runs = trained(lab, "1", "2")
    assert all(torch.equal(watched[name], plain[name]) for name in plain)
    steps = [step for run in runs for step in run.steps.step]
    assert steps == list(range(1, 11))
    norms = [n for run in runs for n in run.steps.figures.get(f"2: {NORM}", ())]
    assert len(norms) == 10 and all(0 < norm < 20 for norm in norms)
    rows = [row for run in runs for row in run.epoch_rows]
    assert len(rows) == 2
    assert not any(":" in name for row in rows for name in row.train_figures)


def test_a_step_of_train_is_that_of_a_plain_step(lab):
    _, runs = trained(lab, "1", "2")
    other = Lab(emit=lambda snapshot: None)
    ask(other, RunCellCommand(source=CELL))
    net = net_of(other)
    hooks = PlainHooks(net, ("1", "2"))
    source = (
        "torch.manual_seed(0)\n"
        "loader = torch.utils.data.DataLoader("
        "torch.utils.data.TensorDataset(*data), 8, shuffle=True)\n"
        "x, y = next(iter(loader))"
    )
    ask(other, RunCellCommand(source=source))
    variables = other.console.namespace.variables
    nn.functional.mse_loss(net(variables["x"]), variables["y"]).backward()
    seen = hooks.take(net)
    first = next(run.steps for run in runs if run.steps.step)
    assert {name: first.figures[name][0] for name in seen} == pytest.approx(seen, rel=1e-5)


def test_a_loop_in_a_cell_is_watched_and_one_that_makes_the_module_again_is_followed(lab):
    sent: list[Any] = []
    lab.emit = sent.append
    plain = Lab(emit=lambda snapshot: None)
    for each in (plain, lab):
        ask(each, RunCellCommand(source=CELL))
    ask(lab, WatchCommand(subject=NET, paths=("2",)))
    ask(lab, RunCellCommand(source="net.eval()(data[0] + 9); net.train()"))  # of no step
    expected = PlainHooks(net_of(plain), ("2",))
    ask(plain, RunCellCommand(source=LOOP))
    sent += ask(lab, RunCellCommand(source=LOOP))
    rows = figures_of(sent)
    assert len(rows) == 3
    assert rows[0].keys() == set(WATCHED_FIGURES)
    weights = (net_of(each).get_parameter("0.weight") for each in (lab, plain))
    assert torch.equal(*weights)
    outputs = expected.outputs["2"]
    detached = [output.detach() for output in outputs]
    assert [row[NORM] for row in rows] == pytest.approx([float(o.norm()) for o in detached])
    norms = [float(output.grad.norm()) for output in outputs]
    assert [row[GRADIENT] for row in rows] == pytest.approx(norms)
    sent.clear()
    ask(lab, RunCellCommand(source=CELL))
    sent += ask(lab, RunCellCommand(source=LOOP))
    assert [row[NORM] for row in figures_of(sent)] == pytest.approx([row[NORM] for row in rows])


def figures_of(sent: list[Any]) -> list[dict[str, float]]:
    """The figures of module 2 in each step of a loop."""
    rows = []
    for snapshot in sent:
        if isinstance(snapshot, LoopSnapshot):
            named = {name.removeprefix("2: "): v for name, v in snapshot.steps.figures.items()}
            rows += [{n: v[i] for n, v in named.items()} for i in range(len(snapshot.steps.step))]
    return rows


def test_the_structure_tells_what_is_watched(lab):
    ask(lab, RunCellCommand(source=CELL))
    ask(lab, WatchCommand(subject=NET, paths=("1",)))

    def told(subject: ConsoleSubject) -> tuple[str, ...]:
        part = ask(lab, ReadStructureCommand(subject=subject))[-1]
        assert isinstance(part, StructureSnapshot)
        return part.watched

    assert told(NET) == ("1",)
    assert told(ConsoleSubject("net[0]")) == ()
    ask(lab, RunCellCommand(source="net = nn.Sequential(nn.Linear(1, 1))"))
    assert told(NET) == ()


def test_a_watched_name_may_come_to_hold_what_is_no_module(lab):
    ask(lab, RunCellCommand(source=CELL))
    ask(lab, WatchCommand(subject=NET, paths=("1",)))
    ask(lab, RunCellCommand(source="net = 3"))
    (*_, end) = ask(lab, RunCellCommand(source="net += 1"))
    assert isinstance(end, CellSnapshot) and end.ok and lab.subjects.watching.paths == ("1",)


def test_what_cannot_be_watched_is_said_and_changes_nothing(lab):
    ask(lab, RunCellCommand(source=f"net = nn.Sequential(*[nn.ReLU()] * {MAX_WATCHED + 1})"))
    ask(lab, WatchCommand(subject=NET, paths=("1",)))
    with pytest.raises(LabError, match="no module `9`"):
        ask(lab, WatchCommand(subject=NET, paths=("1", "9")))
    many = tuple(map(str, range(MAX_WATCHED + 1)))
    with pytest.raises(LabError, match="At most"):
        ask(lab, WatchCommand(subject=NET, paths=many))
    assert lab.subjects.watching.paths == ("1",)
