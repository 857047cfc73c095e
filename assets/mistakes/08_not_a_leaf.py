# title: No gradient: not a leaf
# happens: h.grad is None (asking for it warns), x.grad is there.
# why: A gradient passes through h on its way to x and is not kept: memory is spent on leaves
#   alone.
# root: loss
# node: MulBackward0
# look: h is MulBackward0, in the midst of the graph: its incoming gradient is what h.grad would
#   hold.
# missing: h

import torch

# %% wrong
x = torch.tensor([1.0, 2.0], requires_grad=True)
h = x * 2
loss = (h ** 2).sum()
loss.backward()

# %% right
x = torch.tensor([1.0, 2.0], requires_grad=True)
h = x * 2
h.retain_grad()
loss = (h ** 2).sum()
loss.backward()
