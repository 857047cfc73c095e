"""A small GPT that learns the characters of its own source file.

Two lines are Tensor Lab's: the import and `lab.watch`. `lab.log` adds a figure to the
plots, and the logits to the histograms.

    python gpt.py --steps 2000        # then, in another terminal: tensorlab attach gpt
"""

import argparse
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

import tensorlab as lab


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, characters, length=32, width=48, heads=4, layers=2):
        super().__init__()
        self.token = nn.Embedding(characters, width)
        self.place = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, characters))

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        return self.head(self.blocks(self.token(ids) + self.place(places)))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=500)
    options.add_argument("--lr", type=float, default=3e-3)
    options.add_argument("--batch", type=int, default=16)
    options = options.parse_args()

    torch.manual_seed(0)
    text = Path(__file__).read_text()
    characters = sorted(set(text))
    ids = torch.tensor([characters.index(c) for c in text])
    length = 32
    model = GPT(len(characters), length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    lab.watch(model, optimizer, name="gpt")

    for step in range(options.steps):
        starts = torch.randint(len(ids) - length, (options.batch, 1))
        window = ids[starts + torch.arange(length + 1)]
        logits = model(window[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        right = (logits.argmax(-1) == window[:, 1:]).float().mean()
        lab.log(accuracy=right, logits=lab.histogram(logits))
        if step % 100 == 0 or step == options.steps - 1:
            print(f"step {step}: loss {loss.item():.3f}, accuracy {right.item():.3f}")


if __name__ == "__main__":
    main()
