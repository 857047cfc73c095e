"""A siamese network: one encoder embeds both members of a pair."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class SiameseNetwork(nn.Module):
    def __init__(self, embedding_dim=6):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 4, kernel_size=3, padding=1),
            nn.BatchNorm1d(4),
            nn.PReLU(),
            nn.AdaptiveMaxPool1d(4),
            nn.Flatten(),
            nn.Linear(16, embedding_dim),
        )

    def forward_once(self, x):
        return F.normalize(self.encoder(x), dim=1)

    def forward(self, x1, x2):
        return self.forward_once(x1), self.forward_once(x2)


class Pairs(Dataset):
    """Pairs of waves; the label is 1 where both have the same frequency."""

    def __init__(self, n_pairs, seed=0):
        rng = torch.Generator().manual_seed(seed)
        t = torch.linspace(0, 6.28, 24)
        frequencies = torch.randint(1, 4, (n_pairs, 2), generator=rng)
        phases = torch.rand(n_pairs, 2, 1, generator=rng)
        self.waves = torch.sin(frequencies.unsqueeze(-1) * t + phases)
        self.same = (frequencies[:, 0] == frequencies[:, 1]).float()

    def __len__(self):
        return len(self.same)

    def __getitem__(self, idx):
        first, second = self.waves[idx]
        return first.unsqueeze(0), second.unsqueeze(0), self.same[idx]


pairs = Pairs(20)
loader = DataLoader(pairs, batch_size=8, shuffle=True, drop_last=True)


if __name__ == "__main__":
    net = SiameseNetwork()
    loss_fn = nn.CosineEmbeddingLoss()
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3)
    for x1, x2, same in loader:
        optimizer.zero_grad()
        e1, e2 = net(x1, x2)
        loss = loss_fn(e1, e2, 2 * same - 1)
        loss.backward()
        optimizer.step()
        print(loss.item())
