"""Trains the model below: the same loop as in Tensor Lab, as a plain script.

The data and the first weights lie in train.data.pt, beside this file. On the CPU the losses and the
weights are the same, bit for bit: python train.py --out weights.pt
"""

import argparse
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, kernel_size=5, padding=2)
        self.relu1 = nn.ReLU()
        self.pool1 = nn.MaxPool2d(2)
        self.conv2 = nn.Conv2d(6, 16, kernel_size=3, padding=1)
        self.relu2 = nn.ReLU()
        self.pool2 = nn.MaxPool2d(2)
        self.flatten1 = nn.Flatten()
        self.linear1 = nn.Linear(64, 120)
        self.relu3 = nn.ReLU()
        self.linear2 = nn.Linear(120, 84)
        self.relu4 = nn.ReLU()
        self.linear3 = nn.Linear(84, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # x: (B, 1, 8, 8)
        x = self.conv1(x)  # (B, 6, 8, 8)
        x = self.relu1(x)  # (B, 6, 8, 8)
        x = self.pool1(x)  # (B, 6, 4, 4)
        x = self.conv2(x)  # (B, 16, 4, 4)
        x = self.relu2(x)  # (B, 16, 4, 4)
        x = self.pool2(x)  # (B, 16, 2, 2)
        x = self.flatten1(x)  # (B, 64)
        x = self.linear1(x)  # (B, 120)
        x = self.relu3(x)  # (B, 120)
        x = self.linear2(x)  # (B, 84)
        x = self.relu4(x)  # (B, 84)
        x = self.linear3(x)  # (B, 10)
        return x


def generator_of(seed: int, *place: int) -> torch.Generator:
    """The generator of an epoch, or of a batch of it: it depends on these numbers only, so a run
    that is resumed, or has gone back, draws the same."""
    mixed = np.random.SeedSequence([seed % 2**64, *place]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(mixed[0]))


def epoch_order(samples: int, seed: int, epoch: int) -> Tensor:
    """Return the order of the samples in an epoch: an int64 permutation of (samples,), on the CPU.

    It depends only on its arguments, so a resumed run gets the same batches.
    """
    return torch.randperm(samples, generator=generator_of(seed, epoch))


def slices(x, y):
    for start in range(0, len(y), 32):
        yield x[start : start + 32], y[start : start + 32]


def loss_of(prediction, target):
    return nn.CrossEntropyLoss()(prediction, target)


def train(model, data):
    device = torch.device('cpu')
    x_train, y_train, x_val, y_val = (
        data[name].to(device) for name in ("x_train", "y_train", "x_val", "y_val")
    )
    model.to(device)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(parameters, lr=0.003)
    torch.manual_seed(0)
    for epoch in range(20):
        model.train()
        order = epoch_order(len(y_train), 0, epoch)
        batches = slices(x_train[order], y_train[order])
        total = 0.0
        while of_step := list(islice(batches, 1)):
            optimizer.zero_grad()
            for x, y in of_step:
                loss = loss_of(model(x), y)
                total += loss.item() * len(y)
                loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            losses = [(loss_of(model(x), y).item(), len(y)) for x, y in slices(x_val, y_val)]
        validation = sum(loss * n for loss, n in losses) / max(1, len(y_val))
        training = total / len(order)
        print(f"epoch {epoch + 1}: loss {training:.6f}, validation {validation:.6f}")


def main():
    options = argparse.ArgumentParser(description="Train the model.")
    options.add_argument("--out", help="write the trained state_dict here (.pt)")
    chosen = options.parse_args()
    out = chosen.out
    torch.set_num_threads(1)  # as in the lab: it decides the last bits of sums
    data = torch.load(Path(__file__).with_name('train.data.pt'), weights_only=True)
    model = Model()
    model.load_state_dict(data["weights"])
    train(model, data)
    if out:
        torch.save({name: tensor.cpu() for name, tensor in model.state_dict().items()}, out)


if __name__ == "__main__":
    main()
