# title: Chain rule with three factors: 75 · 1 · 4 = 300
# tip: The cube gives 3 · 5² = 75, the sum 1, the product 4.
# root: L

import torch

# %% code
x = torch.tensor(1.0, requires_grad=True)
L = (4 * x + 1) ** 3
