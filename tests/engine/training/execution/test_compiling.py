"""torch.compile in a run: the numbers of the plain run within rounding, and failures in words."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import psutil
import pytest
import torch
from torch import nn

from engine.project.document import DataSetup, TrainingSetup, replace
from engine.system.errors import LabError
from engine.training.execution.compiling import compile_problem
from engine.training.loop import TrainingLoop
from engine.training.objectives.code_objective import CodeObjective
from engine.training.run import TrainingRun
from tests.compilers import has_compiler

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")

SETUP = TrainingSetup(
    data=DataSetup("moons", {"samples": 100}), batch_size=40, epochs=2, seed=3, compile=True
)


@pytest.fixture(autouse=True)
def without_a_thread_of_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch.compile makes a bar of tqdm, if that is installed: its thread would stay."""
    monkeypatch.setattr(torch.hub.tqdm, "monitor_interval", 0, raising=False)


@pytest.fixture(autouse=True)
def without_threads_of_compiling() -> Iterator[None]:
    """What no cache has yet is compiled here, not on threads that would stay."""
    from torch._inductor import config

    with config.patch(compile_threads=1):
        yield


@pytest.fixture(autouse=True)
def without_runs_of_other_tests() -> None:
    """Those that nobody has closed end when they are collected: not among torch.compile's fakes."""
    gc.collect()


@pytest.fixture
def compiler() -> None:
    if not has_compiler():
        pytest.skip("This machine has no C++ compiler.")


def mlp() -> nn.Sequential:
    """As few kernels as can be: the C++ compiler takes a second or two for each."""
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(2, 16, bias=False), nn.Dropout(0.3), nn.Linear(16, 2, bias=False)
    )


def finish(setup: TrainingSetup) -> TrainingLoop:
    loop = TrainingLoop(mlp(), setup)
    for _ in loop.steps():
        pass
    loop.close()
    return loop


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("compiler")
def test_a_compiled_run_has_the_numbers_of_the_plain_one() -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    plain, compiled = finish(replace(SETUP, compile=False)), finish(SETUP)
    (mark,) = compiled.marks.all
    assert mark.step == 1 and mark.text.startswith("compiled: 1 graph")
    assert not plain.marks.all
    for name, tensor in plain.model.state_dict().items():
        torch.testing.assert_close(compiled.model.state_dict()[name], tensor)
    assert [row.loss for row in compiled.metrics.history] == pytest.approx(
        [row.loss for row in plain.metrics.history], rel=1e-5
    )
    assert compiled.model._compiled_call_impl is None  # the other workspaces run it as it is
    left = {child.pid for child in psutil.Process().children(recursive=True)} - before
    assert not left


def test_a_missing_compiler_ends_the_run_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import config

    monkeypatch.setattr(config.cpp, "cxx", (None, "no-such-compiler"))
    monkeypatch.setattr(config, "fx_graph_cache", False)
    torch._dynamo.reset()
    run = TrainingRun(TrainingLoop(mlp(), SETUP))
    for _ in run.steps():
        pass
    run.close()
    torch._dynamo.reset()
    assert run.failure is not None
    assert "needs a C++ compiler" in run.failure.message
    assert "turn compile off" in run.failure.hint
    assert run.step == 0


def test_a_step_that_does_not_call_the_model_says_that_nothing_was_compiled() -> None:
    model = mlp()
    data = (torch.randn(8, 2), torch.randint(2, (8,)))
    step = lambda batch: nn.functional.cross_entropy(model[2](model[0](batch[0])), batch[1])  # noqa: E731
    loop = TrainingLoop(model, SETUP, CodeObjective(step, data, None, 4))
    next(loop.steps())
    loop.close()
    assert [mark.text for mark in loop.marks.all] == [
        "nothing was compiled: the step does not call the model itself"
    ]


def test_what_does_not_go_with_a_compiled_model_is_told() -> None:
    with pytest.raises(LabError, match="decides itself which activations"):
        TrainingLoop(mlp(), replace(SETUP, recomputed=("0",)))


def test_inputs_of_ever_other_kinds_are_told() -> None:
    from torch._dynamo.exc import FailOnRecompileLimitHit

    told = compile_problem(FailOnRecompileLimitHit("recompile_limit reached"))
    assert told is not None and "again and again" in str(told)
    assert compile_problem(RuntimeError("shapes do not match")) is None
