# title: The Jacobian of softmax
# tip: Each output depends on every input: diag(s) - s sᵀ.
# kind: jacobian
# function: lambda z: z.softmax(0)
# inputs: z

import torch

# %% code
z = torch.tensor([2.0, 1.0, 0.0, -1.0])
