# title: Backward of more than one number
# happens: backward raises: a gradient can be created implicitly only for scalar outputs.
# why: Backward computes vector · Jacobian. For a scalar the vector is 1; for more numbers you must
#   give it.
# error: RuntimeError
# root: y
# node: PowBackward0
# look: Give a gradient in the options of the backward pass: torch.ones_like(y).

import torch

# %% wrong
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x ** 2
y.backward()

# %% right
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x ** 2
y.backward(torch.ones_like(y))  # the same as y.sum().backward()
