# title: Used twice: x² + 3x at 2
# tip: Two gradients meet at x and are added: 2x + 3 = 7.
# root: y

import torch

# %% code
x = torch.tensor(2.0, requires_grad=True)
y = x ** 2 + 3 * x
