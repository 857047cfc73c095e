# title: More than one number: backward needs a gradient
# tip: In Options, give the gradient to start with: one number per element of y. Ones give the
#   gradient of the sum.
# root: y

import torch

# %% code
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = x ** 2
