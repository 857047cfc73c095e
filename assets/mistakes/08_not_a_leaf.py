# title: No gradient: not a leaf
# happens: h.grad is None (reading it warns); x.grad has its value.
# why: The gradient passes through h on its way to x, but autograd keeps .grad only for leaves, to
#   save memory.
# root: loss
# node: MulBackward0
# look: h is the result of MulBackward0, inside the graph: the node's incoming gradient is what
#   h.grad would hold.
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
