# title: A Jacobian by hand: [[2, 1], [8, 12]]
# tip: Two functions of two numbers at (1, 2): x² + y and x·y³.
# kind: jacobian
# function: f
# inputs: p

import torch

# %% code
def f(p):
    x, y = p
    return torch.stack((x**2 + y, x * y**3))

p = torch.tensor([1.0, 2.0])
