# title: Writing in place
# tip: A view shares memory with its tensor. Each write is marked, and earlier values stay as they
#   were.

import torch

# %% code
x = torch.zeros(3, 4)
row = x[1]
row += 1
x[:, 2] = torch.arange(3.0)
row.mul_(10)
total = x.sum()
