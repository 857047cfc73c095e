# title: A product, squared: (x · w)²
# tip: With y = x · w = 11: dz/dx = 2y w = [66, 88] and dz/dw = 2y x = [22, 44].
# root: z

import torch

# %% code
x = torch.tensor([1.0, 2.0], requires_grad=True)
w = torch.tensor([3.0, 4.0], requires_grad=True)
y = x @ w
z = y ** 2
