# title: Backward twice through one graph
# happens: The second backward raises: the saved tensors have been freed.
# why: backward frees a node's saved tensors as soon as the node has run, to save memory. The nodes
#   stay; their saved tensors are gone.
# error: RuntimeError
# root: y
# node: PowBackward0
# look: PowBackward0 is flagged: the first backward freed its saved tensors.

import torch

# %% wrong
x = torch.tensor(2.0, requires_grad=True)
y = x ** 3
y.backward()
y.backward()

# %% right
x = torch.tensor(2.0, requires_grad=True)
y = x ** 3
y.backward(retain_graph=True)
y.backward()          # x.grad is now twice 12: gradients add up
