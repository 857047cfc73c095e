"""Steps that are measured parameter by parameter: the numbers of torch, and nothing changed."""

from __future__ import annotations

import copy
from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn

from engine.lab import Lab
from engine.loops import updates as room
from engine.loops.hooks import Steps, is_stepping, steps_shown
from engine.loops.updates import Update, Updates
from engine.project.document import Model, TrainingSetup
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import (
    Element,
    ElementSnapshot,
    ReadElementCommand,
    ReadParametersCommand,
    RunCellCommand,
    Snapshot,
    StructureSnapshot,
    TrainCommand,
    WeightRow,
)
from engine.server.session import Session, handler_of
from engine.system.errors import LabError

NET = ConsoleSubject("net")
X = torch.linspace(-1, 1, 32).reshape(8, 4)


class Net(nn.Module):
    """Its `idle` gets no gradient, its `zero` has no length before the first step."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 2)
        self.idle = nn.Parameter(torch.ones(3))
        self.zero = nn.Parameter(torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).tanh()) + self.zero


def made() -> Net:
    torch.manual_seed(0)
    return Net()


def step(net: Net, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    net(X).square().mean().backward()
    optimizer.step()


def plain(net: Net, optimizer: torch.optim.Optimizer) -> dict[str, Update]:
    """A step, and what it does by plain torch."""
    before = copy.deepcopy(net.state_dict())
    step(net, optimizer)
    found = {}
    for name, p in net.named_parameters():
        length = float(before[name].norm())
        gradient = None if p.grad is None else float(p.grad.norm())
        ratio = float((p.detach() - before[name]).norm()) / length if length else None
        found[name] = Update(gradient, ratio)
    return found


def near(number: float | None) -> object:
    return None if number is None else pytest.approx(number, rel=1e-5)


def same(told: dict[str, Update], expected: dict[str, Update]) -> None:
    assert told.keys() == expected.keys()
    for name, update in told.items():
        assert update.gradient == near(expected[name].gradient), name
        assert update.ratio == near(expected[name].ratio), name


def test_the_numbers_are_torchs_and_the_weights_too() -> None:
    net, other = made(), made()
    ours, theirs = (torch.optim.Adam(each.parameters(), 0.1) for each in (net, other))
    updates = Updates()
    assert updates.of(net) == {}
    with steps_shown(updates):
        for _ in range(3):
            updates.ask(net)
            step(net, ours)
            assert not updates.is_asked
            expected = plain(other, theirs)
            same(updates.of(net), expected)
            step(net, ours)  # nobody has asked for it
            step(other, theirs)
            same(updates.of(net), expected)
    assert expected["idle"] == Update(None, 0.0)
    for name, value in net.state_dict().items():
        assert torch.equal(value, other.state_dict()[name])
    assert updates.of(other) == {} and updates.optimizers == [ours]


def test_a_step_is_shown_to_those_who_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("engine.loops.hooks.perf_counter", lambda: now)

    class Late(Steps):
        shown_from_s = 101.0
        shown: ClassVar[list[str]] = []

        def before_step(self, optimizer: torch.optim.Optimizer, has_closure: bool) -> None:
            self.shown.append(f"before {is_stepping(optimizer)}")
            self.shown_from_s = 103.0  # from the next step on

        def after_step(self, optimizer: torch.optim.Optimizer, has_closure: bool) -> None:
            self.shown.append(f"after {is_stepping(optimizer)}")

    net = made()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    with steps_shown(Late()):
        for count in (0, 2, 2, 4):
            step(net, optimizer)
            assert len(Late.shown) == count
            now += 1
    assert Late.shown == ["before True", "after False"] * 2


def test_a_parameter_without_length_has_no_ratio() -> None:
    net, updates = made(), Updates()
    updates.ask(net)
    with steps_shown(updates):
        step(net, torch.optim.SGD(net.parameters(), 0.1))
    assert updates.of(net)["zero"].ratio is None and updates.of(net)["zero"].gradient


def test_each_optimizer_is_measured_in_its_own_step() -> None:
    net, updates = made(), Updates()
    heads = torch.optim.SGD(net.second.parameters(), 0.1)
    rest = torch.optim.SGD(net.first.parameters(), 0.1)
    updates.ask(net)
    with steps_shown(updates):
        step(net, heads)
        assert set(updates.of(net)) == {"second.weight", "second.bias"}
        step(net, rest)
    assert len(updates.of(net)) == 4 and updates.is_asked  # idle and zero are in no optimizer
    assert updates.optimizers == [heads, rest]


def test_a_closure_computes_the_gradients_within_the_step() -> None:
    net, updates = made(), Updates()
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=1)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = net(X).square().mean()
        loss.backward()
        return loss

    updates.ask(net)
    with steps_shown(updates):
        optimizer.step(closure)  # pyright: ignore[reportArgumentType]
    gradient = net.first.weight.grad
    assert gradient is not None
    assert updates.of(net)["first.weight"].gradient == pytest.approx(float(gradient.norm()))


@pytest.mark.parametrize(
    ("most", "steps"),
    [
        (116, [["idle", "zero", "first.weight"], ["first.bias", "second.weight", "second.bias"]]),
        (
            115,
            [["idle", "zero"], ["first.weight"], ["first.bias", "second.weight", "second.bias"]],
        ),
        (0, [["idle"], ["zero"], ["first.weight"], ["first.bias"], ["second.weight"]]),
    ],
)
def test_copies_have_a_bound_and_the_rest_waits_for_the_next_step(
    monkeypatch: pytest.MonkeyPatch, most: int, steps: list[list[str]]
) -> None:
    """Of 12, 8, 96, 24, 48 and 8 bytes. One alone may be larger."""
    monkeypatch.setattr(room, "COPIED_BYTES", most)
    net, updates = made(), Updates()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    updates.ask(net)
    known: list[str] = []
    with steps_shown(updates):
        for names in steps:
            assert updates.is_asked
            step(net, optimizer)
            known += names
            assert list(updates.of(net)) == known
    assert updates.is_asked is (len(known) < 6)
    assert most == room.COPIED_BYTES and (updates.shown_from_s > 0) is (len(known) == 6)


def test_another_module_or_other_parameters_begin_anew() -> None:
    net, other, updates = made(), made(), Updates()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    updates.ask(net)
    with steps_shown(updates):
        step(net, optimizer)
        known = updates.of(net)
        updates.ask(net)
        assert updates.of(net) == known and updates.optimizers == [optimizer]
        net.idle = nn.Parameter(torch.ones(3))
        updates.ask(net)
        assert updates.of(net) == {} and updates.optimizers == []
        step(net, optimizer)  # it holds the old one still
        assert set(updates.of(net)) == set(known) - {"idle"} and updates.is_asked
        updates.ask(other)
        assert updates.of(net) == updates.of(other) == {} and updates.optimizers == []


def test_gradients_that_are_sparse_or_scaled_have_the_norms_of_plain_ones() -> None:
    for is_sparse, scale in ((True, 1.0), (False, 8.0)):
        table, updates = nn.Embedding(4, 2, sparse=is_sparse), Updates()
        optimizer = torch.optim.SGD(table.parameters(), 0.1)
        if scale != 1.0:
            optimizer.grad_scale = torch.tensor(scale)  # pyright: ignore
        table(torch.tensor([1, 1, 2])).sum().backward()
        assert table.weight.grad is not None
        norm = float(table.weight.grad.to_dense().norm())
        updates.ask(table)
        updates.before_step(optimizer, False)
        updates.after_step(optimizer, False)
        assert updates.of(table)["weight"].gradient == pytest.approx(norm / scale)


def test_an_error_of_ours_never_ends_the_users_loop(monkeypatch, caplog) -> None:
    net, updates = made(), Updates()
    updates.ask(net)

    def fail(*_: object) -> float:
        raise RuntimeError("no norm")

    monkeypatch.setattr(room, "_gradient_norm", fail)
    with steps_shown(updates):
        step(net, torch.optim.SGD(net.parameters(), 0.1))
    assert not updates.is_asked and "cannot be measured" in caplog.text


# -- in the engine ---------------------------------------------------------------------------------

CELL = """
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
net[0].bias.requires_grad_(False)
data = (torch.linspace(-1, 1, 160).reshape(40, 4), torch.ones(40, 2))
"""
LOOP = """
def train():
    opt = torch.optim.SGD(net[2].parameters(), 0.1)
    for i in range(3):
        opt.zero_grad()
        net(data[0]).square().mean().backward()
        before = {name: p.detach().clone() for name, p in net.named_parameters()}
        opt.step()
    return opt, before
