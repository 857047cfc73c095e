# title: Backward twice through one graph
# happens: The second backward raises: the saved tensors have been freed.
# why: Each node frees what it saved as soon as backward has run it, so that memory is there again.
#   The nodes remain, their saved tensors do not.
# error: RuntimeError
# root: y
# node: PowBackward0
# look: PowBackward0 is flagged: what it saved was freed by the first backward.

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
