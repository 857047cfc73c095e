"""Which usual task a prediction and a target make, and the lines of source that compare them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from engine.training.objectives.batch_parts import Input, Parts
from engine.training.objectives.usual_tasks import task_of

G = torch.Generator().manual_seed(0)


def rand(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=G)


def integers(most: int, *shape: int) -> torch.Tensor:
    return torch.randint(most, shape, generator=G)


def logits(*shape: int) -> torch.Tensor:
    return rand(*shape).requires_grad_()


LABELS, BITS = torch.tensor([0, 1, 2, 2]), torch.tensor([0, 1, 1, 0])
X, ROWS = rand(4, 3), rand(4, 12)
TOKENS = integers(7, 2, 5) + 2

CLASSES = "prediction.argmax(1)"
ACCURACY = 'return {"loss": loss, "accuracy": (prediction.argmax(1) == y).float().mean()}'
BIT_ACCURACY = 'return {"loss": loss, "accuracy": ((prediction > 0) == y).float().mean()}'
HALF_ACCURACY = 'return {"loss": loss, "accuracy": ((prediction > 0.5) == y).float().mean()}'
CROSS_ENTROPY = "loss = F.cross_entropy(prediction, y)"
OF_LOGITS = "loss = F.binary_cross_entropy_with_logits(prediction, y)"
OF_SIGMOIDS = "loss = F.binary_cross_entropy(prediction, y)"
SQUARES = (
    "loss = F.mse_loss(prediction, y)",
    "r2.update(prediction.detach(), y)",
    'return {"loss": loss, "RMSE": loss.detach().sqrt(), "R2": r2}',
)
PERPLEXITY = 'figures = {"perplexity": loss.detach().exp()}'
OF_TOKENS = (
    "loss = F.cross_entropy(prediction.flatten(0, -2), y.flatten())",
    PERPLEXITY,
    'figures["accuracy"] = (prediction.argmax(-1) == y).float().mean()',
    'return {"loss": loss, **figures}',
)
OF_PADDED_TOKENS = (
    *OF_TOKENS[:2],
    'figures["accuracy"] = (prediction.argmax(-1) == y)[y != -100].float().mean()',
    OF_TOKENS[3],
)


def overlapping(classes: int) -> tuple[str, ...]:
    return (
        f"pairs = [(found == c, y == c) for c in range({classes})]",
        "overlap = torch.stack([(a & b).sum() / (a | b).sum() for a, b in pairs]).nanmean()",
        'return {"loss": loss, "accuracy": (found == y).float().mean(), "mean IoU": overlap}',
    )


WITH_TARGET = {
    "classes": (rand(4, 3), LABELS, ("classification", CROSS_ENTROPY, ACCURACY)),
    "float classes": (
        rand(4, 3), LABELS.float(), ("classification", "y = y.long()", CROSS_ENTROPY, ACCURACY)),
    "int32 classes": (
        rand(4, 3), LABELS.int(), ("classification", "y = y.long()", CROSS_ENTROPY, ACCURACY)),
    "halves are no classes": (rand(4, 3), LABELS + 0.5, None),
    "more than the classes": (rand(4, 2), LABELS.float(), None),
    "less than the classes": (rand(4, 3), LABELS.float() - 1, None),
    "classes in a column": (
        rand(4, 3), LABELS[:, None],
        ("classification", "y = y.squeeze(-1)", CROSS_ENTROPY, ACCURACY)),
    "one-hot": (
        rand(4, 3), F.one_hot(LABELS, 3),
        ("classification", "y = y.argmax(-1)", CROSS_ENTROPY, ACCURACY)),
    "one-hot after a sigmoid": (
        logits(4, 3).sigmoid(), F.one_hot(LABELS, 3),
        ("multi-label classification", "y = y.float()", OF_SIGMOIDS, HALF_ACCURACY)),
    "classes after a sigmoid": (
        logits(4, 3).sigmoid(), LABELS,
        ("classification",
         "loss = F.binary_cross_entropy(prediction, F.one_hot(y, 3).float())", ACCURACY)),
    "classes after a softmax": (
        logits(4, 3).softmax(1), LABELS,
        ("classification", "loss = F.nll_loss(prediction.clamp(min=1e-7).log(), y)", ACCURACY)),
    "classes after a log_softmax": (
        logits(4, 3).log_softmax(1), LABELS,
        ("classification", "loss = F.nll_loss(prediction, y)", ACCURACY)),
    "complex target": (rand(4, 3), LABELS.cfloat(), None),
    "integer prediction": (LABELS, LABELS, None),
    "eleven classes": (
        rand(4, 11), LABELS,
        ("classification", CROSS_ENTROPY,
         "five = prediction.topk(5, dim=1).indices == y[:, None]",
         'figures = {"accuracy": five[:, 0].float().mean()}',
         'figures["top-5 accuracy"] = five.any(1).float().mean()',
         'return {"loss": loss, **figures}')),
    "pixels": (
        rand(2, 3, 4, 4), integers(3, 2, 4, 4),
        ("segmentation", CROSS_ENTROPY, f"found = {CLASSES}", *overlapping(3))),
    "pixels of two classes": (
        rand(2, 1, 4, 4), integers(2, 2, 1, 4, 4),
        ("binary segmentation", "y = y.float()", OF_LOGITS, "found = prediction > 0",
         *overlapping(2))),
    "pixels after a sigmoid": (
        logits(2, 1, 4, 4).sigmoid(), integers(2, 2, 1, 4, 4).float(),
        ("binary segmentation", OF_SIGMOIDS, "found = prediction > 0.5", *overlapping(2))),
    "tokens": (rand(2, 5, 9), integers(9, 2, 5), ("language model", *OF_TOKENS)),
    "padded tokens": (
        rand(2, 5, 9), torch.tensor([[1, 2, 3, -100, -100]] * 2),
        ("language model", *OF_PADDED_TOKENS)),
    "bits of a column": (
        rand(4, 1), BITS,
        ("binary classification", "prediction = prediction.squeeze(-1)", "y = y.float()",
         OF_LOGITS, BIT_ACCURACY)),
    "bits": (rand(4), BITS.float(), ("binary classification", OF_LOGITS, BIT_ACCURACY)),
    "bits after a sigmoid": (
        logits(4, 1).sigmoid(), BITS.float(),
        ("binary classification", "prediction = prediction.squeeze(-1)", OF_SIGMOIDS,
         HALF_ACCURACY)),
    "one column of bits": (
        rand(4, 1), BITS[:, None].float(), ("binary classification", OF_LOGITS, BIT_ACCURACY)),
    "float ones alone": (rand(4), torch.ones(4), ("regression", *SQUARES)),
    "float zeros alone": (rand(4), torch.zeros(4), ("regression", *SQUARES)),
    "integer ones alone": (
        rand(4), torch.ones_like(BITS),
        ("binary classification", "y = y.float()", OF_LOGITS, BIT_ACCURACY)),
    "ones alone after a sigmoid": (
        logits(4).sigmoid(), torch.ones(4),
        ("binary classification", OF_SIGMOIDS, HALF_ACCURACY)),
    "several bits": (
        rand(4, 3), torch.tensor([[1.0, 0, 1]] * 4),
        ("multi-label classification", OF_LOGITS, BIT_ACCURACY)),
    "a column of numbers": (
        rand(4, 1), rand(4), ("regression", "prediction = prediction.squeeze(-1)", *SQUARES)),
    "a target in a column": (
        rand(4), rand(4, 1), ("regression", "y = y.squeeze(-1)", *SQUARES)),
    "float64 target": (rand(4), rand(4).double(), ("regression", "y = y.float()", *SQUARES)),
    "an image of numbers": (
        rand(2, 3, 4, 4), rand(2, 3, 4, 4),
        ("regression", SQUARES[0], 'return {"loss": loss, "RMSE": loss.detach().sqrt()}')),
    "other shapes": (rand(4, 3), rand(5), None),
    "no number": (rand(4, 3), "labels", None),
}  # fmt: skip


def told(prediction: Any, *inputs: Input, target: Any = None) -> tuple[str, ...] | None:
    """The task and its lines, of a prediction that is compared as it is."""
    found = task_of(prediction, Parts("", inputs, target))
    if found is None:
        return None
    taken, (name, lines) = found
    assert taken == ""
    return (name, *lines)


@pytest.mark.parametrize("case", WITH_TARGET)
def test_the_task_of_a_prediction_and_a_target(case: str) -> None:
    prediction, target, expected = WITH_TARGET[case]
    assert told(prediction, target=target) == expected


def test_one_prediction_a_token_is_told_from_one_a_pixel_by_the_input() -> None:
    p, y = rand(2, 5, 5), integers(5, 2, 5)
    assert told(p, Input("x", integers(5, 2, 5)), target=y) == ("language model", *OF_TOKENS)
    of_pixels = ("segmentation", CROSS_ENTROPY, f"found = {CLASSES}", *overlapping(5))
    assert told(p, Input("x", rand(2, 3)), target=y) == of_pixels


def test_rows_made_again_are_no_classes_if_there_are_few_labels() -> None:
    again = ("autoencoder", "loss = F.mse_loss(prediction, x)", 'return {"loss": loss}')
    assert told(rand(4, 12), Input("x", ROWS), target=LABELS) == again
    found = told(rand(4, 11), Input("x", ROWS[:, 1:]), target=LABELS)
    assert found is not None and found[0] == "classification"


NEXT = "  # each position predicts the next token"


@pytest.mark.parametrize(
    ("prediction", "inputs", "expected"),
    [
        (rand(4, 3), [Input("x", X)],
         ("autoencoder", "loss = F.mse_loss(prediction, x)", 'return {"loss": loss}')),
        (rand(4, 3), [Input("x1", X)],
         ("autoencoder", "x = x1", "loss = F.mse_loss(prediction, x)", 'return {"loss": loss}')),
        (rand(4, 3), [Input("x1", X), Input("x2", X)], None),
        (rand(4, 3), [Input("x", LABELS)], None),
        (rand(2, 5, 9), [Input("x", TOKENS)],
         ("language model", f"prediction, y = prediction[:, :-1], x[:, 1:]{NEXT}", *OF_TOKENS)),
        (rand(2, 5, 9), [Input("x", TOKENS.int())],
         ("language model",
          f"prediction, y = prediction[:, :-1], x.long()[:, 1:]{NEXT}", *OF_TOKENS)),
        (rand(2, 5, 9), [Input("ids", TOKENS), Input("m", torch.ones(2, 5), "attention_mask")],
         ("language model",
          f"prediction, y = prediction[:, :-1], ids.masked_fill(m == 0, -100)[:, 1:]{NEXT}",
          *OF_PADDED_TOKENS)),
        (rand(2, 5, 8), [Input("x", torch.full((2, 5), 8))], None),
        (rand(2, 1, 9), [Input("x", TOKENS[:, :1])], None),
        (rand(2, 5, 9), [Input("x", rand(2, 5))], None),
        (rand(2, 5, 9), [Input("x", torch.ones(2, 5, dtype=torch.int64))], None),
        (TOKENS[..., None], [Input("x", TOKENS)], None),
    ],
)  # fmt: skip
def test_the_task_without_a_target(prediction: Any, inputs: Any, expected: Any) -> None:
    assert told(prediction, *inputs) == expected


PAIRS = (
    "pairs", "first, second = prediction",
    "loss = F.cosine_embedding_loss(first, second, 2 * y - 1)", 'return {"loss": loss}',
)  # fmt: skip


def test_two_embeddings_are_pairs_if_the_target_has_a_bit_for_each() -> None:
    two = rand(4, 3), rand(4, 3)
    assert told(two, target=BITS) == PAIRS
    for target in (LABELS, None, "bits", BITS[:3]):
        assert told(two, target=target) is None
    assert told((*two, two[0]), target=BITS) is None
    found = task_of((two[0], rand(4, 2)), Parts("", (), BITS))
    assert found == ("[0]", ("classification", [CROSS_ENTROPY, ACCURACY]))


VARIATIONAL = (
    "reconstruction, mean, log_variance = prediction",
    'error = F.mse_loss(reconstruction, x.view_as(reconstruction), reduction="sum") / len(x)',
    "spread = mean**2 + log_variance.exp() - log_variance - 1",
    "divergence = spread.sum() / (2 * len(x))  # Kingma and Welling 2014, appendix B",
    'return {"loss": error + divergence, "error": error, "divergence": divergence}',
)


def test_a_reconstruction_with_mean_and_variance() -> None:
    three = rand(4, 3), rand(4, 2), rand(4, 2)
    name = "variational autoencoder"
    assert told(three, Input("x", X)) == (name, *VARIATIONAL)
    assert told(three, Input("a", X)) == (name, "x = a", *VARIATIONAL)
    for inputs in ([], [X, X], ["x"], [ROWS]):
        assert told(three, *(Input("x", value) for value in inputs)) is None
    assert told((*three[:2], rand(4, 1)), Input("x", X)) is None


@pytest.mark.parametrize(
    ("prediction", "line"),
    [
        (rand(), "return prediction"),
        ({"loss": rand(), "n": rand()}, 'return prediction["loss"]'),
        ((rand(4, 3), rand()), "return prediction[1]"),
        ((rand(), rand()), ""),
        (torch.tensor(3), ""),
        ({"loss": 3.0}, ""),
    ],
)
def test_a_model_with_a_loss_of_its_own(prediction: Any, line: str) -> None:
    found = told(prediction)
    assert (found is None) == (line == "") and (found is None or found[1:] == (line,))


@pytest.mark.parametrize(
    ("prediction", "taken"),
    [
        ({"logits": X, "hidden": X}, '["logits"]'),
        ({"hidden": X, "output": X}, '["output"]'),
        ({"only": X, "n": 3}, '["only"]'),
        ({"one": X, "two": X}, None),
        ({3: X}, None),
        ((X, rand(1, 4)), "[0]"),
        ((X, 3), "[0]"),
        ((X, X.clone()), None),
        ((X, rand(1), rand(2)), None),
        ([], None),
        ((3, X), None),
    ],
)
def test_the_part_of_a_prediction_that_is_compared(prediction: Any, taken: str | None) -> None:
    found = task_of(prediction, Parts("", (), LABELS))
    assert found == (
        None if taken is None else (taken, ("classification", [CROSS_ENTROPY, ACCURACY]))
    )
