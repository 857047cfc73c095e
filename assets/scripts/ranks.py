"""A model that two processes train together, each with its rows of every batch. Each of them
listens, so that a window can attach to any rank:

    torchrun --nproc-per-node 2 ranks.py      # then: tensorlab attach --list
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import tensorlab as lab


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=500)
    options = options.parse_args()

    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    x = torch.randn(256, 10)
    y = x.square().sum(1, keepdim=True)
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 1))
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    lab.watch(model, optimizer, name="ranks")

    for step in range(options.steps):
        rows = torch.arange(64) + step * 64 % 256
        rows = rows[rank::ranks]
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and (step % 100 == 0 or step == options.steps - 1):
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
