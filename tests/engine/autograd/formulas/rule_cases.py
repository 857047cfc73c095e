"""One small computation for each kind of backward node, on CPU and in float64. Called with a seed
set, each returns the tensor (or tensors) whose graph has the node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

Case = Callable[[], Any]


def R(*shape: int) -> Tensor:
    """Numbers in 0.1..1.1 that require grad, as the result of an operation, so that they can be
    written in place."""
    return (torch.rand(*shape, dtype=torch.float64) + 0.1).requires_grad_()


def S(*shape: int) -> Tensor:
    """Numbers of both signs that require grad."""
    return torch.randn(*shape, dtype=torch.float64).requires_grad_()


def D(*shape: int) -> Tensor:
    """Numbers without gradient."""
    return torch.rand(*shape, dtype=torch.float64)


def L(*numbers: int) -> Tensor:
    return torch.tensor(numbers)


I34 = torch.tensor([[0, 1, 2, 0], [1, 0, 2, 2], [0, 0, 1, 1]])
MASK = torch.tensor([[True, False, True, True], [False] * 4, [True, True, False, False]])
aten = torch.ops.aten

CASES: dict[str, Case] = {
    # arithmetic
    "AddBackward0": lambda: torch.add(S(3, 4), S(4), alpha=3),
    "SubBackward0": lambda: torch.sub(S(3, 1), S(3, 4), alpha=2),
    "RsubBackward0": lambda: torch.rsub(S(3, 4), S(4)),
    "RsubBackward1": lambda: 2 - S(3, 4),
    "MulBackward0": lambda: S(3, 4) * S(3, 1),
    "MulBackward1": lambda: aten.mul.Scalar(S(3), 2.5),
    "DivBackward0": lambda: S(3, 4) / R(4),
    "DivBackward1": lambda: aten.div.Scalar(S(3), 2.5),
    "NegBackward0": lambda: -S(3),
    "PowBackward0": lambda: S(3, 4) ** 3,
    "PowBackward1": lambda: R(3, 4) ** S(4),
    "PowBackward2": lambda: 2.5 ** S(3),
    "AddcmulBackward0": lambda: torch.addcmul(S(3, 4), S(4), S(3, 1), value=2),
    "AddcdivBackward0": lambda: torch.addcdiv(S(3, 4), S(4), R(3, 1), value=2),
    "LerpBackward0": lambda: torch.lerp(S(3), S(3), 0.3),
    "LerpBackward1": lambda: torch.lerp(S(3, 4), S(3, 4), R(4)),
    "FmodBackward0": lambda: torch.fmod(S(3), 0.4),
    "FmodBackward1": lambda: torch.fmod(S(3, 4), R(4)),
    "RemainderBackward0": lambda: S(3) % 0.4,
    "RemainderBackward1": lambda: torch.remainder(S(3, 4), R(4)),
    "MaximumBackward0": lambda: torch.maximum(S(3, 4), S(4)),
    "MinimumBackward0": lambda: torch.minimum(S(3, 4), S(4)),
    "FmaxBackward0": lambda: torch.fmax(S(3, 4), S(4)),
    "FminBackward0": lambda: torch.fmin(S(3, 4), S(4)),
    "WhereBackward0": lambda: torch.where(MASK, S(3, 4), S(4)),
    "MaskedFillBackward0": lambda: S(3, 4).masked_fill(MASK, 2.0),
    "MaskedFillBackward1": lambda: S(3, 4).masked_fill(MASK, S(1).sum()),
    "ClampBackward0": lambda: torch.clamp(S(3, 4), -R(4), R(3, 4)),
    "ClampBackward1": lambda: S(3, 4).clamp(min=-0.5),
    "ClampMinBackward0": lambda: S(3, 4).clamp_min(-0.5),
    "ClampMinBackward1": lambda: S(3, 4).clamp_min(R(1, 4)),
    "ClampMaxBackward1": lambda: S(3, 4).clamp_max(R(3, 1)),
    "ClampMaxBackward0": lambda: S(3, 4).clamp_max(0.5),
    "HypotBackward0": lambda: torch.hypot(S(3), S(3)),
    "Atan2Backward0": lambda: torch.atan2(S(3), S(3)),
    "XlogyBackward0": lambda: torch.xlogy(S(3), R(3)),
    "LogaddexpBackward0": lambda: torch.logaddexp(S(3, 4), S(4)),
    "CopysignBackward0": lambda: torch.copysign(S(5), S(5)),
    # functions
    "ExpBackward0": lambda: S(3).exp(),
    "Exp2Backward0": lambda: S(3).exp2(),
    "Expm1Backward0": lambda: S(3).expm1(),
    "LogBackward0": lambda: R(3).log(),
    "Log2Backward0": lambda: R(3).log2(),
    "Log10Backward0": lambda: R(3).log10(),
    "Log1PBackward0": lambda: R(3).log1p(),
    "SqrtBackward0": lambda: R(3).sqrt(),
    "RsqrtBackward0": lambda: R(3).rsqrt(),
    "ReciprocalBackward0": lambda: S(3).reciprocal(),
    "SinBackward0": lambda: S(3).sin(),
    "CosBackward0": lambda: S(3).cos(),
    "TanBackward0": lambda: S(3).tan(),
    "AsinBackward0": lambda: (R(3) * 0.5).asin(),
    "AcosBackward0": lambda: (R(3) * 0.5).acos(),
    "AtanBackward0": lambda: S(3).atan(),
    "SinhBackward0": lambda: S(3).sinh(),
    "CoshBackward0": lambda: S(3).cosh(),
    "AsinhBackward0": lambda: S(3).asinh(),
    "AcoshBackward0": lambda: (R(3) + 1).acosh(),
    "AtanhBackward0": lambda: (R(3) * 0.5).atanh(),
    "TanhBackward0": lambda: S(3).tanh(),
    "SigmoidBackward0": lambda: S(3).sigmoid(),
    "ErfBackward0": lambda: S(3).erf(),
    "ErfcBackward0": lambda: S(3).erfc(),
    "ErfinvBackward0": lambda: (R(3) * 0.5).erfinv(),
    "LgammaBackward0": lambda: R(3).lgamma(),
    "DigammaBackward0": lambda: R(3).digamma(),
    "I0Backward0": lambda: torch.special.i0(S(3)),
    "SpecialEntrBackward0": lambda: torch.special.entr(R(3)),
    "FracBackward0": lambda: S(3).frac(),
    "NanToNumBackward0": lambda: torch.nan_to_num(S(3)),
    "Deg2RadBackward0": lambda: S(3).deg2rad(),
    "Rad2DegBackward0": lambda: S(3).rad2deg(),
    "AbsBackward0": lambda: S(3).abs(),
    "SignBackward0": lambda: S(3).sign(),
    "FloorBackward0": lambda: S(3).floor(),
    "CeilBackward0": lambda: S(3).ceil(),
    "RoundBackward0": lambda: S(3).round(),
    "RoundBackward1": lambda: S(3).round(decimals=1),
    "TruncBackward0": lambda: S(3).trunc(),
    "ZeroBackward0": lambda: S(3).clone().zero_(),
    "FillBackward0": lambda: torch.fill(S(3), 2.0),
    "FillBackward1": lambda: torch.fill(S(3), S(1).sum()),
    "FillBackward2": lambda: S(3).clone().fill_(2.0),
    "FillBackward3": lambda: S(3).clone().fill_(S(1).sum()),
    "SgnBackward0": lambda: S(3).sgn(),
    "LogitBackward0": lambda: (R(3) * 0.5).logit(),
    # activations
    "ReluBackward0": lambda: S(3, 4).relu(),
    "ThresholdBackward0": lambda: F.threshold(S(3, 4), 0.2, 0.0),
    "ThresholdBackward1": lambda: F.threshold_(S(3, 4).clone(), 0.2, 0.0),
    "LeakyReluBackward0": lambda: F.leaky_relu(S(3, 4), 0.2),
    "LeakyReluBackward1": lambda: F.leaky_relu_(S(3, 4).clone(), 0.2),
    "EluBackward0": lambda: F.selu(S(3, 4)),
    "EluBackward1": lambda: F.elu_(S(3, 4).clone(), 1.5),
    "CeluBackward0": lambda: F.celu(S(3, 4), 0.7),
    "GeluBackward0": lambda: F.gelu(S(3, 4)) + F.gelu(S(3, 4), approximate="tanh"),
    "SiluBackward0": lambda: F.silu(S(3, 4)),
    "MishBackward0": lambda: F.mish(S(3, 4)),
    "HardswishBackward0": lambda: F.hardswish(S(3, 4) * 4),
    "HardtanhBackward0": lambda: F.hardtanh(S(3, 4)),
    "HardsigmoidBackward0": lambda: F.hardsigmoid(S(3, 4) * 4),
    "SoftplusBackward0": lambda: F.softplus(S(3, 4), beta=2, threshold=1),
    "LogSigmoidBackward0": lambda: F.logsigmoid(S(3, 4)),
    "PreluKernelBackward0": lambda: F.prelu(S(2, 3, 4), R(3)),
    "SoftshrinkBackward0": lambda: F.softshrink(S(3, 4)),
    "HardshrinkBackward0": lambda: F.hardshrink(S(3, 4)),
    "RreluWithNoiseBackward0": lambda: F.rrelu(S(3, 4), training=True),
    "NativeDropoutBackward0": lambda: torch.native_dropout(S(3, 4), 0.4, True)[0],
    "SoftmaxBackward0": lambda: S(3, 4).softmax(-1),
    "SafeSoftmaxBackward0": lambda: aten._safe_softmax(S(3, 4), 0),
    "LogSoftmaxBackward0": lambda: S(3, 4).log_softmax(-1),
    "GluBackward0": lambda: F.glu(S(3, 4)),
    # reductions
    "SumBackward0": lambda: S(3, 4).sum(),
    "SumBackward1": lambda: S(3, 4, 2).sum((0, -1)),
    "NansumBackward0": lambda: torch.where(MASK, S(3, 4), torch.nan).nansum(1),
    "MeanBackward0": lambda: S(3, 4).mean(),
    "MeanBackward1": lambda: S(3, 4).mean(-1, keepdim=True),
    "ProdBackward0": lambda: S(2, 3).prod(),
    "ProdBackward1": lambda: (S(3, 4) * MASK).prod(-2),
    "VarBackward0": lambda: S(3, 4).var((0, 1), correction=0),
    "StdBackward0": lambda: S(3, 4).std(-1),
    "VarMeanBackward0": lambda: torch.var_mean(S(3, 4), 1),
    "StdMeanBackward0": lambda: torch.std_mean(S(3, 4)),
    "NormBackward0": lambda: aten.norm.Scalar(S(3, 4), 2),
    "NormBackward1": lambda: aten.norm.ScalarOpt_dim(S(3, 4), 3, [1]),
    "LinalgVectorNormBackward0": lambda: (
        S(3, 4).norm() + S(3, 4).norm(1) + torch.linalg.vector_norm(S(3, 4), torch.inf, 1).sum()
    ),
    "MaxBackward1": lambda: S(3, 4).round().max(),
    "MinBackward1": lambda: S(3, 4).round().min(),
    "MedianBackward0": lambda: S(3, 4).median(),
    "AmaxBackward0": lambda: S(3, 4).round().amax(1),
    "AminBackward0": lambda: S(3, 4).round().amin((0, 1), keepdim=True),
    "LogsumexpBackward0": lambda: S(3, 4).logsumexp(-1),
    "CumsumBackward0": lambda: S(3, 4).cumsum(-1),
    "CumprodBackward0": lambda: S(3, 4).cumprod(0),
    "LogcumsumexpBackward0": lambda: S(3, 4).logcumsumexp(-1),
    # products
    "MmBackward0": lambda: S(3, 4) @ S(4, 5),
    "BmmBackward0": lambda: torch.bmm(S(2, 3, 4), S(2, 4, 5)),
    "MvBackward0": lambda: torch.mv(S(3, 4), S(4)),
    "DotBackward0": lambda: torch.dot(S(4), S(4)),
    "VdotBackward0": lambda: torch.vdot(S(4), S(4)),
    "AddmmBackward0": lambda: torch.addmm(S(5), S(3, 4), S(4, 5), beta=2, alpha=3),
    "BaddbmmBackward0": lambda: torch.baddbmm(S(3, 5), S(2, 3, 4), S(2, 4, 5), alpha=3),
    "AddbmmBackward0": lambda: torch.addbmm(S(3, 5), S(2, 3, 4), S(2, 4, 5), beta=2),
    "AddmvBackward0": lambda: torch.addmv(S(3), S(3, 4), S(4), alpha=2),
    "AddrBackward0": lambda: torch.addr(S(3, 4), S(3), S(4), alpha=2),
    "ConvolutionBackward0": lambda: (
        F.conv2d(S(2, 4, 5, 5), S(6, 2, 3, 3), S(6), 2, 1, groups=2).sum()
        + F.conv_transpose2d(S(2, 4, 3, 3), S(4, 3, 3, 3), S(6), 2, 1, 1, groups=2).square().sum()
    ),
    # views
    "ViewBackward0": lambda: S(3, 4).view(12),
    "UnsafeViewBackward0": lambda: S(3, 4).t().reshape(12),
    "ReshapeAliasBackward0": lambda: aten._reshape_alias(S(3, 4), (4, 3), (3, 1)),
    "SqueezeBackward0": lambda: S(3, 1, 4).squeeze(),
    "SqueezeBackward1": lambda: S(3, 1, 4).squeeze(-2),
    "SqueezeBackward2": lambda: S(3, 1, 4, 1).squeeze((1, 3)),
    "UnsqueezeBackward0": lambda: S(3, 4).unsqueeze(-1),
    "CloneBackward0": lambda: S(3).clone(),
    "ToCopyBackward0": lambda: S(3).float(),
    "AliasBackward0": lambda: aten.alias(S(3)),
    "TBackward0": lambda: S(3, 4).t(),
    "TransposeBackward0": lambda: S(2, 3, 4).transpose(0, -1),
    "PermuteBackward0": lambda: S(2, 3, 4).permute(2, 0, -2),
    "ExpandBackward0": lambda: S(3, 1).expand(2, 3, 4),
    "RepeatBackward0": lambda: S(3, 2).repeat(2, 1, 2),
    "SelectBackward0": lambda: S(3, 4)[:, -1],
    "SliceBackward0": lambda: S(5, 4)[1::2],
    "SplitBackward0": lambda: S(3, 5).split(2, -1),
    "UnsafeSplitBackward0": lambda: S(3, 4).unsafe_split(3, 1),
    "SplitWithSizesBackward0": lambda: S(3, 4).split([1, 3], 1),
    "UnsafeSplitWithSizesBackward0": lambda: S(3, 4).unsafe_split_with_sizes([1, 3], 1),
    "UnbindBackward0": lambda: S(3, 4).unbind(1)[:2],
    "UnfoldBackward0": lambda: S(3, 6).unfold(-1, 3, 2),
    "FlipBackward0": lambda: S(3, 4).flip(-1),
    "RollBackward0": lambda: S(3, 4).roll((1, 2), (0, 1)),
    "Rot90Backward0": lambda: S(3, 4).rot90(),
    "TrilBackward0": lambda: S(3, 4).tril(-1),
    "TriuBackward0": lambda: S(3, 4).triu(1),
    "DiagonalBackward0": lambda: S(3, 4).diagonal(1),
    "DiagonalBackward0_copy": lambda: torch.diag(S(3, 4)),
    "DiagEmbedBackward0": lambda: torch.diag_embed(S(3)),
    "TraceBackward0": lambda: S(3, 4).trace(),
    "PixelShuffleBackward0": lambda: F.pixel_shuffle(S(1, 4, 2, 2), 2),
    "PixelUnshuffleBackward0": lambda: F.pixel_unshuffle(S(1, 1, 4, 4), 2),
    "ChannelShuffleBackward0": lambda: F.channel_shuffle(S(1, 4, 2, 2), 2),
    "ConstantPadNdBackward0": lambda: F.pad(S(3, 4), (1, 2, -1, 1), value=3.0),
    "ReflectionPad1DBackward0": lambda: F.pad(S(2, 3, 4), (1, 2), mode="reflect"),
    "ReflectionPad2DBackward0": lambda: F.pad(S(1, 2, 4, 4), (1, 2, 0, 1), mode="reflect"),
    "ReflectionPad3DBackward0": lambda: F.pad(S(1, 1, 3, 3, 3), (1,) * 6, mode="reflect"),
    "ReplicationPad1DBackward0": lambda: F.pad(S(2, 3, 4), (1, 2), mode="replicate"),
    "ReplicationPad2DBackward0": lambda: F.pad(S(1, 2, 3, 3), (2, 1, 0, 1), mode="replicate"),
    "ReplicationPad3DBackward0": lambda: F.pad(S(1, 1, 2, 2, 2), (1,) * 6, mode="replicate"),
    "CatBackward0": lambda: torch.cat([S(3, 2), D(3, 1), S(3, 4)], -1),
    "StackBackward0": lambda: torch.stack([S(3), D(3), S(3)], -1),
    "SliceScatterBackward0": lambda: torch.slice_scatter(S(5, 4), S(2, 4), 0, 1, 5, 2),
    "SelectScatterBackward0": lambda: torch.select_scatter(S(3, 4), S(3), 1, -1),
    "DiagonalScatterBackward0": lambda: torch.diagonal_scatter(S(3, 4), S(3)),
    "CopyBackwards": lambda: S(3, 4).clone().copy_(S(4)),
    "AsStridedBackward0": lambda: S(3, 4).as_strided((3, 3), (2, 1)),
    "CopySlices": lambda: written_rows(),
    # picks
    "IndexBackward0": lambda: S(3, 4)[:, L(0, 0, 2)] + S(3, 4)[L(0, 1, 0), None, L(0, 1, 0)],
    "IndexSelectBackward0": lambda: S(3, 4).index_select(-1, L(0, 0, 2)),
    "GatherBackward0": lambda: S(3, 4).gather(-1, I34),
    "TakeBackward0": lambda: S(3, 4).take(L(0, 5, 5)),
    "MaskedSelectBackward0": lambda: S(3, 4).masked_select(MASK),
    "MaxBackward0": lambda: S(3, 4).max(-1)[0],
    "MinBackward0": lambda: S(3, 4).min(0, keepdim=True)[0],
    "MedianBackward1": lambda: S(3, 4).median(1)[0],
    "NanmedianBackward1": lambda: S(3, 4).nanmedian(1)[0],
    "ModeBackward0": lambda: S(3, 4).mode(1)[0],
    "KthvalueBackward0": lambda: S(3, 4).kthvalue(2, 1)[0],
    "SortBackward0": lambda: S(3, 4).sort(-1)[0],
    "SortBackward1": lambda: S(3, 4).sort(dim=0, stable=True)[0],
    "TopkBackward0": lambda: S(3, 4).topk(2)[0],
    "CummaxBackward0": lambda: S(3, 4).cummax(1)[0],
    "CumminBackward0": lambda: S(3, 4).cummin(1)[0],
    "IndexPutBackward0": lambda: (
        S(3, 4).index_put((L(0, 2),), S(4))
        + S(3, 4).index_put((L(0, 0),), S(2, 4), accumulate=True)
    ),
    "ScatterBackward0": lambda: S(3, 4).scatter(1, I34[:, :1], S(3, 1)),
    "IndexCopyBackward0": lambda: S(3, 4).index_copy(1, L(3, 0), S(3, 2)),
    "ScatterAddBackward0": lambda: S(3, 4).scatter_add(1, I34, S(3, 4)),
    "IndexAddBackward0": lambda: S(3, 4).index_add(0, L(1, 1), S(2, 4), alpha=2),
    "ScatterBackward1": lambda: S(3, 4).scatter(1, I34[:, :2], 1.0),
    "IndexFillBackward0": lambda: S(3, 4).index_fill(0, L(0, 2), 1.0),
    "EmbeddingBackward0": lambda: (
        F.embedding(I34, S(5, 2), padding_idx=1)
        + F.embedding(I34, S(5, 2), padding_idx=2, scale_grad_by_freq=True)
    ),
    # norms
    "NativeBatchNormBackward0": lambda: (
        F.batch_norm(S(4, 3, 2, 2), D(3), D(3), R(3), S(3), True)
        + F.batch_norm(S(4, 3, 2, 2), D(3), D(3) + 0.1, R(3), S(3), False)
        + F.batch_norm(S(4, 3, 2, 2), D(3), D(3), training=True)
    ),
    "NativeLayerNormBackward0": lambda: (
        F.layer_norm(S(2, 3, 4), (3, 4), R(3, 4), S(3, 4)) + F.layer_norm(S(2, 3, 4), (4,))
    ),
    "NativeGroupNormBackward0": lambda: F.group_norm(S(2, 4, 3), 2, R(4), S(4)),
    "WeightNormInterfaceBackward0": lambda: torch._weight_norm_interface(S(3, 4), R(3, 1))[0],
    # losses
    "MseLossBackward0": lambda: F.mse_loss(S(3, 4), S(3, 4)),
    "SmoothL1LossBackward0": lambda: F.smooth_l1_loss(S(3, 4), S(3, 4), beta=0.7),
    "HuberLossBackward0": lambda: F.huber_loss(S(3, 4), S(3, 4), delta=0.7, reduction="sum"),
    "BinaryCrossEntropyBackward0": lambda: F.binary_cross_entropy(
        S(3, 4).sigmoid(), D(3, 4).requires_grad_(), D(4)
    ),
    "BinaryCrossEntropyWithLogitsBackward0": lambda: F.binary_cross_entropy_with_logits(
        S(3, 4), D(3, 4).requires_grad_(), D(3, 4), pos_weight=D(4) + 1
    ),
    "SoftMarginLossBackward0": lambda: F.soft_margin_loss(S(3, 4), D(3, 4).round() * 2 - 1),
    "NllLossBackward0": lambda: (
        F.nll_loss(S(3, 4), L(0, 3, 1), D(4), ignore_index=3)
        + F.nll_loss(S(3, 4), L(0, 3, 1), reduction="none").sum()
        + F.nll_loss(S(4), torch.tensor(2))
    ),
    "NllLoss2DBackward0": lambda: F.nll_loss(S(2, 3, 2, 2), I34[:2].reshape(2, 2, 2) % 3),
    # pooling
    "MaxPool2DWithIndicesBackward0": lambda: F.max_pool2d(S(2, 3, 5, 5), 3, 2, 1),
    "MaxPool3DWithIndicesBackward0": lambda: F.max_pool3d(S(1, 2, 4, 4, 4), 2),
    "AdaptiveMaxPool2DBackward0": lambda: F.adaptive_max_pool2d(S(1, 2, 5, 5), 2),
    "AdaptiveMaxPool3DBackward0": lambda: F.adaptive_max_pool3d(S(1, 2, 3, 3, 3), 2),
    "FractionalMaxPool2DBackward0": lambda: F.fractional_max_pool2d(S(1, 2, 5, 5), 2, 3),
    "FractionalMaxPool3DBackward0": lambda: F.fractional_max_pool3d(S(1, 2, 4, 4, 4), 2, 2),
    "AvgPool2DBackward0": lambda: F.avg_pool2d(S(1, 2, 5, 5), 3, 2, 1, count_include_pad=False),
    "AvgPool3DBackward0": lambda: F.avg_pool3d(S(1, 2, 4, 4, 4), 2),
    "AdaptiveAvgPool2DBackward0": lambda: F.adaptive_avg_pool2d(S(1, 2, 5, 5), 2),
    "AdaptiveAvgPool3DBackward0": lambda: F.adaptive_avg_pool3d(S(1, 2, 3, 3, 3), 2),
    "UpsampleNearest1DBackward0": lambda: F.interpolate(S(1, 2, 3), 7),
    "UpsampleNearest2DBackward0": lambda: F.interpolate(S(1, 2, 3, 3), scale_factor=2),
    "UpsampleNearest3DBackward0": lambda: F.interpolate(S(1, 1, 2, 2, 2), scale_factor=2),
    "UpsampleLinear1DBackward0": lambda: F.interpolate(S(1, 2, 3), 7, mode="linear"),
    "UpsampleBilinear2DBackward0": lambda: F.interpolate(
        S(1, 2, 3, 3), (5, 4), mode="bilinear", align_corners=True
    ),
    "UpsampleTrilinear3DBackward0": lambda: F.interpolate(
        S(1, 1, 2, 2, 2), scale_factor=2, mode="trilinear"
    ),
    "UpsampleBicubic2DBackward0": lambda: F.interpolate(S(1, 1, 3, 3), 5, mode="bicubic"),
    "Im2ColBackward0": lambda: F.unfold(S(1, 2, 4, 4), 3, padding=1, stride=2),
    "Col2ImBackward0": lambda: F.fold(S(1, 8, 9), (4, 4), 2),
    # matrices and complex parts
    "LinalgInvExBackward0": lambda: torch.linalg.inv_ex(S(2, 3, 3))[0],
    "LinalgDetBackward0": lambda: torch.linalg.det(S(2, 3, 3)),
    "LinalgSolveExBackward0": lambda: (
        torch.linalg.solve(S(3, 3), S(3)).sum() + torch.linalg.solve(S(3, 3), S(3, 2)).sum()
    ),
    "LinalgCrossBackward0": lambda: torch.linalg.cross(S(2, 3), S(2, 3)),
    "DistBackward0": lambda: S(3, 4).dist(S(3, 4)),
    "CdistBackward0": lambda: torch.cdist(S(3, 4), S(2, 4)),
    "SpecialXlog1PyBackward0": lambda: torch.special.xlog1py(S(3), R(3)),
    "Logaddexp2Backward0": lambda: torch.logaddexp2(S(3), S(3)),
    "SincBackward0": lambda: torch.sinc(S(3)),
    "NanmedianBackward0": lambda: S(3, 4).nanmedian(),
    "ViewAsRealBackward0": lambda: torch.view_as_real(torch.complex(S(3), S(3))),
    "ViewAsComplexBackward0": lambda: torch.view_as_complex(S(3, 2)).abs(),
    "ComplexBackward0": lambda: torch.view_as_real(torch.complex(S(3), S(3))),
    "ConjBackward0": lambda: torch.view_as_real(torch.complex(S(3), S(3)).conj() * 1j),
    "ConjPhysicalBackward0": lambda: torch.view_as_real(
        torch.conj_physical(torch.complex(S(3), S(3)))
    ),
    # attention
    "ScaledDotProductFlashAttentionForCpuBackward0": lambda: F.scaled_dot_product_attention(
        S(1, 2, 4, 8), S(1, 2, 4, 8), S(1, 2, 4, 8), is_causal=True
    ),
}


def written_rows() -> Tensor:
    y = S(3, 4).clone()
    y[1:].mul_(S(4))
    return y
