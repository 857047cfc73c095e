# title: Devices that do not match
# happens: The sum raises: the tensors are on different devices.
# why: An operation runs on one device and reads only that device's memory. Move the model and the
#   batch to the same device.
# error: RuntimeError
# root: h
# node: MulBackward0
# look: Each node shows the device of its result.

import torch

# %% wrong
other = "cuda" if torch.cuda.is_available() else "meta"
w = torch.ones(4, 3, requires_grad=True)
x = torch.ones(4, 3, device=other)
h = w * 2
y = x + h

# %% right
device = "cuda" if torch.cuda.is_available() else "cpu"
w = torch.ones(4, 3, device=device, requires_grad=True)
x = torch.ones(4, 3).to(device)
h = w * 2
y = x + h
