# title: Where does the NaN come from?
# tip: One operator makes it, the others pass it on. Press First NaN to go there.

import torch

# %% code
def normalised(x):
    centred = x - x.mean(dim=1, keepdim=True)
    spread = centred.square().mean(dim=1, keepdim=True).sqrt()
    return centred / spread  # a row whose numbers are equal has no spread

x = torch.tensor([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]], requires_grad=True)
scores = normalised(x) @ torch.ones(3, 2)
loss = scores.softmax(dim=1).sum()
