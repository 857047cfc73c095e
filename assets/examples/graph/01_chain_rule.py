# title: Chain rule: x → ·2 → +3 → squared
# tip: dL/dz = 2z = 10, dL/dy = 10, dL/dx = 2 · 10 = 20: factor by factor, from L to x.
# root: L

import torch

# %% code
x = torch.tensor(1.0, requires_grad=True)
y = 2 * x
z = y + 3
L = z ** 2
