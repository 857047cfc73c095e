"""`python -m tests.engine.training.distributed.one_rank FOLDER CASE...`: trains each case, as one
rank of those that the environment names, or else as the only process. Leaves the weights in
FOLDER/CASE.rank.pt."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import torch
from torch import nn

from engine.models.live import LiveModel
from engine.project import files
from engine.project.document import ParamValue, TrainingSetup
from engine.project.edits import loss_block
from engine.training.distributed.ranks import Ranks
from engine.training.distributed.rows import RowsObjective
from engine.training.loop import TrainingLoop
from engine.training.objectives.code_objective import CodeObjective
from engine.training.objectives.objective import CatalogueObjective, Objective

TEMPLATES = Path(__file__).parents[4] / "assets" / "templates"
STEPS = 4
SGD: dict[str, ParamValue] = {"lr": 0.1, "momentum": 0.9}


class Parts(nn.Module):
    """Is called by its parts, and does not use one of them; another only in some rows."""

    def __init__(self) -> None:
        super().__init__()
        self.seen, self.sometimes, self.never = nn.Linear(3, 2), nn.Linear(2, 2), nn.Linear(2, 2)

    def loss(self, batch: list[torch.Tensor]) -> torch.Tensor:
        (x,) = batch
        found = self.seen(x)
        if bool((x[:, 0] > 1.2).any()):
            found = found + self.sometimes(found) * (x[:, :1] > 1.2)
        return found.square().mean()


class Words(nn.Module):
    """Has an embedding whose gradient is sparse, and a norm that counts nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 4, sparse=True)
        self.norm, self.last = nn.LayerNorm(4), nn.Linear(4, 3)

    def loss(self, batch: list[torch.Tensor]) -> torch.Tensor:
        ids, labels = batch
        return nn.functional.cross_entropy(self.last(self.norm(self.embedding(ids))), labels)


def make_case(name: str) -> tuple[nn.Module, TrainingSetup, Objective]:
    if name == "parts":
        torch.manual_seed(0)
        model, x = Parts(), torch.randn(11, 3)  # batches of 5, 5 and 1 row
        setup = TrainingSetup(optimizer="optim.SGD", optimizer_params=SGD, batch_size=5)
        return model, setup, CodeObjective(model.loss, x, None, setup.batch_size)
    if name == "words":
        torch.manual_seed(0)
        model, ids = Words(), torch.arange(13) * 7 % 20  # steps of 4 + 4 and of 4 + 1 rows
        setup = TrainingSetup(
            optimizer="optim.SGD", optimizer_params={"lr": 0.1}, batch_size=4, accumulate=2
        )
        data = torch.utils.data.TensorDataset(ids, ids % 3)
        return model, setup, CodeObjective(model.loss, data, None, setup.batch_size)
    project = files.load(TEMPLATES / f"{name.rstrip('*@^')}.tlab")
    # Adam would make a full step of a gradient that is only rounding: of attention's key bias.
    setup = msgspec.structs.replace(project.training, optimizer="optim.SGD", optimizer_params=SGD)
    if "*" in name:  # options of the step
        params = {"lr": 0.01, "weight_decay": 0.1}
        setup = msgspec.structs.replace(
            setup, optimizer="optim.AdamW", optimizer_params=params, accumulate=2, clip_norm=0.5
        )
    if "@" in name:
        params = {"lr": 0.1, "max_iter": 3}  # a line search makes much of a rounding
        setup = msgspec.structs.replace(setup, optimizer="optim.LBFGS", optimizer_params=params)
    module = LiveModel(project.model, setup.seed).module
    block = loss_block(project.model)
    kind, params = (block.kind, block.params) if block else ("", None)
    return module, setup, CatalogueObjective(module, setup, kind, params)


def train(name: str, ranks: Ranks | None) -> dict[str, torch.Tensor]:
    """The weights after some steps, and the figures of the last one."""
    model, setup, objective = make_case(name)
    if ranks is not None:
        objective = RowsObjective(objective, ranks, model, setup.seed)
        setup = msgspec.structs.replace(setup, compile="^" in name)
    loop = TrainingLoop(model, setup, objective, ranks=ranks)
    steps = loop.steps()
    while loop.step < STEPS:
        next(steps)
    if setup.compile:
        assert "compiled: 1 graph" in [mark.text for mark in loop.marks.all]
    loop.flush()
    row = loop.metrics.history[-1]
    figures = torch.tensor([row.loss, row.accuracy, row.gradient_norm], dtype=torch.float64)
    return {**model.state_dict(), "figures": figures}


def main(folder: Path, names: list[str]) -> None:
    torch.set_num_threads(1)
    rank = os.environ.get("RANK")
    ranks = None
    if rank is not None:
        ranks = Ranks.join(int(rank), int(os.environ["WORLD_SIZE"]), torch.device("cpu"))
    for name in names:
        torch.save(train(name, ranks), folder / f"{name}.{rank}.pt")
    if ranks is not None:
        ranks.end()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
    sys.stdout.flush()
    os._exit(0)  # as the program's ranks end
