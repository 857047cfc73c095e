"""Rules that are defined in pieces, at the numbers where two pieces meet, against the engine's own
gradients. Random numbers are never exactly there."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.autograd import BackwardStepper
from engine.autograd.formulas import rule_of

NAN, INF = torch.nan, torch.inf


def V(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64).requires_grad_()


def C(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def image(*numbers: float) -> Tensor:
    return V(*numbers).view(1, 1, 2, -1)


ZERO = (-1.0, -0.0, 0.0, 1.0)
"""Both zeros, and a number to each side."""
TIED = (2.0, 1.0, 2.0, -3.0, -3.0, 2.0)

CORNERS = {
    # limits
    "clamp": ("ClampBackward1", lambda: V(-2, -1, 0, 1, 2).clamp(-1, 1)),
    "clamp, min": ("ClampBackward1", lambda: V(-2, -1, 0).clamp(min=-1)),
    "clamp, max": ("ClampBackward1", lambda: V(0, 1, 2).clamp(max=1)),
    "clamp, equal limits": ("ClampBackward1", lambda: V(0, 1, 2).clamp(1, 1)),
    "clamp, limits crossed": ("ClampBackward1", lambda: V(-2, -1, 0, 1, 2).clamp(1, -1)),
    "clamp, NaN": ("ClampBackward1", lambda: V(NAN, INF, -INF).clamp(-1, 1)),
    "clip": ("ClampBackward1", lambda: V(-2, -1, 0, 1, 2).clip(-1, 1)),
    "clamp_min": ("ClampMinBackward0", lambda: V(-2, -1, 0).clamp_min(-1)),
    "clamp_max": ("ClampMaxBackward0", lambda: V(0, 1, 2).clamp_max(1)),
    "clamp, tensors": (
        "ClampBackward0",
        lambda: torch.clamp(V(-2, -1, 0, 1, 2), V(-1, -1, -1, -1, -1), V(1, 1, 1, 1, 1)),
    ),
    "clamp, equal tensors": (
        "ClampBackward0",
        lambda: torch.clamp(V(0, 1, 2), V(1, 1, 1), V(1, 1, 1)),
    ),
    "clamp, tensors crossed": (
        "ClampBackward0",
        lambda: torch.clamp(V(-2, -1, 0, 1, 2), V(1, 1, 1, 1, 1), V(-1, -1, -1, -1, -1)),
    ),
    "clamp, one tensor below": ("ClampBackward0", lambda: torch.clamp(V(0, 1, 2), min=V(1, 1, 1))),
    "clamp, one tensor above": ("ClampBackward0", lambda: torch.clamp(V(0, 1, 2), max=V(1, 1, 1))),
    "hardtanh": ("HardtanhBackward0", lambda: F.hardtanh(V(-2, -1, 0, 1, 2))),
    "relu6": ("HardtanhBackward0", lambda: F.relu6(V(-1, 0, 3, 6, 7))),
    # activations
    "relu": ("ReluBackward0", lambda: V(*ZERO, NAN).relu()),
    "threshold": ("ThresholdBackward0", lambda: F.threshold(V(0.4, 0.5, 0.6), 0.5, 0.0)),
    "threshold_": (
        "ThresholdBackward1",
        lambda: F.threshold_(V(0.4, 0.5, 0.6).clone(), 0.5, 0.0),
    ),
    "leaky_relu": ("LeakyReluBackward0", lambda: F.leaky_relu(V(*ZERO), 0.2)),
    "leaky_relu_": ("LeakyReluBackward1", lambda: F.leaky_relu_(V(*ZERO).clone(), 0.2)),
    "elu": ("EluBackward0", lambda: F.elu(V(*ZERO), 1.5)),
    "selu": ("EluBackward0", lambda: F.selu(V(*ZERO))),
    "elu_": ("EluBackward1", lambda: F.elu_(V(*ZERO).clone(), 1.5)),
    "celu": ("CeluBackward0", lambda: F.celu(V(*ZERO), 0.5)),
    "hardswish": ("HardswishBackward0", lambda: F.hardswish(V(-4, -3, 0, 3, 4))),
    "hardsigmoid": ("HardsigmoidBackward0", lambda: F.hardsigmoid(V(-4, -3, 0, 3, 4))),
    "softplus": ("SoftplusBackward0", lambda: F.softplus(V(-0.5, 0, 0.5, 1), beta=2, threshold=1)),
    "prelu": ("PreluKernelBackward0", lambda: F.prelu(V(*ZERO), V(0.2))),
    "softshrink": (
        "SoftshrinkBackward0",
        lambda: F.softshrink(V(-0.6, -0.5, 0, 0.5, 0.6), 0.5),
    ),
    "hardshrink": (
        "HardshrinkBackward0",
        lambda: F.hardshrink(V(-0.6, -0.5, 0, 0.5, 0.6), 0.5),
    ),
    "dropout of all": (
        "NativeDropoutBackward0",
        lambda: torch.native_dropout(V(1, 2, 3), 1.0, True)[0],
    ),
    # numbers
    "abs": ("AbsBackward0", lambda: V(*ZERO).abs()),
    "sign": ("SignBackward0", lambda: V(*ZERO).sign()),
    "sgn": ("SgnBackward0", lambda: V(*ZERO).sgn()),
    "floor": ("FloorBackward0", lambda: V(*ZERO).floor()),
    "frac": ("FracBackward0", lambda: V(*ZERO).frac()),
    "round": ("RoundBackward0", lambda: V(-0.5, 0.5, 1.5).round()),
    "nan_to_num": ("NanToNumBackward0", lambda: torch.nan_to_num(V(NAN, INF, -INF, 1))),
    "logit": ("LogitBackward0", lambda: V(-0.1, 0, 0.5, 1, 1.1).logit()),
    "pow, 0": ("PowBackward0", lambda: V(*ZERO) ** 0),
    "pow, 0 at 0": ("PowBackward1", lambda: torch.pow(V(0, 0, 2, 2), V(0, 2, 0, 1))),
    "number to the power": ("PowBackward2", lambda: torch.pow(0.0, V(0, 1, 2))),
    "where": ("WhereBackward0", lambda: torch.where(C(*ZERO) >= 0, V(*ZERO), V(*ZERO))),
    "atan2": ("Atan2Backward0", lambda: torch.atan2(V(0, 0, 1, 0), V(0, 1, 0, -1))),
    "xlog1py": ("SpecialXlog1PyBackward0", lambda: torch.special.xlog1py(V(0, 0), V(-1, 0))),
    "xlogy": ("XlogyBackward0", lambda: torch.xlogy(V(0, 0, 1), V(0, 2, 2))),
    "hypot": ("HypotBackward0", lambda: torch.hypot(V(0, 3), V(4, 0))),
    "copysign": ("CopysignBackward0", lambda: torch.copysign(V(*ZERO), V(1, 1, -1, -1))),
    "sinc": ("SincBackward0", lambda: torch.sinc(V(*ZERO))),
    "fmod": ("FmodBackward1", lambda: torch.fmod(V(-2, 0, 2, 3), V(2, 2, 2, 2))),
    "remainder": ("RemainderBackward1", lambda: torch.remainder(V(-2, 0, 2, 3), V(2, 2, 2, 2))),
    # extremes
    "maximum": ("MaximumBackward0", lambda: torch.maximum(V(1, 2, 3), V(2, 2, 2))),
    "minimum": ("MinimumBackward0", lambda: torch.minimum(V(1, 2, 3), V(2, 2, 2))),
    "fmax": ("FmaxBackward0", lambda: torch.fmax(V(1, 2, 3, 1, NAN), V(2, 2, 2, NAN, 1))),
    "fmin": ("FminBackward0", lambda: torch.fmin(V(1, 2, 3, 1, NAN), V(2, 2, 2, NAN, 1))),
    "max": ("MaxBackward1", lambda: V(*TIED).max()),
    "min": ("MinBackward1", lambda: V(*TIED).min()),
    "max along a dim": ("MaxBackward0", lambda: V(*TIED).view(2, 3).max(1)[0]),
    "min along a dim": ("MinBackward0", lambda: V(*TIED).view(2, 3).min(1)[0]),
    "amax": ("AmaxBackward0", lambda: V(*TIED).view(2, 3).amax(1)),
    "amin": ("AminBackward0", lambda: V(*TIED).view(2, 3).amin((0, 1), keepdim=True)),
    "median": ("MedianBackward0", lambda: V(2, 1, 2, 2, 5).median()),
    "median along a dim": ("MedianBackward1", lambda: V(2, 2, 2, 1, 2, 5).view(2, 3).median(1)[0]),
    "nanmedian": ("NanmedianBackward0", lambda: V(2, 1, NAN, 2, 5).nanmedian()),
    "mode": ("ModeBackward0", lambda: V(*TIED).mode()[0]),
    "kthvalue": ("KthvalueBackward0", lambda: V(*TIED).kthvalue(5)[0]),
    "sort": ("SortBackward0", lambda: V(*TIED).sort()[0]),
    "topk": ("TopkBackward0", lambda: V(*TIED).topk(2)[0]),
    "cummax": ("CummaxBackward0", lambda: V(*TIED).cummax(0)[0]),
    "cummin": ("CumminBackward0", lambda: V(*TIED).cummin(0)[0]),
    # norms
    "norm of zeros": ("LinalgVectorNormBackward0", lambda: V(0, 0).norm()),
    "norm 1": ("LinalgVectorNormBackward0", lambda: V(*ZERO).norm(1)),
    "norm 3 of zeros": ("LinalgVectorNormBackward0", lambda: V(0, 0).norm(3)),
    "largest": ("LinalgVectorNormBackward0", lambda: torch.linalg.vector_norm(V(2, -2, 1), INF)),
    "std of equal numbers": ("StdBackward0", lambda: V(2, 2, 2).std()),
    "std and mean of equal numbers": ("StdMeanBackward0", lambda: torch.std_mean(V(2, 2, 2))),
    "prod with a zero": ("ProdBackward0", lambda: V(2, 0, 3).prod()),
    "prod with two zeros": ("ProdBackward0", lambda: V(2, 0, 0).prod()),
    "largest of zeros": ("LinalgVectorNormBackward0", lambda: V(0, 0).norm(INF)),
    "logsumexp, -inf": ("LogsumexpBackward0", lambda: V(-INF, 0).logsumexp(0)),
    "cdist of equals": (
        "CdistBackward0",
        lambda: torch.cdist(V(1, 2, 3, 4).view(2, 2), V(1, 2, 0, 0).view(2, 2)),
    ),
    "nansum": ("NansumBackward0", lambda: V(2, NAN, 0).nansum()),
    "dist of equals": ("DistBackward0", lambda: V(1, 2).dist(V(1, 2))),
    # losses
    "l1": ("AbsBackward0", lambda: F.l1_loss(V(1, 2, 3), C(2, 2, 2))),
    "smooth_l1": (
        "SmoothL1LossBackward0",
        lambda: F.smooth_l1_loss(V(-1, -0.5, 0, 0.5, 1), V(0, 0, 0, 0, 0), beta=0.5),
    ),
    "huber": (
        "HuberLossBackward0",
        lambda: F.huber_loss(V(-1, -0.5, 0, 0.5, 1), V(0, 0, 0, 0, 0), delta=0.5),
    ),
    "binary cross entropy, sure": (
        "BinaryCrossEntropyBackward0",
        lambda: F.binary_cross_entropy(V(0, 1, 0, 1), V(0, 1, 1, 0)),
    ),
    "hinge embedding": (
        "ClampMinBackward0",
        lambda: F.hinge_embedding_loss(V(0, 1, 2), C(-1, -1, -1)),
    ),
    "margin ranking": (
        "ClampMinBackward0",
        lambda: F.margin_ranking_loss(V(0, 1, 2), V(0, 0, 0), C(1, 1, 1), margin=1),
    ),
    "triplet margin": (
        "ClampMinBackward0",
        lambda: F.triplet_margin_loss(
            V(0).view(1, 1), V(1).view(1, 1), V(2).view(1, 1), margin=1, eps=0
        ),
    ),
    # pooling
    "max_pool1d": (
        "MaxPool2DWithIndicesBackward0",
        lambda: F.max_pool1d(V(*TIED).view(1, 1, 6), 3, 1),
    ),
    "max_pool2d": ("MaxPool2DWithIndicesBackward0", lambda: F.max_pool2d(image(*TIED), 2, 1)),
    "max_pool3d": (
        "MaxPool3DWithIndicesBackward0",
        lambda: F.max_pool3d(V(*[1.0] * 8).view(1, 1, 2, 2, 2), 2),
    ),
    "adaptive_max_pool2d": (
        "AdaptiveMaxPool2DBackward0",
        lambda: F.adaptive_max_pool2d(image(*TIED), (1, 2)),
    ),
}
ATTENTION = "ScaledDotProductFlashAttentionForCpuBackward0"


def attention(queries: int, keys: int, **options: Any) -> Tensor:
    q = torch.linspace(-1, 1, queries * 2, dtype=torch.float64).view(1, 1, queries, 2)
    k, v = (
        torch.linspace(a, 2, keys * 2, dtype=torch.float64).view(1, 1, keys, 2) for a in (-2, 0)
    )
    q, k, v = (t.requires_grad_() for t in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, **options)


CORNERS |= {
    "attention, a mask that is added": (
        ATTENTION,
        lambda: attention(2, 3, attn_mask=C(0, 1, -2, -INF, 0.5, 0).view(2, 3)),
    ),
    "attention, a mask of bools": (
        ATTENTION,
        lambda: attention(2, 3, attn_mask=C(1, 0, 1, 0, 1, 1).view(2, 3) > 0),
    ),
    "attention, causal": (ATTENTION, lambda: attention(3, 3, is_causal=True)),
    "attention, causal, more keys": (ATTENTION, lambda: attention(2, 4, is_causal=True)),
    "attention, a scale": (ATTENTION, lambda: attention(2, 3, scale=0.3)),
}
PLACES = torch.tensor([2, 0])
"""Places that are written over."""
WRITES = {
    "IndexCopyBackward0": lambda x, v: x.index_copy(0, PLACES, v),
    "IndexPutBackward0": lambda x, v: x.index_put((PLACES,), v),
    "ScatterBackward0": lambda x, v: x.scatter(0, PLACES, v),
    "ScatterAddBackward0": lambda x, v: x.scatter_add(0, PLACES, v),
    "IndexAddBackward0": lambda x, v: x.index_add(0, PLACES, v, alpha=3),
    "SliceScatterBackward0": lambda x, v: x.slice_scatter(v, 0, 1, 3),
    "SelectScatterBackward0": lambda x, v: x.select_scatter(v[0], 0, 1),
    "DiagonalScatterBackward0": lambda x, v: x.view(1, 3).diagonal_scatter(v[:1]),
    "CatBackward0": lambda x, v: torch.cat([x, v]),
    "StackBackward0": lambda x, v: torch.stack([x[:2], v]),
    "WhereBackward0": lambda x, v: torch.where(C(1, 0) > 0, x[1:], v),
}
CORNERS |= {
    f"{name}, constant {what}": (name, (lambda w=write, a=x, b=v: w(a(1, 2, 3), b(4, 5))))
    for name, write in WRITES.items()
    for what, x, v in (("part", V, C), ("rest", C, V))
}
"""What is written over, or what is written there, needs no gradient, so its shape is not known."""
IN_FLOAT32 = {"celu", "hardsigmoid", "binary cross entropy, sure"}
"""torch rounds their constants 1 / alpha, 1 / 6 and 1e-12 to float32, whatever the dtype."""


@pytest.mark.parametrize("corner", CORNERS)
def test_the_rule_gives_what_the_engine_gives_at_the_corner(corner):
    name, compute = CORNERS[corner]
    found = compute()
    roots = [found] if isinstance(found, Tensor) else list(found)
    seeds = [torch.arange(1.0, root.numel() + 1).double().view(root.shape) for root in roots]
    stepper = BackwardStepper(roots, seeds)
    met = []
    while (step := stepper.step()) is not None:
        if step.node.name != name:
            continue
        rule = rule_of(step.node, step.incoming)
        assert not rule.general
        for number in rule.inputs:
            ours, theirs = rule.compute(number), step.outgoing[number]
            assert ours is not None
            theirs = torch.zeros_like(ours) if theirs is None else theirs
            rtol = 1e-6 if corner in IN_FLOAT32 else 1e-12
            torch.testing.assert_close(ours, theirs, rtol=rtol, atol=1e-12, equal_nan=True)
            met.append(number)
    assert met, f"{name} is not in the graph"
