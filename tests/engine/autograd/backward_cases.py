"""Graphs of many kinds for stepping. Each case builds, from a fixed seed, roots and the tensors
whose `.grad` is to be compared; built twice, both are equal to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

Built = tuple[list[torch.Tensor], list[torch.Tensor]]
CASES: dict[str, Callable[[], Built]] = {}


def case(build: Callable[[], Any]) -> Callable[[], Built]:
    def built() -> Built:
        torch.manual_seed(0)
        roots, compared = build()
        roots = [roots] if isinstance(roots, torch.Tensor) else list(roots)
        if isinstance(compared, nn.Module):
            compared = list(compared.parameters())
        return roots, list(compared)

    CASES[build.__name__] = built
    return built


@case
def mlp() -> Any:
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 4))
    return F.cross_entropy(net(torch.randn(32, 8)), torch.randint(0, 4, (32,))), net


@case
def broadcasting_and_mixed_dtypes() -> Any:
    a = torch.randn(4, 1, 3, requires_grad=True)
    b = torch.randn(5, 1, dtype=torch.float64, requires_grad=True)
    c = torch.randn((), requires_grad=True)
    return ((a * b + c) ** 2 / (1 + b.abs())).sum(), [a, b, c]


@case
def cnn_with_batch_norm() -> Any:
    net = nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 8, 3),
        nn.BatchNorm2d(8),
        nn.LeakyReLU(0.1, inplace=True),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 3),
    )
    return F.cross_entropy(net(torch.randn(8, 1, 8, 8)), torch.randint(0, 3, (8,))), net


@case
def lstm() -> Any:
    net = nn.LSTM(5, 7, num_layers=2, bidirectional=True, dropout=0.2)
    output, (h, c) = net(torch.randn(6, 3, 5))
    return output.square().mean() + h.sum() * c.mean(), net


@case
def packed_gru() -> Any:
    net = nn.GRU(4, 6)
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(5, 3, 4), torch.tensor([5, 3, 2]))
    output, h = net(packed)
    return output.data.square().sum() + h.sum(), net


@case
def attention() -> Any:
    net = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    return net(torch.randn(2, 5, 8)).square().sum(), net


@case
def scaled_dot_product() -> Any:
    q, k, v = (torch.randn(2, 2, 4, 8, requires_grad=True) for _ in range(3))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).square().sum(), [q, k, v]


@case
def views_and_in_place() -> Any:
    x = torch.randn(4, 6, requires_grad=True)
    y = x.clone()
    y[1:3] *= 2
    row = y[0]
    row.add_(x[3]).mul_(torch.arange(6.0))
    y.t()[2].copy_(x[:, 0])
    z = y.as_strided((3, 3), (2, 1)).expand(2, 3, 3)
    z = z.unfold(2, 2, 1).permute(2, 0, 3, 1).relu()
    return (z * z).sum() + y.view(-1)[5:9].sin().sum(), [x]


class Scaled(torch.autograd.Function):
    """Two outputs, one argument that is not a tensor, one that needs no gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: float, mask: torch.Tensor) -> Any:
        ctx.save_for_backward(x, mask)
        ctx.factor = factor
        return x * factor * mask, x.exp()

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor, h: torch.Tensor) -> Any:
        x, mask = ctx.saved_tensors
        return g * ctx.factor * mask + h * x.exp(), None, None


class NoGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 1

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> None:
        return None


class NotMaterialised(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor | None, h: torch.Tensor | None) -> Any:
        assert h is None
        return g


@case
def custom_function() -> Any:
    x = torch.randn(5, requires_grad=True)
    y, _unused = Scaled.apply(x, 3.0, torch.tensor([1.0, 0, 1, 0, 1]))
    first, _ = NotMaterialised.apply(y.sin())
    return first.sum(), [x]


@case
def none_gradients() -> Any:
    x, w, v = (torch.randn(3, requires_grad=True) for _ in range(3))
    cut = NoGradient.apply(x * w)
    plain, other = Scaled.apply(v, 2.0, torch.ones(3))  # v is reached by None: zeros are made
    return (cut + NoGradient.apply(plain + other)).sum() + (x**2).sum(), [x, w, v]


@case
def checkpoint_without_reentry() -> Any:
    net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Tanh(), nn.Linear(8, 4))
    x = torch.randn(6, 4, requires_grad=True)
    y = checkpoint(net, x, use_reentrant=False)
    return checkpoint(net, y, use_reentrant=False).square().sum(), [x, *net.parameters()]


