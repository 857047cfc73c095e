"""An element of the run's live model between its steps and inside one, beside plain torch."""

from __future__ import annotations

import pytest

from engine.project.document import replace
from engine.project.subject import ConsoleSubject
from engine.protocol import (
    ElementSnapshot,
    ReadElementCommand,
    RunCellCommand,
    StepTrainingCommand,
    TrainCommand,
)
from tests.engine.handlers.test_training_handlers import MLP, SETUP, Client

NAME = "linear2.weight"


@pytest.fixture
def client():
    client = Client()
    yield client
    client.session.close()


def read(client: Client, **fields):
    client.send(ReadElementCommand(id=9, name=NAME, model=MLP, training=SETUP, **fields))
    found = [s for s in client.said if isinstance(s, ElementSnapshot)][-1]
    assert found.name == NAME
    return found.element


def test_all_elements_are_told_if_they_are_asked_for(client):
    client.send(TrainCommand(id=1, model=MLP, training=SETUP, paused=True))
    client.send(StepTrainingCommand(id=2))
    read(client)
    assert [s for s in client.said if isinstance(s, ElementSnapshot)][-1].whole == ()
    read(client, whole=True)
    told = {
        v.label: v for v in [s for s in client.said if isinstance(s, ElementSnapshot)][-1].whole
    }
    assert [*told] == ["parameter", "gradient", "exp_avg", "exp_avg_sq", "next update"]
    run = client.session.lab.run
    weight = client.session.lab.models.live.module.get_parameter(NAME)
    state = run.loop.optimizer.state[weight]
    for name, tensor in (("parameter", weight), ("exp_avg", state["exp_avg"])):
        assert told[name].summary.norm == pytest.approx(float(tensor.detach().double().norm()))
        assert told[name].picture is not None
    before = weight.detach().clone()
    client.send(StepTrainingCommand(id=3))
    moved = float((weight.detach() - before).double().norm())
    assert told["next update"].summary.norm != pytest.approx(moved)  # with another gradient


def test_between_two_steps(client):
    assert "No optimizer" in read(client).note
    client.send(TrainCommand(id=1, model=MLP, training=SETUP, paused=True))
    client.send(StepTrainingCommand(id=2))
    run = client.session.lab.run
    weight = client.session.lab.models.live.module.get_parameter(NAME)
    found = read(client, index=(3, 5))
    state = run.loop.optimizer.state[weight]
    assert found.value == weight[3, 5].item() and found.gradient == weight.grad[3, 5].item()
    assert found.state["exp_avg"] == state["exp_avg"][3, 5].item() and found.state["step"] == 1
    assert found.options["lr"] == 0.01
    largest = read(client)
    assert largest.gradient is not None
    assert abs(largest.gradient) == weight.grad.abs().max().item()
    run.loop.optimizer.step()
    assert found.after == weight[3, 5].item()


def test_inside_a_step_it_is_the_update_to_come(client):
    clipped = replace(SETUP, clip_norm=1.0)
    for setup, words in ((SETUP, "this step."), (clipped, "before the gradients are clipped.")):
        client.send(TrainCommand(id=1, model=MLP, training=setup, paused=True))
        for _ in range(4):
            client.send(StepTrainingCommand(id=2, by="phase"))
        assert client.session.lab.run.loop.current.done[-1] == "backward"
        found = read(client, index=(3, 5))
        assert found.note.endswith(words)
        if setup is SETUP:
            client.send(StepTrainingCommand(id=3, by="phase"))
            assert read(client, index=(3, 5)).value == found.after


def test_after_the_update_of_a_step_that_goes_on_it_is_that_of_the_next(client):
    order = ("step", "zero_grad", "forward", "loss", "backward")
    setup = replace(SETUP, order=order)
    client.send(TrainCommand(id=1, model=MLP, training=setup, paused=True))
    for _ in range(6):
        client.send(StepTrainingCommand(id=2, by="phase"))
    loop = client.session.lab.run.loop
    assert loop.is_in_step and loop.current.done == ["step"] and loop.current.number == 2
    found = read(client, index=(3, 5))
    assert found.note == "The update of a step with this gradient."


def test_an_unknown_parameter_is_told(client):
    client.send(ReadElementCommand(id=9, name="nothing", model=MLP, training=SETUP))
    error = client.error.error
    assert error.message.startswith("nothing has no elements")
    assert error.hint == "Choose another row of the table."


def test_a_parameter_without_a_shape_has_no_elements(client):
    client.send(RunCellCommand(id=1, source="lazy = nn.Sequential(nn.LazyLinear(2))"))
    client.send(
        ReadElementCommand(
            id=9, name="0.weight", model=MLP, training=SETUP, subject=ConsoleSubject("lazy")
        )
    )
    assert "it has no shape yet" in client.error.error.message


def test_the_optimizer_is_the_one_that_has_the_parameter_or_none(client):
    client.send(
        RunCellCommand(
            id=1,
            source="net, other = nn.Linear(2, 2), nn.Linear(2, 2)\n"
            "sgd = torch.optim.SGD(other.parameters(), 0.5)\n"
            "adam = torch.optim.Adam([{'params': other.parameters()}, {'params': net.bias}])\n"
            "(net(torch.ones(1, 2)).sum() + other(torch.ones(1, 2)).sum()).backward()",
        )
    )
    client.send(TrainCommand(id=2, model=MLP, training=SETUP, paused=True))
    for name, optimizer in (("net.weight", ""), ("net.bias", "Adam"), ("other.weight", "SGD")):
        subject, _, parameter = name.partition(".")
        client.send(
            ReadElementCommand(
                id=9, name=parameter, model=MLP, training=SETUP, subject=ConsoleSubject(subject)
            )
        )
        found = client.said[-1]
        assert isinstance(found, ElementSnapshot) and found.name == parameter
        assert found.element.optimizer == optimizer, name
        assert found.element.gradient == 1.0
