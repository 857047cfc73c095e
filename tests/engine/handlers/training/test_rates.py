"""The learning rate before a run, beside torch's own scheduler stepped through."""

from __future__ import annotations

import pytest
import torch

from engine.lab import Lab
from engine.project.document import DataSetup, Model, Schedule, TrainingSetup
from engine.project.subject import ConsoleSubject, Objective
from engine.protocol import PreviewRatesCommand, RatesSnapshot
from engine.server.session import handler_of
from engine.system.errors import LabError

STEPS = Schedule("lr_scheduler.ExponentialLR", {"gamma": 0.5}, "step")


@pytest.fixture
def lab() -> Lab:
    return Lab(emit=lambda snapshot: None)


def rates(lab: Lab, setup: TrainingSetup, data: str = "") -> RatesSnapshot:
    subject = {"subject": ConsoleSubject("net"), "objective": Objective(data)} if data else {}
    command = PreviewRatesCommand(model=Model(), training=setup, **subject)
    (found,) = handler_of(PreviewRatesCommand)(lab, command)
    assert isinstance(found, RatesSnapshot)
    return found


@pytest.mark.parametrize(("accumulate", "total"), [(1, 10), (2, 6), (3, 4), (5, 2)])
def test_the_steps_are_those_of_the_epochs_with_their_last_short_one(
    accumulate: int, total: int, lab: Lab
) -> None:
    """Five batches an epoch."""
    net = torch.nn.Linear(2, 1)
    lab.console.namespace.variables["net"] = net
    lab.console.namespace.variables["data"] = torch.utils.data.TensorDataset(
        torch.ones(18, 2), torch.ones(18, 1)
    )
    setup = TrainingSetup(
        batch_size=4, epochs=2, accumulate=accumulate, schedule=STEPS, optimizer="optim.SGD",
        optimizer_params={"lr": 0.5},
    )  # fmt: skip
    found = rates(lab, setup, "data")
    assert found.total_steps == total
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    assert found.steps == tuple(range(1, total + 1))
    for rate in found.rates:
        assert rate == pytest.approx(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()


def test_data_that_does_not_say_how_long_it_is_has_no_steps(lab: Lab) -> None:
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(())

    lab.console.namespace.variables |= {"net": torch.nn.Linear(2, 1), "stream": Stream()}
    with pytest.raises(LabError, match="does not say how many batches it has"):
        rates(lab, TrainingSetup(data=DataSetup()), "stream")
