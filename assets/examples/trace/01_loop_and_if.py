# title: A model with a loop and an if
# tip: The number of turns of the loop, and the branch taken, depend on the numbers: the graph is
#   built again in each pass (define-by-run). A static graph, as in TensorFlow 1, is declared before
#   there are numbers.

import torch
from torch import nn

# %% code
class Halver(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 4)

    def forward(self, x):
        while x.norm() > 1:
            if x.sum() > 0:
                x = x / 2
            else:
                x = self.mix(x).abs()
        return x

torch.manual_seed(0)
model = Halver()
y = model(torch.tensor([[6.0, -9.0, 4.0, -2.0]]))
loss = y.square().sum()
