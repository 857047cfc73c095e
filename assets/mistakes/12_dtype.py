# title: Dtypes that do not match
# happens: The product raises: both must have the same dtype.
# why: NumPy arrays are float64 by default, torch's parameters float32. Elementwise operations
#   convert dtypes; matrix products and layers do not.
# error: RuntimeError
# root: h
# node: MulBackward0
# look: The graph ends with the last operation that ran: the product is not in it.

import torch

# %% wrong
w = torch.ones(3, 2, requires_grad=True)
x = torch.ones(4, 3, dtype=torch.float64)
h = w * 2
y = x @ h

# %% right
w = torch.ones(3, 2, requires_grad=True)
x = torch.ones(4, 3, dtype=torch.float64)
h = w * 2
y = x.float() @ h
