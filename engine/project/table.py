"""The catalogue's hand-written rows: what to call a block, where to find it, what it is for.

Parameters are not written here: they come from torch (`signatures.json`). A row only says what
torch's signature leaves open: starting values (`initial`), and corrections (`override`).
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from .kinds import DatasetKind, Param, Port

X = (Port("input", "the tensor to work on"),)
Y = (Port("output", "the result"),)
TWO = (Port("input", "the left tensor"), Port("other", "the right tensor"))
STATE = "state"

# Bounds that hold for a parameter of this name wherever it appears.
BOUNDS: dict[str, tuple[float | None, float | None]] = {
    **dict.fromkeys(
        (
            *("in_features", "in1_features", "in2_features", "out_features", "in_channels"),
            *("out_channels", "kernel_size", "stride", "dilation", "groups", "output_size"),
            *("num_features", "num_groups", "num_channels", "normalized_shape", "num_parameters"),
            *("num_embeddings", "embedding_dim", "input_size", "hidden_size", "num_layers"),
            *("embed_dim", "num_heads", "d_model", "nhead", "dim_feedforward", "kdim", "vdim"),
            *("size", "scale_factor", "divisor_override"),
        ),
        (1, None),
    ),
    **dict.fromkeys(
        ("padding", "output_padding", "eps", "lr", "weight_decay", "layer_norm_eps", "proj_size"),
        (0, None),
    ),
    **dict.fromkeys(("p", "dropout", "betas", "alpha", "label_smoothing", "momentum"), (0, 1)),
}


class Row(Struct, frozen=True):
    """See BlockKind; `schema` names the ATen overload whose arguments a function block takes."""

    key: str
    title: str
    group: str
    icon: str
    summary: str
    stem: str
    torch_name: str = ""
    call: Literal["module", "function", "method", "input", "output", "loss"] = "module"
    inputs: tuple[Port, ...] = X
    outputs: tuple[Port, ...] = Y
    initial: dict[str, Any] = {}
    override: dict[str, dict[str, Any]] = {}
    omit: tuple[str, ...] = ()
    extra: tuple[Param, ...] = ()
    schema: str = ""
    keywords: tuple[str, ...] = ()
    variadic: bool = False


def _nn(name: str, group: str, icon: str, stem: str, summary: str, **more: Any) -> Row:
    title = more.pop("title", name)
    return Row(f"nn.{name}", title, group, icon, summary, stem, f"torch.nn.{name}", **more)


def _function(
    name: str, title: str, group: str, icon: str, stem: str, summary: str, **more: Any
) -> Row:
    full = f"torch.{name}"
    return Row(full, title, group, icon, summary, stem, full, "function", **more)


_DTYPES = ("float32", "float64", "int64")
_REDUCTION = {"reduction": {"type": "choice", "choices": ("mean", "sum")}}
_PADDING = {"padding": {"choices": ("valid", "same")}}
_ALPHA = {"minimum": None, "maximum": None, "doc": "What the second tensor is multiplied by."}
_DIM = {
    "required": True,
    "optional": False,
    "doc": "The dimension or dimensions to reduce, such as 1 or (2, 3); 0 is the batch.",
}
_PAIR = {"in_channels": 1, "out_channels": 8, "kernel_size": 3}
_RECURRENT = {"input_size": 8, "hidden_size": 32, "batch_first": True}
_SEQUENCE = Port("input", "a sequence: (batch, steps, features) with batch_first")
_OUT = Port("output", "the last layer's hidden state at every step")
_HIDDEN = Port("h_n", "the hidden state after the last step, of each layer")
_HIDDEN_IN = Port("h_0", "the hidden state to start from; zeros when open", True)

ROWS: tuple[Row, ...] = (
    # -- the model's ends
    Row(
        "Input",
        "Input",
        "Ends",
        "mdi6.import",
        "Where a batch of samples enters the model: every sample has this shape.",
        "x",
        "torch.Tensor",
        "input",
        inputs=(),
        outputs=(Port("x", "a batch of samples: (batch, *shape)"),),
        extra=(
            Param(
                "shape",
                "shape",
                required=True,
                initial=(1, 8, 8),
                minimum=1,
                doc="Shape of one sample, without the batch: (1, 8, 8) for an 8 by 8 grey image.",
            ),
            Param(
                "dtype",
                "dtype",
                default="float32",
                choices=_DTYPES,
                doc="Type of the elements: float32 for measurements, int64 for indices.",
            ),
        ),
        keywords=("placeholder", "data", "start", "batch"),
    ),
    Row(
        "Output",
        "Output",
        "Ends",
        "mdi6.export",
        "What the model returns; the loss compares it with the target.",
        "output",
        "return",
        "output",
        inputs=(Port("x", "the model's prediction"),),
        outputs=(),
        keywords=("return", "prediction", "end"),
    ),
    # -- linear
    _nn(
        "Linear",
        "Linear",
        "mdi6.matrix",
        "linear",
        "Weighs all input features and adds a bias: y = x A^T + b, a fully connected layer.",
        initial={"in_features": 64, "out_features": 64},
        keywords=("dense", "fully connected", "affine"),
    ),
    _nn(
        "Bilinear",
        "Linear",
        "mdi6.vector-combine",
        "bilinear",
        "Multiplies two inputs with each other through a learned matrix for each output feature.",
        inputs=(Port("input1", "the first tensor"), Port("input2", "the second tensor")),
        initial={"in1_features": 32, "in2_features": 32, "out_features": 32},
    ),
    _nn(
        "Identity",
        "Linear",
        "mdi6.equal",
        "identity",
        "Passes its input on unchanged: a place to look at, or a stand-in for a layer.",
        keywords=("noop", "pass"),
    ),
    # -- convolution
    _nn(
        "Conv1d",
        "Convolution",
        "mdi6.chart-bell-curve-cumulative",
        "conv",
        "Slides small learned filters along a signal: (batch, channels, length).",
        initial=_PAIR,
        override=_PADDING,
        keywords=("convolution", "signal", "audio"),
    ),
    _nn(
        "Conv2d",
        "Convolution",
        "mdi6.grid",
        "conv",
        "Slides small learned filters over an image: (batch, channels, height, width).",
        initial=_PAIR,
        override=_PADDING,
        keywords=("convolution", "image", "cnn", "filter"),
    ),
    _nn(
        "ConvTranspose2d",
        "Convolution",
        "mdi6.grid-large",
        "deconv",
        "A convolution run backwards: makes images larger, with learned filters.",
        initial={"in_channels": 8, "out_channels": 8, "kernel_size": 2, "stride": 2},
        override={
            "padding": {"doc": "Trims the output: takes this many rows off every side, and more."}
        },
        omit=("padding_mode",),
        keywords=("deconvolution", "upsampling", "decoder"),
    ),
    _nn(
        "Upsample",
        "Convolution",
        "mdi6.arrow-expand-all",
        "upsample",
        "Makes images larger by repeating or interpolating pixels; nothing to learn.",
        initial={"scale_factor": 2.0},
        override={
            "size": {"type": "ints", "optional": True},
            "scale_factor": {"type": "float", "minimum": 0},
            "mode": {
                "type": "choice",
                "choices": ("nearest", "linear", "bilinear", "bicubic", "trilinear"),
            },
        },
        omit=("recompute_scale_factor",),
        keywords=("resize", "interpolate"),
    ),
    # -- pooling
    _nn(
        "MaxPool1d",
        "Pooling",
        "mdi6.arrow-collapse-horizontal",
        "pool",
        "Keeps the largest value of each stretch of a signal.",
        initial={"kernel_size": 2},
    ),
    _nn(
        "MaxPool2d",
        "Pooling",
        "mdi6.arrow-collapse-all",
        "pool",
        "Keeps the largest value of each patch of an image: halves its size with kernel_size 2.",
        initial={"kernel_size": 2},
        keywords=("downsample",),
    ),
    _nn(
        "AvgPool1d",
        "Pooling",
        "mdi6.chart-timeline-variant",
        "pool",
        "Averages each stretch of a signal.",
        initial={"kernel_size": 2},
    ),
    _nn(
        "AvgPool2d",
        "Pooling",
        "mdi6.blur",
        "pool",
        "Averages each patch of an image.",
        initial={"kernel_size": 2},
        keywords=("downsample", "mean"),
    ),
    _nn(
        "AdaptiveAvgPool2d",
        "Pooling",
        "mdi6.crop-square",
        "pool",
        "Averages an image of any size down to the size asked for.",
        initial={"output_size": 1},
        keywords=("global average pooling",),
    ),
    _nn(
        "AdaptiveMaxPool2d",
        "Pooling",
        "mdi6.crop-free",
        "pool",
        "Takes maxima of an image of any size down to the size asked for.",
        initial={"output_size": 1},
        keywords=("global max pooling",),
    ),
    # -- normalisation
    _nn(
        "BatchNorm1d",
        "Normalisation",
        "mdi6.chart-bell-curve",
        "norm",
        "Shifts and scales each feature to mean 0 and variance 1 over the batch.",
        initial={"num_features": 64},
        keywords=("batch normalization",),
    ),
    _nn(
        "BatchNorm2d",
        "Normalisation",
        "mdi6.chart-gantt",
        "norm",
        "Shifts and scales each channel of an image to mean 0 and variance 1 over the batch.",
        initial={"num_features": 8},
        keywords=("batch normalization",),
    ),
    _nn(
        "LayerNorm",
        "Normalisation",
        "mdi6.tune-vertical",
        "norm",
        "Shifts and scales each sample's features to mean 0 and variance 1.",
        initial={"normalized_shape": 64},
        keywords=("layer normalization", "transformer"),
    ),
    _nn(
        "GroupNorm",
        "Normalisation",
        "mdi6.format-list-group",
        "norm",
        "Normalises groups of channels within each sample; does not depend on the batch.",
        initial={"num_groups": 2, "num_channels": 8},
        keywords=("group normalization",),
    ),
    _nn(
        "RMSNorm",
        "Normalisation",
        "mdi6.math-norm",
        "norm",
        "Scales each sample's features to a root mean square of 1; as LayerNorm without shift.",
        initial={"normalized_shape": 64},
        keywords=("root mean square", "llama"),
    ),
    # -- regularisation
    _nn(
        "Dropout",
        "Regularisation",
        "mdi6.dice-5-outline",
        "dropout",
        "In training, sets random elements to zero so that no feature is relied on alone.",
        keywords=("regularization", "noise"),
    ),
    _nn(
        "Dropout2d",
        "Regularisation",
        "mdi6.layers-off-outline",
        "dropout",
        "In training, sets whole random channels of an image to zero.",
        keywords=("regularization", "noise"),
    ),
    _nn(
        "AlphaDropout",
        "Regularisation",
        "mdi6.dice-multiple-outline",
        "dropout",
        "Dropout that keeps mean and variance; made for use with SELU.",
        keywords=("selu", "self normalizing"),
    ),
    # -- activation
    _nn(
        "ReLU",
        "Activation",
        "mdi6.chart-line-variant",
        "relu",
        "Keeps positive values and sets negative ones to 0: max(0, x).",
        keywords=("rectifier", "nonlinearity"),
    ),
    _nn(
        "LeakyReLU",
        "Activation",
        "mdi6.trending-up",
        "relu",
        "As ReLU, but negative values keep a small slope, so that their gradient is not zero.",
    ),
    _nn(
        "PReLU",
        "Activation",
        "mdi6.slope-uphill",
        "relu",
        "As LeakyReLU, with the slope for negative values learned.",
        override={"init": {"type": "float"}},
    ),
    _nn(
        "ELU",
        "Activation",
        "mdi6.chart-areaspline-variant",
        "elu",
        "As ReLU, but negative values bend smoothly towards -alpha.",
        override={"alpha": {"maximum": None}},
    ),
    _nn(
        "SELU",
        "Activation",
        "mdi6.chart-areaspline",
        "selu",
        "A scaled ELU that keeps activations near mean 0 and variance 1.",
    ),
    _nn(
        "GELU",
        "Activation",
        "mdi6.chart-timeline-variant-shimmer",
        "gelu",
        "A smooth ReLU, weighing x by the chance that a normal variable is below it.",
        override={"approximate": {"type": "choice", "choices": ("none", "tanh")}},
        keywords=("transformer",),
    ),
    _nn(
        "SiLU",
        "Activation",
        "mdi6.wave",
        "silu",
        "A smooth ReLU: x * sigmoid(x), also called swish.",
        keywords=("swish",),
    ),
    _nn(
        "Mish",
        "Activation",
        "mdi6.wave-undercurrent",
        "mish",
        "A smooth ReLU that dips below zero: x * tanh(softplus(x)).",
    ),
    _nn(
        "Sigmoid",
        "Activation",
        "mdi6.wave-arrow-up",
        "sigmoid",
        "Squeezes every value into 0 to 1: 1 / (1 + exp(-x)).",
        keywords=("logistic", "probability"),
    ),
    _nn(
        "Tanh",
        "Activation",
        "mdi6.sine-wave",
        "tanh",
        "Squeezes every value into -1 to 1.",
        keywords=("hyperbolic tangent",),
    ),
    _nn(
        "Softplus",
        "Activation",
        "mdi6.chart-line",
        "softplus",
        "A smooth ReLU that is always positive: log(1 + exp(x)).",
    ),
    _nn(
        "Hardswish",
        "Activation",
        "mdi6.chart-line-stacked",
        "hardswish",
        "A cheap version of SiLU built of straight lines and a parabola.",
    ),
    _nn(
        "Softmax",
        "Activation",
        "mdi6.percent",
        "softmax",
        "Turns scores into probabilities that sum to 1 along a dimension.",
        initial={"dim": -1},
        override={"dim": {"required": True, "optional": False}},
        keywords=("probability", "attention"),
    ),
    _nn(
        "LogSoftmax",
        "Activation",
        "mdi6.math-log",
        "log_softmax",
        "The logarithm of softmax, computed without overflow.",
        initial={"dim": -1},
        override={"dim": {"required": True, "optional": False}},
    ),
    _function(
        "softmax",
        "softmax (function)",
        "Activation",
        "mdi6.percent-outline",
        "softmax",
        "Softmax as a plain function: no block of its own in the model's state.",
        schema="softmax.int",
        initial={"dim": -1},
        override={"dim": {"doc": "The dimension along which the probabilities sum to 1."}},
        keywords=("probability",),
    ),
    # -- shape
    _nn(
        "Flatten",
        "Shape",
        "mdi6.arrow-collapse-vertical",
        "flatten",
        "Lays all dimensions but the batch end to end: (batch, 16, 4, 4) becomes (batch, 256).",
        keywords=("reshape", "view"),
    ),
    _nn(
        "Unflatten",
        "Shape",
        "mdi6.arrow-expand-vertical",
        "unflatten",
        "Splits one dimension into several: the way back from Flatten.",
        initial={"dim": 1, "unflattened_size": (1, 8, 8)},
        override={"dim": {"type": "int"}, "unflattened_size": {"type": "shape"}},
    ),
    Row(
        "Tensor.reshape",
        "Reshape",
        "Shape",
        "mdi6.resize",
        "Gives each sample a new shape with the same elements; the batch stays as it is.",
        "reshape",
        "torch.Tensor.reshape",
        "method",
        schema="reshape",
        initial={"shape": (8, 8)},
        override={
            "shape": {"doc": "The new shape of one sample, without the batch; -1 for what is left."}
        },
        keywords=("view",),
    ),
    _function(
        "permute",
        "Permute",
        "Shape",
        "mdi6.axis-arrow",
        "permute",
        "Puts the dimensions in another order, without moving data: batch is dimension 0.",
        schema="permute",
        initial={"dims": (0, 2, 1)},
    ),
    _function(
        "transpose",
        "Transpose",
        "Shape",
        "mdi6.swap-horizontal",
        "transpose",
        "Swaps two dimensions.",
        schema="transpose.int",
        initial={"dim0": 1, "dim1": 2},
    ),
    _function(
        "squeeze",
        "Squeeze",
        "Shape",
        "mdi6.minus-box-outline",
        "squeeze",
        "Removes a dimension of size 1: (batch, 1, 8, 8) becomes (batch, 8, 8).",
        schema="squeeze.dim",
        initial={"dim": 1},
    ),
    _function(
        "unsqueeze",
        "Unsqueeze",
        "Shape",
        "mdi6.plus-box-outline",
        "unsqueeze",
        "Adds a dimension of size 1: (batch, 8, 8) becomes (batch, 1, 8, 8).",
        schema="unsqueeze",
        initial={"dim": 1},
    ),
    _function(
        "select",
        "Select",
        "Shape",
        "mdi6.format-list-numbered",
        "select",
        "Takes one entry along a dimension, such as the last step of a sequence: x[:, -1].",
        schema="select.int",
        initial={"dim": 1, "index": -1},
        keywords=("last step", "index", "slice"),
    ),
    # -- sequence
    _nn(
        "Embedding",
        "Sequence",
        "mdi6.table-row",
        "embedding",
        "Looks up a learned vector for each index, such as a word's number.",
        inputs=(Port("input", "indices: an integer tensor"),),
        initial={"num_embeddings": 100, "embedding_dim": 16},
        keywords=("lookup", "token", "word"),
    ),
    _nn(
        "LSTM",
        "Sequence",
        "mdi6.repeat-variant",
        "lstm",
        "Reads a sequence step by step, keeping a long and a short memory.",
        inputs=(
            _SEQUENCE,
            Port("h_0", _HIDDEN_IN.doc, True, STATE),
            Port("c_0", "the cell state to start from; wire it with h_0", True, STATE),
        ),
        outputs=(
            _OUT,
            Port("h_n", _HIDDEN.doc, pack=STATE),
            Port("c_n", "the cell state after the last step, of each layer", pack=STATE),
        ),
        initial=_RECURRENT,
        keywords=("recurrent", "rnn", "time series"),
    ),
    _nn(
        "GRU",
        "Sequence",
        "mdi6.repeat",
        "gru",
        "Reads a sequence step by step with gates that decide what to keep; simpler than LSTM.",
        inputs=(_SEQUENCE, _HIDDEN_IN),
        outputs=(_OUT, _HIDDEN),
        initial=_RECURRENT,
        keywords=("recurrent", "rnn", "time series"),
    ),
    _nn(
        "RNN",
        "Sequence",
        "mdi6.sync",
        "rnn",
        "The simplest recurrent layer: h = tanh(W x + U h), step by step.",
        inputs=(_SEQUENCE, _HIDDEN_IN),
        outputs=(_OUT, _HIDDEN),
        initial=_RECURRENT,
        override={"nonlinearity": {"type": "choice", "choices": ("tanh", "relu")}},
        keywords=("recurrent", "elman"),
    ),
    _nn(
        "MultiheadAttention",
        "Sequence",
        "mdi6.eye-outline",
        "attention",
        "Lets every step of a sequence look at every other; wire one tensor to all three inputs "
        "for self-attention.",
        inputs=(
            Port("query", "what asks: (batch, steps, features) with batch_first"),
            Port("key", "what is asked"),
            Port("value", "what is answered"),
        ),
        outputs=(
            Port("attn_output", "the answers, one for each step of query"),
            Port("attn_output_weights", "how much each query step looked at each key step"),
        ),
        initial={"embed_dim": 16, "num_heads": 2, "batch_first": True},
        keywords=("transformer", "self-attention", "mha"),
    ),
    _nn(
        "TransformerEncoderLayer",
        "Sequence",
        "mdi6.transit-connection-variant",
        "encoder",
        "Self-attention and a small network on every step, each with residual and LayerNorm.",
        inputs=(Port("src", "a sequence: (batch, steps, features) with batch_first"),),
        initial={"d_model": 16, "nhead": 2, "dim_feedforward": 64, "batch_first": True},
        override={"activation": {"type": "choice", "default": "relu", "choices": ("relu", "gelu")}},
        keywords=("attention", "bert"),
    ),
    # -- combine
    Row(
        "residual",
        "Residual add",
        "Combine",
        "mdi6.call-merge",
        "Adds what some blocks made to what they got: x + f(x), a shortcut for the gradient.",
        "residual",
        "operator.add",
        "function",
        inputs=(
            Port("x", "what the blocks on the way made"),
            Port("skip", "what they got: the shortcut"),
        ),
        keywords=("skip connection", "resnet", "shortcut"),
    ),
    _function(
        "add",
        "Add",
        "Combine",
        "mdi6.plus",
        "add",
        "Adds two tensors element by element; sizes of 1 are stretched (broadcast).",
        schema="add.Tensor",
        inputs=TWO,
        override={"alpha": _ALPHA},
    ),
    _function(
        "sub",
        "Subtract",
        "Combine",
        "mdi6.minus",
        "sub",
        "Subtracts the second tensor from the first, element by element.",
        schema="sub.Tensor",
        inputs=TWO,
        override={"alpha": _ALPHA},
        keywords=("minus",),
    ),
    _function(
        "mul",
        "Multiply",
        "Combine",
        "mdi6.close",
        "mul",
        "Multiplies two tensors element by element.",
        schema="mul.Tensor",
        inputs=TWO,
        keywords=("times", "gate"),
    ),
    _function(
        "matmul",
        "Matrix product",
        "Combine",
        "mdi6.matrix",
        "matmul",
        "Multiplies matrices (the last two dimensions): the last size of the first must be the "
        "second to last of the second.",
        schema="matmul",
        inputs=TWO,
        keywords=("dot product", "bmm", "@"),
    ),
    _function(
        "cat",
        "Concatenate",
        "Combine",
        "mdi6.set-merge",
        "cat",
        "Joins tensors end to end along a dimension; all other sizes must agree.",
        schema="cat",
        inputs=(Port("tensor", "one of the tensors to join", pack="tensors"),),
        initial={"dim": 1},
        variadic=True,
        keywords=("concat", "join"),
    ),
    _function(
        "stack",
        "Stack",
        "Combine",
        "mdi6.layers-plus",
        "stack",
        "Puts tensors of one shape on top of each other along a new dimension.",
        schema="stack",
        inputs=(Port("tensor", "one of the tensors to stack", pack="tensors"),),
        initial={"dim": 1},
        variadic=True,
    ),
    # -- reduce
    _function(
        "mean",
        "Mean",
        "Reduce",
        "mdi6.approximately-equal",
        "mean",
        "Averages over one or more dimensions.",
        schema="mean.dim",
        initial={"dim": 1},
        override={"dim": _DIM},
        keywords=("average", "pool"),
    ),
    _function(
        "sum",
        "Sum",
        "Reduce",
        "mdi6.sigma",
        "sum",
        "Adds up over one or more dimensions.",
        schema="sum.dim_IntList",
        initial={"dim": 1},
        override={"dim": _DIM},
    ),
    _function(
        "amax",
        "Maximum",
        "Reduce",
        "mdi6.arrow-up-bold-outline",
        "amax",
        "Keeps the largest value over one or more dimensions.",
        schema="amax",
        initial={"dim": 1},
        override={"dim": _DIM},
        keywords=("max",),
    ),
    # -- loss
    _nn(
        "CrossEntropyLoss",
        "Loss",
        "mdi6.target",
        "loss",
        "How far raw scores (no softmax before) are from the right class; the target comes from "
        "the data set.",
        title="Cross-entropy loss",
        call="loss",
        inputs=(Port("input", "scores, one for each class: (batch, classes)"),),
        outputs=(),
        override=_REDUCTION,
        keywords=("classification", "softmax"),
    ),
    _nn(
        "MSELoss",
        "Loss",
        "mdi6.target-variant",
        "loss",
        "The mean squared difference to the target; for classes, a 1 at the right class and "
        "0 elsewhere.",
        title="Mean squared error loss",
        call="loss",
        inputs=(Port("input", "the prediction: (batch, classes)"),),
        outputs=(),
        override=_REDUCTION,
        keywords=("regression", "l2"),
    ),
)

INPUTS = Param(
    "inputs", "int", default=2, minimum=2, maximum=16, doc="How many tensors to take (2 to 16)."
)

OPTIMIZERS: tuple[str, ...] = ("optim.SGD", "optim.Adam", "optim.AdamW", "optim.RMSprop")

_SAMPLES = Param("samples", "int", 1000, minimum=50, maximum=20_000, doc="Number of points.")
_NOISE = Param(
    "noise", "float", 0.1, minimum=0, maximum=1, doc="Standard deviation of the points' scatter."
)
_SEED = Param("seed", "int", 0, minimum=0, doc="Seed of the random points.")

DATASETS: tuple[DatasetKind, ...] = (
    DatasetKind(
        "digits",
        "Digits",
        "1,797 real handwritten digits, 8 by 8 pixels, scaled to 0..1 (scikit-learn).",
        (1, 8, 8),
        10,
    ),
    DatasetKind(
        "moons",
        "Moons",
        "Two interleaved half circles in the plane.",
        (2,),
        2,
        (_SAMPLES, _NOISE, _SEED),
    ),
    DatasetKind(
        "circles",
        "Circles",
        "A small circle inside a large one.",
        (2,),
        2,
        (
            _SAMPLES,
            _NOISE,
            Param(
                "factor",
                "float",
                0.5,
                minimum=0,
                maximum=0.99,
                doc="Radius of the inner circle; the outer one's is 1.",
            ),
            _SEED,
        ),
    ),
    DatasetKind(
        "spirals",
        "Spirals",
        "Two spirals wound around each other: the hardest of the three.",
        (2,),
        2,
        (
            _SAMPLES,
            _NOISE,
            Param("turns", "float", 1.5, minimum=0.25, maximum=5, doc="Turns of each spiral."),
            _SEED,
        ),
    ),
)
