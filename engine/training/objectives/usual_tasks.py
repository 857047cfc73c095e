"""The usual tasks: what a prediction and a target fit, and the lines that compare them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ...tensors.made_by import made_by
from .batch_parts import Input, Parts, as_dtype
from .batches import tensors_in

Task = tuple[str, list[str]]
"""Its name, and the lines of source after the prediction."""

MANY_CLASSES = 10
_MAIN = ("logits", "out", "prediction", "predictions", "output")
"""The keys and attributes under which a prediction of several parts has its main one."""
_SIGMOID, _SOFTMAX = "SigmoidBackward0", "SoftmaxBackward0"
_LOG_SOFTMAX = "LogSoftmaxBackward0"
_IGNORED = -100
"""The class that torch's losses ignore."""


def task_of(prediction: Any, parts: Parts) -> tuple[str, Task] | None:
    """What takes the main tensor out of the prediction in source ("" for the prediction itself),
    and the task; None if no usual one fits."""
    if (own := _own_loss(prediction)) is not None:
        return "", own
    if isinstance(prediction, tuple | list):
        several = _pairs(prediction, parts.target) or _variational(prediction, parts.inputs)
        if several is not None:
            return "", several
    for source, main in main_tensors(prediction):
        task = _with_target(main, parts) or _without_target(main, parts.inputs)
        if task is not None:
            return source, task
    return None


def _own_loss(prediction: Any) -> Task | None:
    if isinstance(prediction, Tensor):
        if prediction.is_floating_point() and not prediction.ndim:
            return "a model that returns its loss", ["return prediction"]
        return None
    name, loss = "a model with its own loss", None
    if isinstance(getattr(prediction, "loss", None), Tensor):
        loss = "prediction.loss"
    elif isinstance(prediction, Mapping) and isinstance(prediction.get("loss"), Tensor):
        loss = 'prediction["loss"]'
    elif isinstance(prediction, tuple | list):
        found = [n for n, p in enumerate(prediction) if isinstance(p, Tensor) and not p.ndim]
        loss = f"prediction[{found[0]}]" if len(found) == 1 else None
    return None if loss is None else (name, [f"return {loss}"])


def main_tensors(prediction: Any) -> Iterator[tuple[str, Tensor]]:
    """The tensor that is compared with the target, if the prediction has one such."""
    if isinstance(prediction, Tensor):
        yield "", prediction
        return
    for name in _MAIN:
        if isinstance(found := getattr(prediction, name, None), Tensor):
            yield f".{name}", found
            return
    if isinstance(prediction, Mapping):
        tensors = {key: value for key, value in prediction.items() if isinstance(value, Tensor)}
        key = next((name for name in _MAIN if name in tensors), None)
        key = next(iter(tensors)) if key is None and len(tensors) == 1 else key
        if isinstance(key, str):
            yield f'["{key}"]', tensors[key]
    elif isinstance(prediction, tuple | list) and prediction:
        first, *others = prediction  # as of an LSTM: the output and its state
        shapes = [other.shape for other in others if isinstance(other, Tensor)]
        if isinstance(first, Tensor) and len(shapes) < 2 and first.shape not in shapes:
            yield "[0]", first


# -- with a target -------------------------------------------------------------------------------


def _with_target(prediction: Tensor, parts: Parts) -> Task | None:
    y, p = parts.target, prediction
    if not isinstance(y, Tensor) or y.is_complex() or not p.is_floating_point():
        return None
    x = parts.inputs[0].value if parts.inputs else None
    return _of_classes(p, y, x) or _of_numbers(p, y)


def _of_classes(p: Tensor, y: Tensor, x: Any) -> Task | None:
    made = made_by(p)
    for change, z in _class_numbers(p, y, made):
        by_dim_1 = p.ndim == z.ndim + 1 and p.shape[1] > 1
        by_dim_1 = by_dim_1 and p.shape[0] == z.shape[0] and p.shape[2:] == z.shape[1:]
        by_last = z.ndim > 1 and p.shape[:-1] == z.shape and p.shape[-1] > 1
        if by_last and isinstance(x, Tensor) and x.shape == z.shape:  # one token, one prediction
            by_dim_1 = False
        classes = p.shape[1 if by_dim_1 else -1]
        if not (by_dim_1 or by_last) or (z.is_floating_point() and not _are_classes(z, classes)):
            continue
        if z.ndim == 1 and _is_again(p, x) and 4 * (int(z.max()) + 1) <= classes:
            continue  # an autoencoder of labelled data
        change = change if z.dtype == torch.int64 else f"{change}.long()"
        lines = [f"y = y{change}"] if change else []
        if not by_dim_1:
            return "language model", [*lines, *_tokens(made, bool((z == _IGNORED).any()))]
        if z.ndim > 1:
            found = ["found = prediction.argmax(1)", *_overlapping(classes)]
            return "segmentation", [*lines, f"loss = {_class_loss(made)}", *found]
        loss = f"loss = {_class_loss(made)}"
        if made == _SIGMOID:  # each class by itself
            one_hot = f"F.one_hot(y, {classes}){as_dtype(p.dtype)}"
            loss = f"loss = F.binary_cross_entropy(prediction, {one_hot})"
        return "classification", [*lines, loss, *_ranked(classes)]
    return None


