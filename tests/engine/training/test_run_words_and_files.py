"""Errors of a run in words, its files from time to time, and which weights its model has."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import nn

from engine.project.document import Averaging, ParamGroup, Schedule, TrainingSetup, replace
from engine.project.step_order import PHASES
from engine.protocol import CODE_CHANGED, OTHER_BATCHES, UNORDERED, StepColumns
from engine.system.errors import LabError
from engine.training import run_files
from engine.training.between_steps import kept_between_steps, weight_versions
from engine.training.end_weights import EndWeights
from engine.training.failures import code_changed, explain, other_batches, unordered
from engine.training.figures.metrics import Diverged
from engine.training.loop import TrainingLoop
from engine.training.optimization.groups import Groups
from engine.training.run_files import CHECKPOINT_INTERVAL_S, CHECKPOINT_SHARE, RunFiles

SETUP = TrainingSetup(batch_size=32, device="cuda:1")


# -- words -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "shown", "proposed"), [(0.5, "0.5", "0.05"), (30.0, "30", "0.1"), (1.0, "1", "0.1")]
)
def test_a_lower_rate_is_proposed_after_a_loss_that_is_not_finite(
    rate: float, shown: str, proposed: str
) -> None:
    told = explain(Diverged(3, float("nan")), SETUP, rate)
    assert told.hint.startswith(
        f"Most often the learning rate is too high: it is {shown}, try {proposed} with fresh"
    )
    zero = replace(SETUP, optimizer_params={"eps": 0.0})
    assert explain(Diverged(3, float("nan")), zero, rate).hint == (
        "eps is 0, so a gradient of zero is divided by zero: set eps to 1e-08."
    )


def test_what_to_try_against_other_errors() -> None:
    assert explain(torch.OutOfMemoryError("no"), SETUP, 0.1).hint == (
        "cuda:1 has too little memory: make the batch size (32) or the model smaller, or train on"
        " the CPU."
    )
    told = explain(LabError("Own.", hint="Do this."), SETUP, 0.1)
    assert (told.type, told.message, told.hint) == ("LabError", "Own.", "Do this.")


@pytest.mark.parametrize(
    ("names", "words"),
    [(("a.py",), "a.py has changed"), (("a.py", "b.py"), "a.py, b.py have changed")],
)
def test_what_a_run_that_goes_on_does_not_share_with_its_beginning(
    names: tuple[str, ...], words: str
) -> None:
    told = code_changed(names)
    assert told.type == CODE_CHANGED and told.message == f"{words} since the run began."
    assert told.hint.startswith("It goes on with the code of now.")
    assert unordered().type == UNORDERED and unordered().message.startswith("With in_order off")
    assert "Turn in_order on" in unordered().hint
    other = other_batches(1200, 3000)
    assert (other.type, other.message) == (
        OTHER_BATCHES,
        "Batch 3,000 of epoch 1,200 is not the one that the data gave before.",
    )
    assert other.hint.startswith("Such data draws random numbers")


# -- files -----------------------------------------------------------------------------------------


class Writer:
    """Notes what a run's folder is given; `fails` is raised by `begin`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.begun, self.problem = folder, False, ""
        self.calls: list[Any] = []
        self.fails: LabError | None = None

    def begin(self, at: int) -> None:
        if self.fails is not None:
            raise self.fails
        self.begun = True
        self.calls.append(("begin", at))

    def add(self, *given: Any) -> None:
        self.calls.append(("add", *given))

    def end(self, *given: Any) -> None:
        self.calls.append(("end", *given))

    def settle(self, setup: TrainingSetup) -> None:
        self.calls.append(("settle", setup))

    def move(self, folder: Path) -> None:
        self.folder = folder


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    clock = SimpleNamespace(now_s=100.0)
    monkeypatch.setattr(run_files, "perf_counter", lambda: clock.now_s)
    writer = Writer(tmp_path / "run")
    made: Any = RunFiles(cast(Any, writer), 5, str(tmp_path / "run" / "checkpoints" / "a.pt"))
    made.clock = clock
    return made


