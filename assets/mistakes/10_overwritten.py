# title: A saved tensor overwritten
# happens: backward raises: a variable needed for gradient computation has been modified by an
#   inplace operation.
# why: The derivative of exp is its result, so ExpBackward0 saved y. The write changed y and raised
#   its version from 0 to 1; backward compares the versions.
# error: RuntimeError
# root: z
# node: ExpBackward0
# look: ExpBackward0 is marked as stale even before backward is called, with the line that wrote to
#   y.

import torch

# %% wrong
x = torch.tensor([0.0, 1.0], requires_grad=True)
y = x.exp()
z = y * 2
y.add_(1)
z.sum().backward()

# %% right
x = torch.tensor([0.0, 1.0], requires_grad=True)
y = x.exp()
z = y * 2
y = y + 1  # a new tensor; the saved one stays
z.sum().backward()