kept, before = train()
"""
SETUP = TrainingSetup(epochs=1, batch_size=8)


def ask(lab: Lab, command) -> list[Snapshot]:
    return [s for s in handler_of(type(command))(lab, command) if s is not None]


def rows_of(answers: list[Snapshot]) -> dict[str, WeightRow]:
    whole = answers[-1]
    assert isinstance(whole, StructureSnapshot) and whole.left == 0 and not whole.batch
    return {row.name: row for row in whole.weights}


def test_a_loop_in_a_cell_is_measured_and_its_optimizer_told() -> None:
    lab = Lab(emit=lambda snapshot: None)
    ask(lab, RunCellCommand(source=CELL))
    first = rows_of(ask(lab, ReadParametersCommand(subject=NET)))
    assert set(first) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert all(row.update is None and row.gradient is None for row in first.values())
    ask(lab, RunCellCommand(source=LOOP.replace("range(3)", "range(1)")))
    answers = ask(lab, ReadParametersCommand(subject=NET))
    rows, names = rows_of(answers), lab.console.namespace.variables
    for name, p in names["net"].named_parameters():
        moved = float((p.detach() - names["before"][name]).norm())
        fed = name.startswith("2.")
        assert rows[name].fed_by == (("kept",) if fed else ())
        expected = moved / float(names["before"][name].norm()) if fed else None
        assert rows[name].update == near(expected)
        gradient = None if p.grad is None else float(p.grad.norm())
        assert rows[name].gradient == near(gradient)
    assert not rows["0.bias"].trainable and rows["0.weight"].gradient is not None


def test_train_is_measured_between_its_steps_with_the_same_bits() -> None:
    weights = []
    for asks in (False, True):
        answers: list[Snapshot] = []
        session = Session(answers.append)
        session.handle(RunCellCommand(source=CELL))
        session.handle(
            TrainCommand(
                model=Model(), training=SETUP, subject=NET, objective=Objective(data="data")
            )
        )
        while session.advance():
            if asks:
                session.handle(ReadParametersCommand(subject=NET))
        module = session.lab.console.namespace.variables["net"]
        weights.append({name: p.clone() for name, p in module.state_dict().items()})
        if asks:
            rows = rows_of([s for s in answers if isinstance(s, StructureSnapshot)])
            assert rows["0.weight"].fed_by == ("Adam",) and rows["0.bias"].fed_by == ()
            assert rows["0.weight"].update and rows["0.bias"].update is None
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_no_module_is_made_inside_code_that_runs() -> None:
    lab = Lab(emit=lambda snapshot: None)
    ask(
        lab,
        RunCellCommand(
            source="class Net(nn.Linear):\n    def __init__(self):\n        super().__init__(2, 2)"
        ),
    )
    lab.inside = lambda answer: answer()
    with pytest.raises(LabError, match="made once the code that runs has ended"):
        ask(lab, ReadParametersCommand(subject=ConsoleSubject("Net")))
    lab.inside = None
    made_rows = rows_of(ask(lab, ReadParametersCommand(subject=ConsoleSubject("Net"))))
    lab.inside = lambda answer: answer()
    again = rows_of(ask(lab, ReadParametersCommand(subject=ConsoleSubject("Net"))))
    assert again == made_rows


def test_in_the_midst_of_code_the_gradient_is_that_of_the_measured_step() -> None:
    lab = Lab(emit=lambda snapshot: None)
    ask(lab, RunCellCommand(source=CELL))
    ask(lab, ReadParametersCommand(subject=NET))
    ask(lab, RunCellCommand(source=LOOP + "net.zero_grad()"))
    after = rows_of(ask(lab, ReadParametersCommand(subject=NET)))
    assert after["2.weight"].gradient is None and after["2.weight"].update
    lab.inside = lambda answer: answer()
    assert rows_of(ask(lab, ReadParametersCommand(subject=NET)))["2.weight"].gradient


def test_an_element_that_is_asked_for_inside_a_step_has_no_next_update() -> None:
    lab = Lab(emit=lambda snapshot: None)
    run_cell = RunCellCommand(source="net = nn.Linear(2, 1)\nopt = torch.optim.Adam([net.weight])")
    ask(lab, run_cell)
    net, optimizer = (lab.console.namespace.variables[name] for name in ("net", "opt"))
    net.weight.grad = torch.ones(1, 2)
    found: list[Element] = []

    def read(*step: object) -> None:
        (answer,) = ask(lab, ReadElementCommand(name="weight", index=(0, 1), subject=NET))
        assert isinstance(answer, ElementSnapshot)
        found.append(answer.element)

    lab.inside = lambda answer: answer()  # as in the middle of a cell
    optimizer.register_step_pre_hook(read)  # it runs after those that see all optimizers
    with steps_shown(lab.subjects.updates):
        optimizer.step()
    read()
    inside, after = found
    assert inside.update is None and inside.note.startswith("Its optimizer is in the middle")
    assert inside.optimizer == after.optimizer == "Adam" and inside.gradient == 1.0
    assert after.value == net.weight[0, 1].item() != inside.value
    optimizer.step()
    assert after.after == net.weight[0, 1].item()


def test_a_module_is_told_with_its_totals_and_whether_the_program_made_it() -> None:
    lab = Lab(emit=lambda snapshot: None)
    ask(lab, RunCellCommand(source=CELL + "class Net(nn.Linear):\n    def __init__(self):\n"
                            "        super().__init__(2, 2)\n"))  # fmt: skip
    for name, count, is_made in (("net", 4 * 6 + 6 + 6 * 2 + 2, False), ("Net", 6, True)):
        (told,) = ask(lab, ReadParametersCommand(subject=ConsoleSubject(name)))
        assert isinstance(told, StructureSnapshot)
        assert (told.title, told.made, told.totals.parameters) == (name, is_made, count)
        assert told.totals.trainable == count - 6 * (name == "net")
        assert told.modules[0].parameters == count and not told.unregistered


def test_optimizers_without_a_name_have_that_of_their_class_and_a_number() -> None:
    lab = Lab(emit=lambda snapshot: None)
    ask(lab, RunCellCommand(source=CELL))
    ask(lab, ReadParametersCommand(subject=NET))
    source = """