def test_a_checkpoint_is_due_after_a_while_and_earlier_at_the_end_of_an_epoch(files) -> None:
    due_s = 100.0 + CHECKPOINT_INTERVAL_S
    assert files.checkpoint_step == 5
    assert not files.save_is_due(due_s - 0.01, False) and files.save_is_due(due_s, False)
    half_s = due_s - CHECKPOINT_INTERVAL_S / 2
    assert not files.save_is_due(half_s - 0.01, True) and files.save_is_due(half_s, True)


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_checkpoint_costs_says_when_the_next_one_is_due(
    files, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    def save(checkpoint: Any, folder: Path) -> Path:
        files.clock.now_s += 1.0
        if fails:
            raise LabError("The disk is full.")
        return folder / "b.pt"

    monkeypatch.setattr(run_files.checkpoint_files, "save", save)
    checkpoint: Any = SimpleNamespace(step=9, setup=SETUP)
    folder = files.writer.folder
    if fails:
        with pytest.raises(LabError):
            files.save(checkpoint)
        assert files.checkpoint_step == 5 and files.writer.calls == []
    else:
        files.save(checkpoint)
        assert (files.checkpoint_path, files.checkpoint_step) == (str(folder / "b.pt"), 9)
        assert files.writer.calls == [("settle", SETUP)]
    due_s = 101.0 + 1.0 / CHECKPOINT_SHARE
    assert not files.save_is_due(due_s - 0.01, False) and files.save_is_due(due_s, False)


NONE, ONE = StepColumns(), StepColumns(step=(1,))


def test_a_run_without_a_step_leaves_no_folder(files) -> None:
    assert files.write("finished", NONE, (), "") is None and files.writer.calls == []
    assert files.write("running", ONE, (), "") is None
    assert files.writer.calls == [("begin", 5), ("add", ONE, (), ())]
    del files.writer.calls[:]
    looks: Any = ("look",)
    assert files.write("running", NONE, (), "", looks) is None
    assert files.writer.calls == [("begin", 5), ("add", NONE, (), looks)]


@pytest.mark.parametrize(
    ("state", "is_end"),
    [("finished", True), ("stopped", True), ("failed", True), ("running", False),
     ("paused", False)],
)  # fmt: skip
def test_the_folder_is_told_the_end(files, state: Any, is_end: bool) -> None:
    files.write(state, ONE, (), "why")
    ends = [call for call in files.writer.calls if call[0] == "end"]
    assert ends == ([("end", state, "why")] if is_end else [])


def test_what_could_not_be_written_is_returned_once(files) -> None:
    error = files.writer.fails = LabError("No room.")
    assert files.write("running", ONE, (), "") is error
    files.writer.fails, files.writer.problem = None, "The figures were not written."
    found = files.write("running", ONE, (), "")
    assert (str(found), found.hint) == (
        "The figures were not written.", "The run goes on without them.",
    )  # fmt: skip
    assert files.write("running", ONE, (), "") is None


def test_a_run_that_moves_takes_its_own_checkpoint_along(files, tmp_path: Path) -> None:
    files.move(tmp_path / "there")
    assert files.checkpoint_path == str(tmp_path / "there" / "checkpoints" / "a.pt")
    files.checkpoint_path = other = str(tmp_path / "elsewhere" / "a.pt")
    files.move(tmp_path / "again")
    assert files.checkpoint_path == other
    files.checkpoint_path = ""
    files.move(tmp_path / "more")
    assert files.checkpoint_path == ""


# -- weights ---------------------------------------------------------------------------------------


def weights(value: float) -> dict[str, torch.Tensor]:
    return {"weight": torch.full((1, 1), value), "bias": torch.full((1,), value)}


def test_the_model_can_have_the_last_the_best_or_the_averaged_weights() -> None:
    model = nn.Linear(1, 1)
    model.load_state_dict(weights(1.0))
    loop: Any = SimpleNamespace(
        model=model, best=None, averaged=None, step=1234,
        setup=replace(SETUP, averaging=Averaging("EMA")),
    )  # fmt: skip
    end = EndWeights(loop)
    for which, words, hint in (
        ("averaged", "The run has averaged no weights.", "Choose an averaging first."),
        ("best", "The run has no best epoch.", "It must end one epoch at least."),
    ):
        with pytest.raises(LabError) as raised:
            end.choose(cast(Any, which))
        assert (str(raised.value), raised.value.hint) == (words, hint)
    loop.averaged = SimpleNamespace(has_begun=False, weights=weights(3.0))
    with pytest.raises(LabError):
        end.choose("averaged")
    loop.averaged.has_begun = True
    loop.best = SimpleNamespace(weights=weights(2.0), epoch=2000, figure="loss")
    for which, value, words in (
        ("averaged", 3.0, "The model has the averaged weights (EMA)."),
        ("best", 2.0, "The model has the weights of epoch 2,000, the best by loss."),
        ("last", 1.0, "The model has the weights with which the run ended, at step 1,234."),
        ("averaged", 3.0, "The model has the averaged weights (EMA)."),
    ):
        assert end.choose(cast(Any, which)) == words
        assert model.weight.item() == model.bias.item() == value


def test_groups_that_cannot_be_are_told_with_what_to_do() -> None:
    model = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    groups = Groups(model)
    own_rate = ParamGroup("0", {"lr": 0.1})
    one_rate = Schedule("lr_scheduler.OneCycleLR", {})
    for setup, words, hint in (
        (
            replace(SETUP, groups=(ParamGroup("gone", {}),)),
            "The model has no module “gone” to have options of its own.",
            "Remove it from the modules with their own options.",
        ),
        (
            replace(SETUP, groups=(own_rate,), schedule=one_rate),
            "OneCycleLR sets one rate for all parameters: “0” cannot have its own.",
            "Choose another schedule, or remove that lr.",
        ),
        (
            replace(SETUP, groups=(ParamGroup("", {}, frozen=True),)),
            "All parameters are frozen: nothing would learn.",
            "Unfreeze one.",
        ),
    ):
        with pytest.raises(LabError) as raised:
            groups.of(setup)
        assert (str(raised.value), raised.value.hint) == (words, hint)
    assert len(groups.of(replace(SETUP, groups=(own_rate,)))) == 2
    inner = replace(SETUP, groups=(ParamGroup("", {}, frozen=True), ParamGroup("1", {})))
    assert groups.frozen(inner) == ["0.weight", "0.bias"]
    assert groups.modules(inner) == ["", "1"]


@pytest.mark.parametrize("order", [PHASES, PHASES[1:]])
def test_work_between_steps_leaves_gradients_that_are_still_used(
    moons: TrainingSetup, make_mlp, order: Any
) -> None:
    setup = replace(moons, order=order, optimizer="optim.SGD", optimizer_params={"lr": 0.1})
    loop = TrainingLoop(make_mlp(), setup)
    steps = loop.steps()
    next(steps)
    before = [None if p.grad is None else p.grad.clone() for p in loop.parameters]
    random = torch.get_rng_state()
    versions = weight_versions(loop)
    with kept_between_steps(loop):
        for parameter in loop.parameters:
            parameter.grad = None
        torch.rand(3)
    assert torch.equal(torch.get_rng_state(), random)
    kept = [p.grad for p in loop.parameters]
    if order == PHASES:
        assert kept == [None] * len(kept)
    else:
        assert all(a is not None and b is not None and torch.equal(a, b)
                   for a, b in zip(before, kept, strict=True))  # fmt: skip
    assert weight_versions(loop) == versions
    with torch.no_grad():
        loop.parameters[1].add_(1)
    changed = [a != b for a, b in zip(weight_versions(loop), versions, strict=True)]
    assert changed.count(True) == 1
    steps.close()
