# title: More than one number: backward needs a gradient
# tip: Options hold the gradient to start with, one number for each of y's: ones give the sum's.
# root: y

import torch

# %% code
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x ** 2
