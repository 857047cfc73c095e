# title: Cuts: detach() and no_grad()
# tip: Two of the three paths to x are cut. The third gives x the gradient 1 instead of 9.
# root: y

import torch

# %% code
x = torch.tensor(2.0, requires_grad=True)
with torch.no_grad():
    a = 3 * x
y = x + a + (5 * x).detach()
