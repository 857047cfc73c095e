"""Training on a CUDA device: moving there and back, its memory, and resuming."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan

import pytest
import torch
from torch import nn

from engine.project.document import TrainingSetup, replace
from engine.training.checkpoints import checkpoint_files
from engine.training.loop import TrainingLoop
from engine.training.run import TrainingRun

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.fixture
def on_cuda(moons: TrainingSetup) -> TrainingSetup:
    return replace(moons, device="cuda:0")


def test_the_model_trains_on_the_device_and_comes_back(
    on_cuda: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    model = make_mlp()
    devices = []
    model.register_forward_hook(lambda module, args, output: devices.append(output.device.type))
    run = TrainingRun(TrainingLoop(model, on_cuda))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for _ in run.steps():
        pass
    run.close()
    assert set(devices) == {"cuda"}
    assert {tensor.device.type for tensor in model.state_dict().values()} == {"cpu"}
    assert not torch.equal(model.state_dict()["0.weight"], before["0.weight"].cpu())


def test_rows_have_the_devices_memory_and_time(
    on_cuda: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    run = TrainingRun(TrainingLoop(make_mlp(), on_cuda))
    for _ in run.steps():
        pass
    steps = run.snapshot("finished").steps
    assert steps.step == tuple(range(1, 10))
    assert len(steps.cuda_allocated_bytes) == len(steps.cuda_reserved_bytes) == 9
    for allocated, reserved in zip(
        steps.cuda_allocated_bytes, steps.cuda_reserved_bytes, strict=True
    ):
        assert 0 < allocated <= reserved
    looked_at = (1, 2, 4, 8)  # the device's clock cannot leave a look out
    for step, step_ms in zip(steps.step, steps.step_ms, strict=True):
        assert isnan(step_ms) if step in looked_at else step_ms > 0
    run.close()


def test_figures_are_near_those_on_the_cpu(moons: TrainingSetup, on_cuda: TrainingSetup) -> None:
    histories = []
    for setup in (moons, on_cuda):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
        run = TrainingRun(TrainingLoop(model, setup))
        for _ in run.steps():
            pass
        run.close()
        histories.append([row[1:4] for row in run.loop.metrics.history])
    for here, there in zip(*histories, strict=True):
        assert there == pytest.approx(here, rel=1e-3)


def test_a_resumed_run_goes_on_with_the_same_random_numbers(
    on_cuda: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    straight, killed = make_mlp(), make_mlp()
    for _ in TrainingLoop(straight, on_cuda).steps():
        pass
    loop = TrainingLoop(killed, on_cuda)
    steps = loop.steps()
    for _ in range(4):
        next(steps)
    path = checkpoint_files.save(loop.checkpoint("run"))
    steps.close()
    torch.cuda.manual_seed(99)
    resumed = TrainingLoop(make_mlp(), on_cuda)
    resumed.restore(checkpoint_files.load(path))
    for _ in resumed.steps():
        pass
    expected = straight.state_dict()
    for name, tensor in resumed.model.state_dict().items():
        assert torch.allclose(tensor, expected[name], atol=1e-6), name


def test_a_nan_is_found_at_the_next_snapshot(
    on_cuda: TrainingSetup, make_mlp: Callable[[], nn.Sequential]
) -> None:
    setup = replace(on_cuda, optimizer="optim.SGD", optimizer_params={"lr": 1e30}, epochs=50)
    run = TrainingRun(TrainingLoop(make_mlp(), setup))
    for _ in run.steps():
        pass
    run.close()
    last = run.snapshot("finished")
    assert last.state == "failed"
    assert last.error is not None
    assert "The loss became" in last.error.message
