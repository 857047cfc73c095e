# title: Gradient descent, written out
# tip: new = old − lr · grad, three times: w goes from 0 towards 2. The update runs under no_grad;
#   otherwise autograd would record it too.

import torch

# %% code
x = torch.tensor([[1.0], [2.0], [3.0]])
target = 2 * x
w = torch.zeros(1, 1, requires_grad=True)
lr = 0.05

@torch.no_grad()
def update(w):
    w -= lr * w.grad
    w.grad = None

for step in range(3):
    loss = (x @ w - target).square().mean()
    loss.backward()
    update(w)
