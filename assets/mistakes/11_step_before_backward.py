# title: optimizer.step() between forward and backward
# happens: The second backward raises: a weight has been modified by an inplace operation.
# why: step() writes to the weights in place. The second graph had saved them before that.
# error: RuntimeError
# root: second
# node: AddmmBackward0
# look: AddmmBackward0 of the last layer saved a view of its weight, which is stale.

import torch
from torch import nn

# %% wrong
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
first = net(torch.ones(4, 2)).mean()
second = net(torch.zeros(4, 2)).mean()
first.backward()
optimizer.step()
second.backward()

# %% right
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
first = net(torch.ones(4, 2)).mean()
second = net(torch.zeros(4, 2)).mean()
(first + second).backward()
optimizer.step()
