# title: A list of losses, each with its graph
# happens: Nothing is raised; the list grows by a graph with each step.
# why: A tensor holds its grad_fn, and the grad_fn holds the whole graph under it. backward frees
#   the saved tensors, not the nodes.
# root: total
# node: AddBackward0
# look: The nodes of all three steps are still under total, without their saved tensors.

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