@case
def checkpoint_with_reentry() -> Any:
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
    x = torch.randn(6, 4, requires_grad=True)
    return checkpoint(net, x, use_reentrant=True).square().sum(), [x, *net.parameters()]


@case
def unbind_split_chunk() -> Any:
    x = torch.randn(6, 4, requires_grad=True)
    a, _, c, *_ = x.unbind(0)
    first, second = (x * 2).split([2, 4])
    left, _ = second.chunk(2, dim=1)
    values, _order = x.sort(dim=0)
    return (a * c).sum() + first.sum() * left.prod() + values[0].sum() + x.topk(2)[0].sum(), [x]


@case
def embedding_dense() -> Any:
    net = nn.Embedding(10, 4, padding_idx=0)
    return net(torch.tensor([[1, 2, 2], [0, 9, 1]])).pow(2).sum(), net


@case
def embedding_sparse() -> Any:
    net = nn.Embedding(10, 4, sparse=True)
    index = torch.tensor([1, 2, 2, 7, 1])
    return net(index).pow(2).sum() + net(index.flip(0)).exp().sum() + net(index[:2]).sum(), net


@case
def autocast_bfloat16() -> Any:
    net = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 4))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = net(torch.randn(16, 8))
    return F.cross_entropy(y.float(), torch.randint(0, 4, (16,))), net


@case
def complex_and_fft() -> Any:
    z = torch.randn(4, 4, dtype=torch.complex64, requires_grad=True)
    x = torch.randn(4, 4, requires_grad=True)
    y = torch.fft.fft2(z * x).conj() @ z
    return y.abs().sum() + torch.view_as_real(z).prod(-1).sum(), [z, x]


def enlarge(leaf: torch.Tensor) -> None:
    assert leaf.grad is not None
    leaf.grad = leaf.grad * 1.5


@case
def tensor_hooks_and_retain_grad() -> Any:
    x = torch.randn(4, requires_grad=True)
    y = x * 3
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    z = y.sin()
    z.grad_fn.register_prehook(lambda grads: (grads[0] + 1,))
    z.grad_fn.register_hook(lambda grad_inputs, _: (grad_inputs[0] * 0.5,))
    x.register_hook(lambda g: g.clamp(-1, 1))
    x.register_post_accumulate_grad_hook(enlarge)
    return (y * z).sum(), [x, y]


@case
def module_backward_hooks() -> Any:
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    net[1].register_full_backward_hook(lambda m, grad_in, grad_out: (grad_in[0] * 2,))
    net[2].register_full_backward_pre_hook(lambda m, grad_out: (grad_out[0] + 1,))
    return net(torch.randn(5, 3, requires_grad=True)).square().sum(), net


@case
def several_roots() -> Any:
    x = torch.randn(3, requires_grad=True)
    y = (x * 2).exp()
    return [y.sum(), (y * x).mean(), y[0], y.sum().sin()], [x]


@case
def leaf_as_root() -> Any:
    x = torch.randn((), requires_grad=True)
    return [x, x * x, x], [x]


@case
def shared_stack_of_leaves() -> Any:
    leaves = [torch.randn(2, requires_grad=True) for _ in range(9)]
    return torch.stack(leaves).square().sum(), leaves


@case
def double_backward() -> Any:
    x = torch.randn(4, requires_grad=True)
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    return (g**2).sum(), [x]


@case
def weight_norm_and_indexing() -> Any:
    net = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))
    y = net(torch.randn(3, 4))
    y = y.index_add(0, torch.tensor([0, 0]), y[[1, 2]]) + torch.einsum("ij,kj->ik", y, y) @ y
    return torch.where(y > 0, y, y * 0.1).cumsum(0).gather(
        1, torch.tensor([[0], [1], [3]])
    ).sum(), net


@case
def saved_tensors_hooks() -> Any:
    x = torch.randn(4, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.double(), lambda t: t.float()):
        y = x.sin() * x
    return y.sum(), [x]


@case
def sparse_matmul() -> Any:
    a = torch.randn(3, 3).relu().to_sparse().requires_grad_()
    b = torch.randn(3, 2, requires_grad=True)
    return torch.sparse.mm(a, b).square().sum(), [a, b]


@case
def linear_algebra() -> Any:
    a = torch.randn(3, 3, requires_grad=True)
    _u, s, _ = torch.linalg.svd(a)
    return s.sum() + torch.linalg.inv(a + 3 * torch.eye(3)).trace() + a.logdet().nan_to_num(), [a]
