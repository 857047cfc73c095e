# title: Three derivatives of x³ at 3: 27, 18, 6
# tip: Set create_graph in Options, then Start and Run all. Then right-click x under Gradients to
#   step through the gradient's own graph. Do it again for the third derivative.
# root: y

import torch

# %% code
x = torch.tensor(3.0, requires_grad=True)
y = x ** 3
