"""Eight model files as people write them, what is worked on in each, and the plain loop for it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader

from engine.project.document import TrainingSetup
from engine.project.subject import FileSubject, Objective

FOLDER = Path(__file__).parent / "models"
SEED = 5
SETUP = TrainingSetup(optimizer_params={"lr": 0.01}, batch_size=8, epochs=1, seed=SEED)


@dataclass(frozen=True)
class Case:
    """A file, the expression of its subject, the names of its data, what the program is expected
    to list, and the loss of a batch as the plain loop has it."""

    name: str
    expression: str
    data: str
    listed: dict[str, tuple[str, str]]
    loss: Callable[[ModuleType, nn.Module, Any], Tensor]
    validation: str = ""

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.py"

    @property
    def subject(self) -> FileSubject:
        return FileSubject(str(self.path), self.expression)

    @property
    def objective(self) -> Objective:
        return Objective(data=self.data, validation=self.validation)

    def model(self, file: ModuleType) -> nn.Module:
        """The module that the expression makes, after the seed."""
        torch.manual_seed(SEED)
        made = eval(self.expression, vars(file))
        return made() if isinstance(made, type) else made

    def batches(self, file: ModuleType) -> DataLoader:
        data = getattr(file, self.data)
        return data if isinstance(data, DataLoader) else DataLoader(data, SETUP.batch_size, True)


def language_model(file: ModuleType, model: nn.Module, batch: Any) -> Tensor:
    x, y = batch
    return F.cross_entropy(model(x).flatten(0, -2), y.flatten())


CASES = [
    Case(
        "resnet",
        "ResNet",
        "train_loader",
        {
            "BasicBlock": ("class", "BasicBlock"),
            "ResNet": ("class", "ResNet"),
            "train_set": ("data", "TensorDataset"),
            "test_set": ("data", "TensorDataset"),
            "train_loader": ("data", "DataLoader"),
        },
        lambda file, model, batch: F.cross_entropy(model(batch[0]), batch[1]),
        "test_set",
    ),
    Case(
        "gpt",
        "GPT(vocab_size)",
        "loader",
        {
            "CausalSelfAttention": ("class", "CausalSelfAttention"),
            "Block": ("class", "Block"),
            "GPT": ("class", "GPT"),
            "train_data": ("data", "CharDataset"),
            "loader": ("data", "DataLoader"),
            "main": ("function", "function"),
        },
        language_model,
    ),
    Case(
        "unet",
        "UNet",
        "train_loader",
        {
            "double_conv": ("function", "function"),
            "UNet": ("class", "UNet"),
            "dataset": ("data", "Circles"),
            "train_loader": ("data", "DataLoader"),
        },
        lambda file, model, batch: F.cross_entropy(model(batch[0]), batch[1]),
        "dataset",
    ),
    Case(
        "packed_lstm",
        "LSTMClassifier",
        "train_loader",
        {
            "LSTMClassifier": ("class", "LSTMClassifier"),
            "collate": ("function", "function"),
            "train_loader": ("data", "DataLoader"),
            "valid_loader": ("data", "DataLoader"),
            "criterion": ("module", "CrossEntropyLoss"),
            "step": ("function", "function"),
        },
        lambda file, model, batch: file.step(model, batch)["loss"],
        "valid_loader",
    ),
    Case(
        "vae",
        "VAE()",
        "train_loader",
        {
            "VAE": ("class", "VAE"),
            "loss_function": ("function", "function"),
            "train_loader": ("data", "DataLoader"),
            "step": ("function", "function"),
            "train": ("function", "function"),
        },
        lambda file, model, batch: file.step(model, batch)["loss"],
    ),
    Case(
        "siamese",
        "SiameseNetwork(embedding_dim=5)",
        "loader",
        {
            "SiameseNetwork": ("class", "SiameseNetwork"),
            "pairs": ("data", "Pairs"),
            "loader": ("data", "DataLoader"),
        },
        lambda file, model, batch: F.cosine_embedding_loss(
            *model(batch[0], batch[1]), 2 * batch[2] - 1
        ),
        "pairs",
    ),
    Case(
        "adaptive",
        "model",
        "loader",
        {
            "AdaptiveRNN": ("class", "AdaptiveRNN"),
            "dataset": ("data", "Parity"),
            "loader": ("data", "DataLoader"),
            "model": ("module", "AdaptiveRNN"),
            "step": ("function", "function"),
        },
        lambda file, model, batch: file.step(batch)["loss"],
        "dataset",
    ),
    Case(
        "custom_function",
        "BinaryNet",
        "data",
        {
            "BinaryLinear": ("class", "BinaryLinear"),
            "BinaryNet": ("class", "BinaryNet"),
            "data": ("data", "TensorDataset"),
        },
        lambda file, model, batch: F.mse_loss(model(batch[0]), batch[1]),
    ),
]


@contextmanager
def imported(path: Path) -> Iterator[ModuleType]:
    """The file as a module of plain Python's, under a name of its own, without the program."""
    name = f"plain_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[name]


def plain_epoch(case: Case, file: ModuleType, lr: float = 0.01) -> tuple[nn.Module, list[float]]:
    """The loop as in every course; the trained model and the loss of each step."""
    model = case.model(file).train()
    torch.manual_seed(SEED)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr)
    losses = []
    for batch in case.batches(file):
        optimizer.zero_grad()
        loss = case.loss(file, model, batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, losses
