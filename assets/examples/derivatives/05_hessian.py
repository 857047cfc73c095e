# title: The Hessian of a valley
# tip: Rosenbrock's function: steep across, flat along.
# kind: hessian
# function: rosenbrock
# inputs: p

import torch

# %% code
def rosenbrock(p):
    x, y = p
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2

p = torch.tensor([1.0, 1.0])
