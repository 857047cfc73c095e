# title: Evaluation without no_grad()
# happens: Nothing is raised; memory grows with each batch.
# why: total holds the graphs of all batches with all their saved tensors, and none of them will be
#   used.
# root: total
# node: AddBackward0
# look: The graph under total contains the model's graph three times.

import torch
from torch import nn

# %% wrong
net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
total = 0.0
for batch in range(3):
    loss = net(torch.randn(4, 8)).square().mean()
    total = total + loss

# %% right
net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
net.eval()
total = 0.0
with torch.no_grad():
    for batch in range(3):
        loss = net(torch.randn(4, 8)).square().mean()
        total += loss.item()
