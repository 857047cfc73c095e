"""What the nodes of an autograd graph do, in a line each."""

from __future__ import annotations

from engine.protocol import GraphNode
from engine.protocol.autograd_snapshots import CutReason

GRAD_FN = (
    "A grad_fn is a node that autograd recorded in forward: it knows the operation's rule and keeps"
    " what the rule needs. Backward runs the nodes from the loss to the parameters."
)

_SAME = "Rearranges the gradient back into the input's shape; no number changes."
_RULES = {
    "accumulate_grad": "Adds the incoming gradient to the leaf's .grad: backward ends here.",
    "addmm": "y = b + x·W: the gradient g gives g·Wᵀ for x, xᵀ·g for W, and g summed over the"
    " batch for b.",
    "mm": "y = a·b: the gradient g gives g·bᵀ for a and aᵀ·g for b.",
    "bmm": "Batched y = a·b: for each batch, g·bᵀ for a and aᵀ·g for b.",
    "matmul": "y = a·b: the gradient g gives g·bᵀ for a and aᵀ·g for b.",
    "convolution": "Correlates g with the weight (flipped) for the input, and the input with g for"
    " the weight; sums g for the bias.",
    "relu": "Lets the gradient through where the output was above zero, and stops it elsewhere.",
    "leaky_relu": "Lets the gradient through where the input was above zero, a fraction elsewhere.",
    "threshold": "Lets the gradient through where the input was above the threshold.",
    "sigmoid": "g · y · (1 - y): small where the output is near 0 or 1, so deep stacks starve.",
    "tanh": "g · (1 - y²): small where the output is near -1 or 1.",
    "gelu": "g times the slope of GELU at the input.",
    "silu": "g times the slope of x·sigmoid(x) at the input.",
    "elu": "g where the input was above zero, g times the exponential elsewhere.",
    "softmax": "y · (g - Σ g·y): raising one probability lowers the others.",
    "log_softmax": "g - softmax(x) · Σ g.",
    "nll_loss": "Puts -1/batch at each sample's class and zero elsewhere.",
    "mse_loss": "2 · (prediction - target) / number of elements.",
    "mul": "Each factor gets the gradient times the other factor.",
    "div": "g / divisor for the dividend, -g · quotient / divisor for the divisor.",
    "add": "Passes the gradient on to both terms, summed where one was broadcast.",
    "sub": "Passes g to the first term and -g to the second.",
    "neg": "Turns the sign of the gradient.",
    "pow": "g times the slope: exponent · x to the power of (exponent - 1).",
    "exp": "g · y: the exponential is its own slope.",
    "log": "g / x.",
    "sqrt": "g / (2 · y).",
    "mean": "Spreads the gradient evenly: each element gets g / number of elements.",
    "sum": "Spreads the gradient: each element gets g.",
    "native_batch_norm": "g through the normalisation of each channel; also for its scale and"
    " shift.",
    "native_layer_norm": "g through the normalisation of each sample; also for its scale and"
    " shift.",
    "native_dropout": "Lets the gradient through where the value was kept, scaled alike.",
    "max_pool2d_with_indices": "Sends each gradient to the place that held the maximum.",
    "avg_pool2d": "Spreads each gradient evenly over its window.",
    "cat": "Cuts the gradient into the pieces that were joined.",
    "embedding": "Adds each gradient to the row of the table that was looked up.",
    "index": "Puts the gradient at the places that were picked, zero elsewhere.",
    "select": "Puts the gradient at the slice that was picked, zero elsewhere.",
    "slice": "Puts the gradient at the part that was taken, zero elsewhere.",
    "clone": "Passes the gradient on as it is.",
    "expand": "Sums the gradient over the dimensions that were expanded.",
    "t": "Transposes the gradient back; no number changes.",
    "transpose": "Swaps the gradient's dimensions back; no number changes.",
    "permute": "Permutes the gradient's dimensions back; no number changes.",
    **dict.fromkeys(("view", "unsafe_view", "reshape", "squeeze", "unsqueeze", "flatten"), _SAME),
}

CUTS: dict[CutReason, str] = {
    "detach": "A .detach() cut it off: what came before counts as a constant.",
    "no_grad": "It was computed under torch.no_grad(), where autograd records nothing.",
    "frozen": "A parameter with requires_grad=False: it is frozen, so it gets no gradient.",
    "input": "Data that never required grad: an input or a target.",
    "integer": "Integers and booleans have no gradient.",
    "unknown": "This input needs no gradient; why was not recorded.",
}
"""Why a gradient goes no further."""


def rule(node: GraphNode) -> str:
    """The node's backward rule in words; g is the gradient that comes in."""
    return _RULES.get(node.op, f"The backward rule of torch's {node.op or node.name}.")
