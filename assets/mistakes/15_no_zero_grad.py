# title: zero_grad() forgotten
# happens: The gradient is 6, then 12, then 18: nothing is raised.
# why: backward adds to .grad. That is useful when a batch is split, and a mistake between steps.
# root: loss
# node: w
# look: w's node is an AccumulateGrad: it adds to w.grad and never replaces it.

import torch

# %% wrong
w = torch.tensor(2.0, requires_grad=True)
for step in range(3):
    loss = 3 * w ** 2 / 2
    loss.backward()
    print(w.grad)

# %% right
w = torch.tensor(2.0, requires_grad=True)
for step in range(3):
    w.grad = None      # optimizer.zero_grad()
    loss = 3 * w ** 2 / 2
    loss.backward()
    print(w.grad)
