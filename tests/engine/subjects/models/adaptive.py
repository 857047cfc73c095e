"""Adaptive computation time: the data decide how often the cell runs (Graves 2016)."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(42)


class AdaptiveRNN(nn.Module):
    def __init__(self, n_features, n_hidden, threshold=0.99, max_ponder=12):
        super().__init__()
        self.cell = nn.GRUCell(n_features + 1, n_hidden)
        self.halt = nn.Linear(n_hidden, 1)
        self.readout = nn.Linear(n_hidden, 1)
        self.threshold = threshold
        self.max_ponder = max_ponder
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, features):
        h = features.new_zeros(len(features), self.cell.hidden_size)
        total = features.new_zeros(len(features), 1)
        state = torch.zeros_like(h)
        n = 0
        while n < self.max_ponder and bool((total < self.threshold).any()):
            first = torch.full_like(total, float(n == 0))
            h = self.cell(torch.cat([features, first], dim=1), h)
            p = torch.sigmoid(self.halt(h)) * (total < self.threshold)
            p = torch.minimum(p, 1 - total)
            state = state + p * h
            total = total + p
            n += 1
        if self.training:
            self.calls += n
        return self.readout(state).squeeze(1), total, n


class Parity(Dataset):
    def __init__(self, size, bits, generator):
        self.x = torch.randint(-1, 2, (size, bits), generator=generator).float()
        self.y = ((self.x == 1).sum(1) % 2).float()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"features": self.x[i], "target": self.y[i], "id": f"sample-{i}"}


dataset = Parity(15, 5, torch.Generator().manual_seed(1))
loader = DataLoader(dataset, batch_size=4)
model = AdaptiveRNN(n_features=5, n_hidden=7)


def step(batch):
    logits, total, n = model(batch["features"])
    loss = F.binary_cross_entropy_with_logits(logits, batch["target"])
    ponder = (1 - total).abs().mean()
    return {"loss": loss + 0.01 * ponder, "iterations": n}


if __name__ == "__main__":
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for batch in loader:
        figures = step(batch)
        optimizer.zero_grad()
        figures["loss"].backward()
        optimizer.step()
        print(f"loss {figures['loss'].item():.4f} after {figures['iterations']} iterations")
