# title: Gradients add up: 6, 12, 18
# tip: Run all, then Another pass, twice: each pass adds its 6 to .grad. zero_grad resets it.
# root: y

import torch

# %% code
x = torch.tensor(3.0, requires_grad=True)
y = x ** 2
