# title: A mean: 2x + 1 of two elements
# tip: The mean of n elements gives each element 1/n: here 2 · 1/2 = 1 for each.
# root: m

import torch

# %% code
x = torch.tensor([1.0, 5.0], requires_grad=True)
m = (2 * x + 1).mean()
