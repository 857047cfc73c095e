# title: No gradient: requires_grad set too late
# happens: w.grad is None, and nothing is raised.
# why: The graph is recorded while the operations run. w did not require grad when it was
#   multiplied, and setting it later does not change the recorded graph.
# root: loss
# node: MulBackward0
# look: The edge to w is cut at MulBackward0, although w requires grad now.
# missing: w

import torch

# %% wrong
w = torch.tensor([1.0, 2.0])
b = torch.tensor([1.0, 1.0], requires_grad=True)
loss = (w * b).sum()
w.requires_grad_()
loss.backward()

# %% right
w = torch.tensor([1.0, 2.0]).requires_grad_()
b = torch.tensor([1.0, 1.0], requires_grad=True)
loss = (w * b).sum()
loss.backward()
