"""The memory of one step against what plain torch says: storages, saved tensors, places."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import pytest
import torch
from torch import Tensor, nn
from torch.distributed._tools.mem_tracker import MemTracker

from engine.project.document import TrainingSetup, replace
from engine.system.errors import LabError
from engine.training.memory.one_step import OneStep
from engine.training.memory.tracking import Tracker
from engine.training.objectives.code_objective import CodeObjective
from engine.training.objectives.objective import CatalogueObjective

Make = Callable[[], nn.Sequential]
ADAM = {"optimizer": "optim.Adam", "optimizer_params": {"lr": 0.01}}


def tracked(model: nn.Module, setup: TrainingSetup) -> Tracker:
    return OneStep(model, CatalogueObjective(model, setup), setup).tracker


def at_end_of(tracker: Tracker, phase: str) -> dict[str, int]:
    """The bytes by kind after the last operation of a phase."""
    last = max(number for number, op in enumerate(tracker.ops) if op.phase == phase)
    return {kind: of[last] for kind, of in tracker.bytes_by_kind().items()}


def test_what_is_held_is_that_of_the_tensors_themselves(make_mlp: Make, moons) -> None:
    model = make_mlp()
    found = at_end_of(tracked(model, replace(moons, **ADAM)), "step")
    weights = sum(p.nbytes for p in model.parameters())
    assert found["parameters"] == weights + sum(b.nbytes for b in model.buffers())
    assert found["gradients"] == weights
    plain = make_mlp()
    optimizer = torch.optim.Adam(plain.parameters())
    plain(torch.randn(32, 2)).sum().backward()
    optimizer.step()
    state = (t for slots in optimizer.state.values() for t in slots.values())
    assert found["optimizer"] == sum(t.nbytes for t in state)
    size = moons.batch_size  # the batch alone, though several may be picked at once
    assert size < 80 and found["data"] == size * 2 * 4 + size * 8
    assert found["activations"] == 0  # backward has freed them


def test_what_is_saved_counts_also_if_no_backward_comes_for_it() -> None:
    model, kept = nn.Linear(4, 4), []

    def step(batch: list[Tensor]) -> Tensor:
        hidden = model(batch[0])
        kept[:] = [hidden.exp()]  # saves its result, which is not part of the loss
        return hidden.sum()

    objective = CodeObjective(step, torch.randn(8, 4), None, 8)
    tracker = OneStep(model, objective, TrainingSetup(batch_size=8)).tracker
    assert at_end_of(tracker, "loss")["activations"] == kept[0].nbytes


def test_activations_are_the_storages_that_the_graph_saves(make_mlp: Make, moons) -> None:
    """After the loss: of each saved tensor its storage, but parameters, buffers and the batch."""
    model = make_mlp()
    model.train()
    objective = CatalogueObjective(model, moons)
    batch = next(objective.batches(0, 0))
    saved: dict[int, Tensor] = {}

    def pack(tensor: Tensor) -> Tensor:
        saved[tensor.untyped_storage()._cdata] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
    known = [*model.parameters(), *model.buffers(), *batch]
    outside = {tensor.untyped_storage()._cdata for tensor in known}
    expected = sum(t.untyped_storage().nbytes() for key, t in saved.items() if key not in outside)
    assert at_end_of(tracked(make_mlp(), moons), "loss")["activations"] == expected
    assert loss.requires_grad


def test_the_peak_is_that_of_torchs_own_tracker() -> None:
    """MemTracker counts each storage as 512 bytes at least, so all here are multiples of them. It
    counts the batch and the weights once they are told to it."""
    torch.manual_seed(0)

    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128))

    x = torch.randn(64, 128)
    model = make()
    objective = CodeObjective(lambda batch: model(batch[0]).square().mean(), x, None, 64)
    setup = TrainingSetup(batch_size=64, optimizer="optim.SGD", optimizer_params={"lr": 0.1})
    tracker = OneStep(model, objective, setup).tracker
    own = {op.phase: 0 for op in tracker.ops}
    whole = [sum(each) for each in zip(*tracker.bytes_by_kind().values(), strict=True)]
    for op, size in zip(tracker.ops, whole, strict=True):
        own[op.phase] = max(own[op.phase], size)

    plain = make()
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    theirs = MemTracker()
    theirs.track_external(plain, optimizer, x)
    with theirs:
        optimizer.zero_grad()
        plain(x).square().mean().backward()
        optimizer.step()
    device = torch.device("cpu")
    peak = theirs.get_tracker_snapshot("peak")[device]["Total"]
    assert max(own.values()) == pytest.approx(peak, abs=4 * 512)


def test_operations_have_their_phase_and_module(make_mlp: Make, moons) -> None:
    tracker = tracked(make_mlp(), replace(moons, **ADAM))
    named = [(op.name, op.phase, op.place.module) for op in tracker.ops]
    assert ("aten.addmm.default", "forward", "0") in named
    assert ("aten.addmm.default", "forward", "4") in named
    assert ("aten.native_batch_norm_backward.default", "backward", "1") in named
    assert ("aten.threshold_backward.default", "backward", "2") in named
    assert ("aten.nll_loss_forward.default", "loss", None) in named
    assert ("aten.nll_loss_backward.default", "backward", None) in named
    phases = list(dict.fromkeys(op.phase for op in tracker.ops))
    assert phases == ["forward", "loss", "backward", "step"]  # zero_grad runs no operation
    names = {block.name for block in tracker.blocks}
    assert {"0.weight", "0.weight.grad", "exp_avg of 0.weight", "batch"} <= names
    (old, new) = (b for b in tracker.blocks if b.name == "4.weight.grad")
    assert old.born == -1 and old.died is not None and new.born > old.died


def test_the_line_of_the_users_code_is_told(tmp_path) -> None:
    path = tmp_path / "net.py"
    lines = "def step(batch, model):", "    hidden = model(batch)", "    return hidden.exp()"
    path.write_text("\n".join(lines))
    code: dict = {}
    exec(compile(path.read_text(), str(path), "exec"), code)
    model = nn.Linear(4, 4)
    objective = CodeObjective(
        lambda batch: code["step"](batch[0], model).sum(), torch.randn(8, 4), None, 8
    )
    tracker = OneStep(model, objective, TrainingSetup(batch_size=8)).tracker
    found = {op.name: (op.place.file, op.place.line) for op in tracker.ops if op.phase != "step"}
    assert found["aten.exp.default"] == (str(path), 3)
    assert found["aten.addmm.default"] == (str(path), 2)


@pytest.mark.parametrize(
    "fields",
    [
        {"accumulate": 2},
        {"optimizer": "optim.LBFGS", "optimizer_params": {"max_iter": 3}},
        {"precision": "bfloat16"},
        {"clip_norm": 1.0},
        {"recomputed": ("0",)},
    ],
)
def test_every_set_up_is_followed_to_its_end(make_mlp: Make, moons, fields: dict) -> None:
    tracker = tracked(make_mlp(), replace(moons, **fields))
    assert all(op.place.line == 0 for op in tracker.ops if not op.place.file)
    ends = {kind: of[-1] for kind, of in tracker.bytes_by_kind().items()}
    assert ends["gradients"] == ends["parameters"] - sum(b.nbytes for b in make_mlp().buffers())
    assert all(size >= 0 for of in tracker.bytes_by_kind().values() for size in of)


def test_the_model_is_bit_for_bit_as_before(make_mlp: Make, moons) -> None:
    model = make_mlp()
    model(torch.randn(8, 2)).sum().backward()
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    gradients = [p.grad for p in model.parameters()]
    places = [p.data_ptr() for p in model.parameters()]
    modes = [m.training for m in model.modules()]
    tracked(model, moons)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, state[name]), name
    assert [p.data_ptr() for p in model.parameters()] == places
    assert [m.training for m in model.modules()] == modes
    assert all(p.requires_grad for p in model.parameters())
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        assert parameter.grad is gradient


def test_a_compiled_model_and_data_without_a_batch_are_told(make_mlp: Make, moons) -> None:
    model = make_mlp()
    with pytest.raises(LabError, match="compiled"):
        tracked(model, replace(moons, compile=True))
    empty = CodeObjective(lambda batch: batch[0].sum(), lambda: islice([], 0), None, 8)
    with pytest.raises(LabError, match="no batch"):
        OneStep(model, empty, moons)