def _class_numbers(p: Tensor, y: Tensor, made: str) -> Iterator[tuple[str, Tensor]]:
    """How the target may become numbers of classes: the change in source, and the result."""
    yield "", y
    for dim in (-1, 1):
        if y.ndim > 1 and y.shape[dim] == 1:
            yield f".squeeze({dim})", y.squeeze(dim)
        elif p.shape == y.shape and y.ndim > 1 and made != _SIGMOID and _is_one_hot(y, dim):
            yield f".argmax({dim})", y.int().argmax(dim)


def _are_classes(y: Tensor, classes: int) -> bool:
    return bool(((y == y.round()) & (y >= 0) & (y < classes)).all())


def _is_one_hot(y: Tensor, dim: int) -> bool:
    return _are_bits(y) and bool((y.sum(dim) == 1).all())


def _are_bits(y: Tensor) -> bool:
    return bool(((y == 0) | (y == 1)).all())


def _of_numbers(p: Tensor, y: Tensor) -> Task | None:
    """One number of the prediction for each of the target."""
    found = joined(p, y)
    if found is None:
        return None
    of_p, of_y = found
    shape = p.shape if of_y or not of_p else y.shape
    of_y = of_y if y.dtype == p.dtype else f"{of_y}{as_dtype(p.dtype)}"
    lines = [f"prediction = prediction{of_p}"] if of_p else []
    lines += [f"y = y{of_y}"] if of_y else []
    is_sigmoid = made_by(p) in (_SIGMOID, _SOFTMAX)
    has_both = is_sigmoid or not y.is_floating_point() or bool(y.any() and not y.all())
    if not (_are_bits(y) and has_both):
        return "regression", [*lines, *_regression(len(shape))]
    lines.append(
        "loss = F.binary_cross_entropy(prediction, y)"
        if is_sigmoid
        else "loss = F.binary_cross_entropy_with_logits(prediction, y)"
    )
    found = "(prediction > 0.5)" if is_sigmoid else "(prediction > 0)"
    if len(shape) > 2:
        return "binary segmentation", [*lines, f"found = {found[1:-1]}", *_overlapping(2)]
    many = len(shape) == 2 and shape[1] > 1 and not of_p
    name = "multi-label classification" if many else "binary classification"
    return name, [*lines, _with_accuracy(found)]


def joined(p: Tensor, y: Tensor) -> tuple[str, str] | None:
    """The changes in source that give the prediction and the target one shape."""
    if p.shape == y.shape:
        return "", ""
    for dim in (-1, 1):
        if p.ndim == y.ndim + 1 > 1 and p.squeeze(dim).shape == y.shape:
            return f".squeeze({dim})", ""
        if y.ndim == p.ndim + 1 > 1 and y.squeeze(dim).shape == p.shape:
            return "", f".squeeze({dim})"
    return None


def _regression(ndim: int) -> list[str]:
    loss = "loss = F.mse_loss(prediction, y)"
    if ndim > 2:
        return [loss, 'return {"loss": loss, "RMSE": loss.detach().sqrt()}']
    update = "r2.update(prediction.detach(), y)"
    return [loss, update, 'return {"loss": loss, "RMSE": loss.detach().sqrt(), "R2": r2}']


def _pairs(prediction: Sequence[Any], y: Any) -> Task | None:
    """Two embeddings (B, D), which are alike where y (B,) is 1 and unlike where it is 0."""
    parts = list(tensors_in(prediction))
    if len(parts) != 2 or parts[0].shape != parts[1].shape or not isinstance(y, Tensor):
        return None
    if y.shape != parts[0].shape[:1] or not _are_bits(y):
        return None
    loss = "loss = F.cosine_embedding_loss(first, second, 2 * y - 1)"
    return "pairs", ["first, second = prediction", loss, 'return {"loss": loss}']


def _class_loss(made: str, prediction: str = "prediction", y: str = "y") -> str:
    """The loss of a prediction of classes, by what its numbers are."""
    if made == _SOFTMAX:  # the logarithm of 0 is -inf
        return f"F.nll_loss({prediction}.clamp(min=1e-7).log(), {y})"
    return f"F.{'nll_loss' if made == _LOG_SOFTMAX else 'cross_entropy'}({prediction}, {y})"


