# title: A hook that was not removed
# happens: w.grad is 6 at first, then 12: nothing is raised.
# why: Each register_hook adds another hook. Hooks stay until their handle removes them, and each
#   gets the result of the one before.
# root: loss
# node: w
# look: Step to w: its tab Node lists the hooks, two of them.

import torch

# %% wrong
w = torch.tensor(2.0, requires_grad=True)
for step in range(2):
    w.grad = None
    handle = w.register_hook(lambda g: 2 * g)
    loss = 3 * w
    loss.backward()

# %% right
w = torch.tensor(2.0, requires_grad=True)
for step in range(2):
    w.grad = None
    handle = w.register_hook(lambda g: 2 * g)
    loss = 3 * w
    loss.backward()
    handle.remove()
