"""A run goes back to a step from files in its folder: where its states are too large for memory,
and after a later process has resumed it. Bit for bit as a run that never went back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch

from engine.project.document import Model, TrainingSetup, replace
from engine.project.subject import FileSubject, Objective
from engine.protocol import (
    CODE_CHANGED,
    AdjustTrainingCommand,
    ContinueTrainingCommand,
    ErrorSnapshot,
    RunFileCommand,
    RunMark,
    StepTrainingCommand,
    TrainCommand,
    TrainingSnapshot,
)
from engine.runs import states
from engine.training import run
from engine.training.checkpoints import run_states, states_in_memory
from engine.training.checkpoints.past import MAX_CHANGES, Past

from ..test_training_handlers import MLP, Client, assert_equal

SETUP = TrainingSetup(epochs=3, batch_size=512, seed=3, optimizer_params={"lr": 0.01})
STEPS = 9
SLOWER = replace(SETUP, optimizer_params={"lr": 0.001}, clip_norm=0.1)
SGD = replace(SETUP, optimizer="optim.SGD", optimizer_params={"lr": 0.5, "momentum": 0.9})
Weights = dict[str, torch.Tensor]


@pytest.fixture(autouse=True)
def _every_third_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """States are kept by steps here, not by time, and where one must be kept."""
    keep = run.TrainingRun._keep

    def by_steps(self: run.TrainingRun) -> None:
        if self.step % 3 == 0 or not self._keep_due_s:
            keep(self)
        self._keep_due_s = 1.0

    monkeypatch.setattr(run.TrainingRun, "_keep", by_steps)
    monkeypatch.setattr(run, "perf_counter", lambda: 2.0)


@pytest.fixture
def clients() -> Iterator[list[Client]]:
    """The sessions of a test, each as in a process of its own."""
    made: list[Client] = []
    yield made
    for client in made:
        client.session.close()


def new(clients: list[Client]) -> Client:
    clients.append(Client())
    return clients[-1]


def steps(client: Client, count: int) -> list[Weights]:
    """The weights after each of so many steps of the paused run."""
    found = []
    for _ in range(count):
        client.send(StepTrainingCommand(id=2))
        found.append(client.weights())
    return found


def begun(client: Client, setup: TrainingSetup = SETUP) -> Weights:
    client.send(TrainCommand(id=1, model=MLP, training=setup, fresh=True, paused=True))
    return client.weights()


def go_to(client: Client, step: int, setup: TrainingSetup = SETUP) -> Weights:
    client.send(TrainCommand(id=2, model=MLP, training=setup, to_step=step))
    client.run_to_end()
    assert (client.last.state, client.last.step) == ("paused", step), client.said[-1]
    return client.weights()


def refusal(client: Client, step: int, setup: TrainingSetup = SETUP) -> str:
    client.send(TrainCommand(id=2, model=MLP, training=setup, to_step=step))
    assert isinstance(client.said[-1], ErrorSnapshot)
    return f"{client.said[-1].error.message} {client.said[-1].error.hint}"


def resumed(
    clients: list[Client], setup: TrainingSetup = SETUP, before: Client | None = None
) -> Client:
    """A later process, which has opened the last run of one before where it was."""
    before = before or clients[-1]
    path, at = before.last.checkpoint, before.last.checkpoint_step
    before.session.close()
    client = new(clients)
    client.send(TrainCommand(id=1, model=MLP, training=setup, checkpoint=path, paused=True))
    assert (client.last.state, client.last.step) == ("paused", at), client.said[-1]
    return client


def end_of(client: Client) -> Weights:
    client.send(ContinueTrainingCommand(id=3))
    client.run_to_end()
    assert client.last.state == "finished"
    return client.weights()


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Weights]:
    """The weights after each step of a run that never goes back."""
    client = Client()
    found = [begun(client), *steps(client, STEPS)]
    client.session.close()
    return found


def files_of(client: Client) -> list[int]:
    return states.steps_in(Path(client.last.folder))


# -- states that are too large for memory ----------------------------------------------------------


def test_large_states_are_in_files_few_of_them(clients, straight, monkeypatch) -> None:
    monkeypatch.setattr(states_in_memory, "MAX_BYTES", 1000)
    monkeypatch.setattr(run_states, "MAX_FILES", 3)
    client = new(clients)
    begun(client)
    end_of(client)
    assert len(files_of(client)) == 3 and {0, 9} <= {*files_of(client)}
    for step in (8, 5, 9, 2, 0, 4):
        assert_equal(go_to(client, step), straight[step])
        assert len(files_of(client)) <= 3
    assert_equal(end_of(client), straight[STEPS])


def test_files_have_a_bound_in_bytes_and_the_hint_says_so(clients, monkeypatch) -> None:
    monkeypatch.setattr(states_in_memory, "MAX_BYTES", 1000)
    monkeypatch.setattr(run_states, "MAX_FILE_BYTES", 1000)
    client = new(clients)
    begun(client)
    end_of(client)
    assert files_of(client) == []
    assert "no state from which step 3 can be reached. States of more than" in refusal(client, 3)


def test_all_files_together_have_a_bound(clients, straight, monkeypatch) -> None:
    monkeypatch.setattr(states_in_memory, "MAX_BYTES", 1000)
    client = new(clients)
    begun(client)
    steps(client, 4)
    first = states.path_of(Path(client.last.folder), 0).stat().st_size
    monkeypatch.setattr(run_states, "MAX_FILE_BYTES", 9 * first)  # Adam's state is twice as large
    end_of(client)
    files = files_of(client)
    sizes = [states.path_of(Path(client.last.folder), step).stat().st_size for step in files]
    assert sum(sizes) <= 9 * first and {0, 9} <= {*files}
    assert_equal(go_to(client, 7), straight[7])


def test_a_damaged_file_is_passed_over(clients, straight, monkeypatch) -> None:
    monkeypatch.setattr(states_in_memory, "MAX_BYTES", 1000)
    client = new(clients)
    begun(client)
    end_of(client)
    states.path_of(Path(client.last.folder), 6).write_bytes(b"damaged")
    assert_equal(go_to(client, 7), straight[7])


# -- after a later process has resumed the run -----------------------------------------------------


@pytest.mark.parametrize("max_bytes", [states_in_memory.MAX_BYTES, 1000])
def test_steps_before_the_checkpoint(clients, straight, monkeypatch, max_bytes: int) -> None:
    monkeypatch.setattr(states_in_memory, "MAX_BYTES", max_bytes)
    begun(client := new(clients))
    steps(client, 5)
    client = resumed(clients)
    assert_equal(go_to(client, 4), straight[4])
    client = resumed(clients)
    assert_equal(go_to(client, 1), straight[1])
    assert_equal(end_of(client), straight[STEPS])
    assert_equal(go_to(client, 3), straight[3])


def test_settings_that_changed_on_the_way_and_at_its_resumption(clients) -> None:
    client = new(clients)
    expected = [begun(client), *steps(client, 2)]
    client.send(AdjustTrainingCommand(id=2, training=SLOWER))
    expected += steps(client, 3)
    client = resumed(clients, SETUP)  # as fast again
    expected += steps(client, 3)
    for step in (4, 1, 7):
        later = resumed(clients, SETUP, client)
        assert_equal(go_to(later, step), expected[step])


def test_another_way_that_a_run_took(clients, straight) -> None:
    begun(client := new(clients))
    end_of(client)
    go_to(client, 4, SGD)
    other = steps(client, 3)
    client = resumed(clients, SGD)
    assert_equal(go_to(client, 6, SGD), other[1])
    assert_equal(go_to(client, 3, SGD), straight[3])


def test_a_weight_that_was_edited(clients, straight) -> None:
    begun(client := new(clients))
    steps(client, 4)
    live = client.session.lab.models.live
    assert live is not None
    with torch.no_grad(), client.session.lab.run.between_steps():  # pyright: ignore
        live.module.get_parameter("linear2.bias").fill_(0.25)
    edited = client.weights()
    later = steps(client, 3)
    client = resumed(clients)
    assert_equal(go_to(client, 6), later[1])
    assert_equal(go_to(client, 4), edited)
    assert_equal(go_to(client, 3), straight[3])


def test_steps_with_another_loss_are_not_taken_for_those_of_now(clients, straight) -> None:
    mse = replace(SETUP, loss="nn.MSELoss")
    begun(client := new(clients))
    steps(client, 4)
    client = resumed(clients, mse)
    later = steps(client, 3)
    assert "Before step 4 it had another code or loss" in refusal(client, 3, mse)
    assert_equal(go_to(client, 6, mse), later[1])
    begun(client := new(clients))
    steps(client, 6)
    go_to(client, 4, mse)
    steps(client, 1)
    assert_equal(go_to(client, 2, mse), straight[2])  # in the same process it is repeated


def test_steps_of_other_code_are_not_taken_for_those_of_now(clients, tmp_path: Path) -> None:
    file = tmp_path / "other_code.py"  # a module of its own, which stays loaded
    source = "import torch\nfrom torch import nn\nnet = nn.Linear(3, 1)\ndata = torch.ones(8, 3),\n"
    source += "def step(batch):\n    return net(batch[0]).mean()\n"
    file.write_text(source)
    own = {"subject": FileSubject(str(file), "net"), "objective": Objective(data="data")}
    setup = replace(SETUP, batch_size=2)
    train = TrainCommand(id=1, model=Model(), training=setup, paused=True, **own)  # pyright: ignore
    client = new(clients)
    client.send(RunFileCommand(id=1, path=str(file)))
    client.send(train)
    for _ in range(4):
        client.send(StepTrainingCommand(id=2))
    before = client.last
    client.session.close()
    file.write_text(source.replace("mean", "sum"))
    client = new(clients)
    client.send(RunFileCommand(id=1, path=str(file)))
    client.send(replace(train, checkpoint=before.checkpoint))
    (warning,) = [s.error for s in client.said if isinstance(s, TrainingSnapshot) and s.error]
    assert (warning.type, warning.message) == (
        CODE_CHANGED,
        "other_code.py has changed since the run began.",
    )
    assert client.last.marks == (RunMark(4, "other_code.py changed"),)
    client.send(StepTrainingCommand(id=2))
    client.send(replace(train, to_step=3))
    assert isinstance(client.said[-1], ErrorSnapshot)
    assert client.said[-1].error.hint.startswith("Before step 4 it had another code or loss")
    client.send(replace(train, to_step=4))
    assert (client.last.state, client.last.step) == ("paused", 4)


def test_steps_of_a_past_that_was_left_are_not_used(clients, straight, monkeypatch) -> None:
    """The run goes on from an earlier checkpoint of its own another way: its later states go."""
    monkeypatch.setattr(states_in_memory, "MAX_BYTES", 1000)
    begun(client := new(clients))
    steps(client, 5)
    early = client.last.checkpoint
    steps(client, 2)
    folder = Path(client.last.folder)
    client.session.close()
    client = new(clients)
    client.send(TrainCommand(id=1, model=MLP, training=SLOWER, checkpoint=early, paused=True))
    assert states.steps_in(folder) == [0, 3, 6]
    monkeypatch.setattr(run.TrainingRun, "_keep", lambda self: None)
    steps(client, 3)
    assert states.steps_in(folder) == [0, 3]
    assert "no state from which step 7 can be reached" in refusal(client, 7, SLOWER)
    assert_equal(go_to(client, 4, SLOWER), straight[4])


# -- what happened between the steps ---------------------------------------------------------------


def test_of_very_many_changes_the_first_cannot_be_repeated() -> None:
    past = Past()
    for step in range(MAX_CHANGES + 2):
        past = past.changed(step, SETUP)
    assert [change.step for change in past.changes] == [*range(2, MAX_CHANGES + 2)]
    assert past.leads(2, 50) and past.leads(0, 0) and not past.leads(0, 1) and not past.leads(1, 2)
    assert past.until(1).breaks == (1,) and not past.broken(7).leads(6, 7)
