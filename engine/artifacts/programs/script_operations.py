"""The operations of torch whose shapes are followed in a program of a file.

Others are left out: some of them crash or hang in torch for arguments that a hostile file may have.
"""

from __future__ import annotations

from functools import cache

import torch

_OF_TORCH = """
_convolution _native_multi_head_attention abs acos adaptive_avg_pool1d adaptive_avg_pool2d
adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d add add_ addbmm
addcdiv addcmul addmm amax amin aminmax any argmax argmin argsort asin atan atan2 avg_pool1d
avg_pool2d avg_pool3d baddbmm batch_norm bernoulli bilinear bitwise_and bitwise_not bitwise_or
bitwise_xor bmm broadcast_to cat cdist ceil celu celu_ channel_shuffle chunk clamp clamp_ clamp_max
clamp_min clone col2im concat constant_pad_nd contiguous conv1d conv2d conv3d conv_transpose1d
conv_transpose2d conv_transpose3d convolution cos cosh cosine_similarity cross cumprod cumsum
detach diag_embed diagonal div div_ dot dropout dropout_ einsum elu elu_ embedding embedding_bag
empty_like eq erf exp exp_ expand expand_as expm1 feature_dropout fill_ flatten flip floor floor_
floor_divide fmod frac full_like gather ge gelu ger glu grid_sampler group_norm gru gru_cell gt
hardshrink hardsigmoid hardsigmoid_ hardswish hardswish_ hardtanh hardtanh_ hstack im2col index
index_put index_put_ index_select inner instance_norm isfinite isinf isnan kthvalue layer_norm le
leaky_relu leaky_relu_ lerp linalg_matrix_norm linalg_norm linalg_vector_norm linear log log10
log1p log2 log_sigmoid log_softmax logaddexp logical_and logical_not logical_or logical_xor
logsumexp lstm lstm_cell lt masked_fill masked_fill_ matmul max max_pool1d max_pool2d max_pool3d
maximum mean median min minimum mish mish_ mm movedim mul mul_ mv narrow native_group_norm
native_layer_norm ne neg neg_ new_empty new_full new_ones new_zeros norm numpy_T ones_like outer
pad permute pixel_shuffle pixel_unshuffle pow pow_ prelu prod rand_like randn_like ravel reciprocal
reflection_pad1d reflection_pad2d relu relu6 relu_ remainder repeat repeat_interleave
replication_pad1d replication_pad2d reshape reshape_as rms_norm rnn_relu rnn_relu_cell rnn_tanh
rnn_tanh_cell roll round rrelu rsqrt rsub scaled_dot_product_attention scatter scatter_ scatter_add
select selu selu_ sigmoid sigmoid_ sign silu silu_ sin sinh slice softmax softplus softshrink sort
sqrt sqrt_ square squeeze squeeze_ stack std std_mean sub sub_ sum sum_to_size swapaxes swapdims t
take_along_dim tan tanh tanh_ threshold threshold_ tile topk transpose transpose_ tril triu
true_divide trunc type_as unbind unflatten unfold unsqueeze unsqueeze_ upsample_bicubic2d
upsample_bilinear2d upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d
var var_mean vdot view view_as vstack where zero_ zeros_like
"""
FOLLOWED = frozenset(_OF_TORCH.split())

CREATE = frozenset(
    ["arange", "empty", "full", "linspace", "ones", "rand", "randn", "scalar_tensor", "zeros"]
)
"""Operations that make a tensor of none."""

DTYPES = {
    0: torch.uint8,
    1: torch.int8,
    2: torch.int16,
    3: torch.int32,
    4: torch.int64,
    5: torch.float16,
    6: torch.float32,
    7: torch.float64,
    9: torch.complex64,
    10: torch.complex128,
    11: torch.bool,
    15: torch.bfloat16,
}
"""dtypes by the numbers that programs have for them (c10/core/ScalarType.h). torch does not check
such a number: another one may crash it."""


@cache
def dtype_places(op: str) -> frozenset[int]:
    """Which arguments of an operation may be a dtype."""
    return frozenset(
        place
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{op}")
        for place, argument in enumerate(schema.arguments)
        if argument.name == "dtype" and not argument.kwarg_only
    )
