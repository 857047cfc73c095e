# title: Matmul + bias + cross entropy
# tip: One linear layer and its loss. The gradient of the logits is softmax minus one-hot; the
#   weight's is xᵀ times that.
# root: loss

import torch

# %% code
x = torch.tensor([[1.0, 2.0]])
W = torch.tensor([[0.1, -0.2, 0.3], [0.4, 0.5, -0.6]], requires_grad=True)
b = torch.zeros(3, requires_grad=True)
logits = x @ W + b
loss = torch.nn.functional.cross_entropy(logits, torch.tensor([2]))
