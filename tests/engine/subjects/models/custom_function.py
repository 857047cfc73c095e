"""Regression with autograd functions of our own: a straight-through sign and a fused swish."""

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.utils.data import TensorDataset


class SignSTE(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sign(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x.abs() <= 1)


class Swish(Function):
    @staticmethod
    def forward(ctx, x, beta):
        s = torch.sigmoid(beta * x)
        ctx.save_for_backward(x, s, beta)
        return x * s

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        x, s, beta = ctx.saved_tensors
        ds = x * s * (1 - s)
        grad_x = grad_output * (s + beta * ds)
        grad_beta = None
        if ctx.needs_input_grad[1]:
            grad_beta = (grad_output * x * ds).sum().reshape(beta.shape)
        return grad_x, grad_beta


class BinaryLinear(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, in_features) * 0.5)
        self.scale = nn.Parameter(torch.ones(out_features))

    def forward(self, x):
        return (x @ SignSTE.apply(self.weight).t()) * self.scale


class BinaryNet(nn.Module):
    def __init__(self, width=10):
        super().__init__()
        self.first = BinaryLinear(4, width)
        self.beta = nn.Parameter(torch.tensor(1.5))
        self.second = nn.Linear(width, 1)
        self.frozen = nn.Parameter(torch.full((1,), 0.1), requires_grad=False)

    def forward(self, x):
        return self.second(Swish.apply(self.first(x), self.beta)) + self.frozen


gen = torch.Generator().manual_seed(11)
inputs = torch.randn(40, 4, generator=gen)
targets = inputs[:, :1] * inputs[:, 1:2] - inputs[:, 2:3]
data = TensorDataset(inputs, targets)


if __name__ == "__main__":
    net = BinaryNet()
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(3):
        loss = ((net(inputs) - targets) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(loss.item())
