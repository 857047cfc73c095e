# title: A list of losses, each with its graph
# happens: Nothing is raised; the list grows by a graph with each step.
# why: A tensor holds its grad_fn, and that the whole graph under it. backward freed what the nodes
#   saved, not the nodes.
# root: total
# node: AddBackward0
# look: The graphs of all three steps hang under total, freed and yet kept.

import torch

# %% wrong
w = torch.tensor(2.0, requires_grad=True)
losses = []
for step in range(3):
    loss = (w * step) ** 2
    loss.backward()
    losses.append(loss)
total = sum(losses)

# %% right
w = torch.tensor(2.0, requires_grad=True)
losses = []
for step in range(3):
    loss = (w * step) ** 2
    loss.backward()
    losses.append(loss.item())     # or loss.detach()
total = sum(losses)