def train():
    for kind, part in ((torch.optim.SGD, net[0]), (torch.optim.SGD, net[2])):
        opt = kind(part.parameters(), 0.1)
        net(data[0]).square().mean().backward()
        opt.step()
        kept.append(opt)
kept = []
train()
"""
    ask(lab, RunCellCommand(source=source))
    (told,) = ask(lab, ReadParametersCommand(subject=NET))
    assert isinstance(told, StructureSnapshot) and told.optimizers == ("SGD", "SGD 2")
    rows = rows_of([told])
    assert rows["0.weight"].fed_by == ("SGD",) and rows["2.weight"].fed_by == ("SGD 2",)
    ask(lab, RunCellCommand(source="first = kept[0]"))
    (told,) = ask(lab, ReadParametersCommand(subject=NET))
    assert isinstance(told, StructureSnapshot) and told.optimizers == ("first", "SGD")


def test_an_element_of_a_shared_parameter_is_had_by_both_of_its_names() -> None:
    lab = Lab(emit=lambda snapshot: None)
    tied = "net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))\nnet[1].weight = net[0].weight"
    ask(lab, RunCellCommand(source=tied))
    weight = lab.console.namespace.variables["net"][0].weight
    for name in ("0.weight", "1.weight"):
        command = ReadElementCommand(
            name=name, model=Model(), training=SETUP, subject=NET, index=(1, 0)
        )
        (told,) = ask(lab, command)
        assert isinstance(told, ElementSnapshot) and told.name == name
        assert told.element.value == weight[1, 0].item()