def _tokens(made: str, is_padded: bool) -> list[str]:
    """Of a prediction (B, T, classes); `is_padded`: some targets count for nothing."""
    right = "(prediction.argmax(-1) == y)"
    right = f"{right}[y != {_IGNORED}]" if is_padded else right
    return [
        f"loss = {_class_loss(made, 'prediction.flatten(0, -2)', 'y.flatten()')}",
        'figures = {"perplexity": loss.detach().exp()}',
        f'figures["accuracy"] = {right}.float().mean()',
        'return {"loss": loss, **figures}',
    ]


def _with_accuracy(classes: str) -> str:
    return f'return {{"loss": loss, "accuracy": ({classes} == y).float().mean()}}'


def _ranked(classes: int) -> list[str]:
    """The accuracy of a prediction (B, classes); with many classes also whether the right one is
    among the first five."""
    if classes <= MANY_CLASSES:
        return [_with_accuracy("prediction.argmax(1)")]
    return [
        "five = prediction.topk(5, dim=1).indices == y[:, None]",
        'figures = {"accuracy": five[:, 0].float().mean()}',
        'figures["top-5 accuracy"] = five.any(1).float().mean()',
        'return {"loss": loss, **figures}',
    ]


def _overlapping(classes: int) -> list[str]:
    """The accuracy of the classes `found` (B, ...), and intersection over union, the mean over the
    classes that a batch has."""
    return [
        f"pairs = [(found == c, y == c) for c in range({classes})]",
        "overlap = torch.stack([(a & b).sum() / (a | b).sum() for a, b in pairs]).nanmean()",
        'return {"loss": loss, "accuracy": (found == y).float().mean(), "mean IoU": overlap}',
    ]


# -- without a target ----------------------------------------------------------------------------


def _without_target(prediction: Tensor, inputs: Sequence[Input]) -> Task | None:
    if len(inputs) == 1 and _is_again(prediction, inputs[0].value):
        loss = "loss = F.mse_loss(prediction, x)"
        return "autoencoder", [*_as_x(inputs[0]), loss, 'return {"loss": loss}']
    return _next_token(prediction, inputs)


def _is_again(prediction: Tensor, x: Any) -> bool:
    """Whether it may be the input, made once more."""
    return isinstance(x, Tensor) and x.is_floating_point() and x.shape == prediction.shape


def _next_token(prediction: Tensor, inputs: Sequence[Input]) -> Task | None:
    """Of tokens (B, T), each position of a prediction (B, T, classes) is that of the token after
    it. Where a mask says that there is none, it does not count."""
    same = [
        each
        for each in inputs
        if isinstance(each.value, Tensor)
        and each.value.shape == prediction.shape[:-1]
        and each.value.ndim == 2
    ]
    tokens = [
        each
        for each in same
        if not (each.value.is_floating_point() or each.value.is_complex() or _are_bits(each.value))
        and int(each.value.max()) < prediction.shape[-1]
    ]
    if not tokens or prediction.shape[1] < 2 or not prediction.is_floating_point():
        return None
    y = (
        tokens[-1].source
        if tokens[-1].value.dtype == torch.int64
        else f"{tokens[-1].source}.long()"
    )
    mask = next((each for each in same if "mask" in each.keyword), None)
    if mask is not None:
        y = f"{y}.masked_fill({mask.source} == 0, {_IGNORED})"
    return "language model", [
        f"prediction, y = prediction[:, :-1], {y}[:, 1:]  # each position predicts the next token",
        *_tokens(made_by(prediction), mask is not None),
    ]


def _variational(prediction: Sequence[Any], inputs: Sequence[Input]) -> Task | None:
    parts = list(tensors_in(prediction))
    if len(parts) != 3 or len(inputs) != 1 or not isinstance(x := inputs[0].value, Tensor):
        return None
    if parts[0].numel() != x.numel() or parts[1].shape != parts[2].shape:
        return None
    return "variational autoencoder", [
        *_as_x(inputs[0]),
        "reconstruction, mean, log_variance = prediction",
        'error = F.mse_loss(reconstruction, x.view_as(reconstruction), reduction="sum") / len(x)',
        "spread = mean**2 + log_variance.exp() - log_variance - 1",
        "divergence = spread.sum() / (2 * len(x))  # Kingma and Welling 2014, appendix B",
        'return {"loss": error + divergence, "error": error, "divergence": divergence}',
    ]


def _as_x(given: Input) -> list[str]:
    return [] if given.source == "x" else [f"x = {given.source}"]
