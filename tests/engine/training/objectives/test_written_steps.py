"""Which step is written for a model and its data: its loss against plain torch, and no advice."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import Dataset

from engine.advice.first_steps import FirstSteps
from engine.project.document import Loading
from engine.training.objectives.batches import batches_of
from engine.training.objectives.code_objective import Step, compile_step, outcome_of
from engine.training.objectives.usual_steps import usual_call, write_step
from tests.engine.training.test_usual_steps import CASES

G = torch.Generator().manual_seed(5)
X = torch.randn(16, 4, generator=G)
IMAGES = torch.randn(16, 1, 6, 6, generator=G)
BITS = torch.arange(16) % 2
LABELS = torch.arange(16) % 3
SEVERAL = torch.stack([BITS, BITS.flip(0), LABELS.clamp(max=1)], 1)
MASKS = (IMAGES > 0.3).float()
TOKENS = torch.randint(2, 9, (16, 5), generator=G)
REAL = (torch.arange(5) < torch.arange(16)[:, None] % 3 + 3).long()
AGES = torch.arange(16) + 20
ROWS = Loading(shuffle=False)


class Samples(Dataset[Any]):
    def __init__(self, of: Callable[[int], Any]) -> None:
        self.of = of

    def __len__(self) -> int:
        return 16

    def __getitem__(self, i: int) -> Any:
        return self.of(i)


@dataclass
class Batch:
    x: Tensor
    y: Tensor


class Calls(nn.Module):
    """A model whose forward has other parameters than one x. `main` gives its scores."""

    def __init__(self, inputs: int = 4, outputs: int = 3) -> None:
        super().__init__()
        self.main = nn.Linear(inputs, outputs)


class Named(Calls):
    """As in Hugging Face: gives an object, with a loss if it gets labels."""

    def forward(self, x: Tensor, mask: Tensor | None = None, labels: Tensor | None = None) -> Any:
        scores = self.main(x if mask is None else x * mask)
        loss = None if labels is None else F.cross_entropy(scores, labels)
        return SimpleNamespace(loss=loss, logits=scores)


class LossInDict(Named):
    def forward(self, x: Tensor, mask: Tensor | None = None, labels: Tensor | None = None) -> Any:
        return vars(super().forward(x, mask, labels))


class LossBeside(Named):
    """As nanoGPT: scores and loss."""

    def forward(self, x: Tensor, targets: Tensor | None = None) -> Any:
        given = super().forward(x, None, targets)
        return given.logits, given.loss


class Out(Calls):
    """As torchvision's segmentation."""

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return OrderedDict(out=self.main(x))


class Logits(Calls):
    def forward(self, x: Tensor) -> Any:
        return SimpleNamespace(logits=self.main(x))


class WithState(nn.Module):
    def __init__(self, kind: type[nn.LSTM] | type[nn.GRU]) -> None:
        super().__init__()
        self.cell, self.head = kind(4, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        h, state = self.cell(x, state)
        return self.head(h[:, -1]), state


class Two(Calls):
    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return self.main(x + z)


class Pair(Calls):
    def forward(self, pair: list[Tensor]) -> Tensor:
        return self.main(pair[0] + pair[1])


class Whole(Calls):
    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        return self.main(batch["x"] + batch["z"])


class Object(Calls):
    def forward(self, batch: Batch) -> Tensor:
        return self.main(batch.x)


class Tokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(9, 6), nn.Linear(6, 9)

    def forward(self, ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        return self.head(self.words(ids))


def binary(*after: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 1), *after)


def classes(*after: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 3), *after)


def pixels(outputs: int, *after: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, outputs, 3, padding=1), *after)


class Row(NamedTuple):
    """The loss is that of `loss(model, rows)`, where rows are the first eight of each tensor."""

    model: Callable[[], nn.Module]
    data: Any
    task: str
    loss: Callable[[Any, slice], Tensor]


def of_logits(y: Tensor) -> Callable[[Any, slice], Tensor]:
    return lambda m, r: F.binary_cross_entropy_with_logits(m(X[r]).flatten(), y[r].float())


def of_scores(m: Any, r: slice) -> Tensor:
    return F.cross_entropy(m(X[r]), LABELS[r])


def of_main(m: Any, r: slice) -> Tensor:
    return F.cross_entropy(m.main(X[r]), LABELS[r])


def of_two(m: Any, r: slice) -> Tensor:
    return F.cross_entropy(m.main(2 * X[r]), LABELS[r])


def of_several(m: Any, r: slice) -> Tensor:
    return F.binary_cross_entropy_with_logits(m(X[r]), SEVERAL[r].float())


def of_masks(m: Any, r: slice) -> Tensor:
    return F.binary_cross_entropy_with_logits(m(IMAGES[r]), MASKS[r])


def of_pixels(m: Any, r: slice) -> Tensor:
    return F.cross_entropy(m(IMAGES[r]), MASKS[r, 0].long())


def of_ages(m: Any, r: slice) -> Tensor:
    return F.mse_loss(m(X[r])[:, 0], AGES[r].float())


def of_next(m: Any, r: slice) -> Tensor:
    return F.cross_entropy(m(TOKENS[r])[:, :-1].flatten(0, 1), TOKENS[r, 1:].flatten())


def of_real(m: Any, r: slice) -> Tensor:
    is_real = REAL[r, 1:].bool()
    return F.cross_entropy(m(TOKENS[r])[:, :-1][is_real], TOKENS[r, 1:][is_real])


def by_name(**tensors: Tensor) -> Dataset[Any]:
    return Samples(lambda i: {name: tensor[i] for name, tensor in tensors.items()})


def loop() -> Iterator[Any]:
    yield from ((X[i : i + 8], LABELS[i : i + 8]) for i in (0, 8))


CLASSES, ONE, MANY = "classification", "binary classification", "multi-label classification"
LM, MASK, OWN = "language model", "binary segmentation", "a model with its own loss"
ROWS_OF = {
    # two classes
    "floats (N, 1)": Row(binary, (X, BITS.float()[:, None]), ONE, of_logits(BITS)),
    "floats (N,)": Row(binary, (X, BITS.float()), ONE, of_logits(BITS)),
    "floats (N, 1), flat": Row(
        lambda: binary(nn.Flatten(0)), (X, BITS.float()[:, None]), ONE, of_logits(BITS)
    ),
    "ints (N,)": Row(binary, (X, BITS), ONE, of_logits(BITS)),
    "bools (N,)": Row(binary, (X, BITS.bool()), ONE, of_logits(BITS)),
    "a sigmoid, floats": Row(
        lambda: binary(nn.Sigmoid()),
        (X, BITS.float()[:, None]),
        ONE,
        lambda m, r: F.binary_cross_entropy_with_logits(m[0](X[r])[:, 0], BITS[r].float()),
    ),
    "a sigmoid, ints": Row(
        lambda: binary(nn.Sigmoid(), nn.Flatten(0)),
        (X, BITS),
        ONE,
        lambda m, r: F.binary_cross_entropy_with_logits(m[0](X[r])[:, 0], BITS[r].float()),
    ),
    "masks (N, 1, H, W)": Row(lambda: pixels(1), (IMAGES, MASKS), MASK, of_masks),
    "masks (N, H, W)": Row(lambda: pixels(1), (IMAGES, MASKS[:, 0]), MASK, of_masks),
    "masks, a sigmoid": Row(
        lambda: pixels(1, nn.Sigmoid()),
        (IMAGES, MASKS),
        MASK,
        lambda m, r: F.binary_cross_entropy_with_logits(m[0](IMAGES[r]), MASKS[r]),
    ),
    # several labels
    "several, floats": Row(classes, (X, SEVERAL.float()), MANY, of_several),
    "several, ints": Row(classes, (X, SEVERAL), MANY, of_several),
    "several, a sigmoid": Row(
        lambda: classes(nn.Sigmoid()),
        (X, SEVERAL.float()),
        MANY,
        lambda m, r: F.binary_cross_entropy_with_logits(m[0](X[r]), SEVERAL[r].float()),
    ),
    # classes
    "a softmax": Row(
        lambda: classes(nn.Softmax(1)), (X, LABELS), CLASSES,
        lambda m, r: F.cross_entropy(m[0](X[r]), LABELS[r]),
    ),
    "a log_softmax": Row(
        lambda: classes(nn.LogSoftmax(1)), (X, LABELS), CLASSES,
        lambda m, r: F.cross_entropy(m[0](X[r]), LABELS[r]),
    ),
    "a sigmoid for each class": Row(
        lambda: classes(nn.Sigmoid()), (X, LABELS), CLASSES,
        lambda m, r: F.binary_cross_entropy_with_logits(m[0](X[r]), torch.eye(3)[LABELS[r]]),
    ),
    "labels (N, 1)": Row(classes, (X, LABELS[:, None]), CLASSES, of_scores),
    "labels of int32": Row(classes, (X, LABELS.int()), CLASSES, of_scores),
    "labels that are floats": Row(classes, (X, LABELS.float()), CLASSES, of_scores),
    "one-hot ints": Row(classes, (X, F.one_hot(LABELS)), CLASSES, of_scores),
    "one-hot floats": Row(classes, (X, F.one_hot(LABELS).float()), CLASSES, of_scores),
    "classes of pixels": Row(
        lambda: pixels(2), (IMAGES, MASKS[:, 0].long()), "segmentation", of_pixels
    ),
    "classes of pixels (N, 1, H, W)": Row(
        lambda: pixels(2), (IMAGES, MASKS), "segmentation", of_pixels
    ),
    "one-hot pixels": Row(
        lambda: pixels(2), (IMAGES, torch.cat([1 - MASKS, MASKS], 1)), "segmentation", of_pixels
    ),
    # numbers
    "ints to learn": Row(binary, (X, AGES), "regression", of_ages),
    "doubles to learn": Row(binary, (X, AGES.double()[:, None]), "regression", of_ages),
    # tokens
    "tokens only": Row(Tokens, TOKENS, LM, of_next),
    "tokens by name": Row(Tokens, by_name(ids=TOKENS), LM, of_next),
    "tokens and a mask": Row(Tokens, by_name(ids=TOKENS, attention_mask=REAL), LM, of_real),
    "tokens, padded targets": Row(
        Tokens,
        (TOKENS, TOKENS.masked_fill(REAL == 0, -100)),
        LM,
        lambda m, r: F.cross_entropy(m(TOKENS[r])[REAL[r] == 1], TOKENS[r][REAL[r] == 1]),
    ),
    "as many classes as tokens": Row(
        lambda: nn.Sequential(nn.Embedding(9, 5)), (TOKENS, TOKENS % 5), LM,
        lambda m, r: F.cross_entropy(m(TOKENS[r]).flatten(0, 1), TOKENS[r].flatten() % 5),
    ),
    # what the model gives
    "its own loss": Row(Named, by_name(x=X, mask=X * 0 + 1, labels=LABELS), OWN, of_main),
    "its own loss in a dict": Row(LossInDict, by_name(x=X, labels=LABELS), OWN, of_main),
    "its own loss beside": Row(LossBeside, (X, LABELS), OWN, of_main),
    "its own loss, inputs one by one": Row(Named, (X, X * 0 + 1, LABELS), OWN, of_main),
    ".logits": Row(Logits, (X, LABELS), CLASSES, of_main),
    '["out"]': Row(Out, by_name(x=X, y=LABELS), CLASSES, of_main),
    "an LSTM and its state": Row(
        lambda: WithState(nn.LSTM), (X[:, None], LABELS), CLASSES,
        lambda m, r: F.cross_entropy(m(X[r, None])[0], LABELS[r]),
    ),
    "a GRU and its state": Row(
        lambda: WithState(nn.GRU), (X[:, None], LABELS), CLASSES,
        lambda m, r: F.cross_entropy(m(X[r, None])[0], LABELS[r]),
    ),
    # what the data gives
    "(x, z), y": Row(Two, Samples(lambda i: ((X[i], X[i]), LABELS[i])), CLASSES, of_two),
    "a pair, y": Row(Pair, Samples(lambda i: ((X[i], X[i]), LABELS[i])), CLASSES, of_two),
    "a dict, y": Row(
        Two, Samples(lambda i: ({"x": X[i], "z": X[i]}, LABELS[i])), CLASSES, of_two
    ),
    "a dict for forward": Row(Whole, by_name(x=X, z=X, label=LABELS), CLASSES, of_two),
    "a dict, other names": Row(classes, by_name(image=X, label=LABELS), CLASSES, of_scores),
    "a dict with more": Row(Two, by_name(x=X, z=X, id=AGES, label=LABELS), CLASSES, of_two),
    "an object with y": Row(
        Object, [Batch(X[:8], LABELS[:8]), Batch(X[8:], LABELS[8:])], CLASSES, of_main
    ),
    "doubles": Row(classes, (X.double(), LABELS), CLASSES, of_scores),
    "ints": Row(
        classes, (AGES[:, None].expand(16, 4) - 28, LABELS), CLASSES,
        lambda m, r: F.cross_entropy(m((AGES[r, None] - 28).expand(8, 4).float()), LABELS[r]),
    ),
    "bytes of images": Row(
        lambda: pixels(2),
        ((MASKS * 255).byte(), MASKS[:, 0].long()),
        "segmentation",
        lambda m, r: F.cross_entropy(m(MASKS[r]), MASKS[r, 0].long()),
    ),
    "arrays": Row(classes, (X.double().numpy(), LABELS.numpy()), CLASSES, of_scores),
    "a list of samples": Row(
        classes, [(X[i], int(LABELS[i])) for i in range(16)], CLASSES, of_scores
    ),
    "a list of dicts": Row(
        classes, [{"input": X[i], "label": LABELS[i]} for i in range(16)], CLASSES, of_scores
    ),
    "a list of batches": Row(classes, list(loop()), CLASSES, of_scores),
    "a function": Row(classes, loop, CLASSES, of_scores),
    "doubles to make again": Row(
        lambda: nn.Linear(4, 4), (X.double(),), "autoencoder",
        lambda m, r: F.mse_loss(m(X[r]), X[r]),
    ),
    "labelled data to make again": Row(
        lambda: nn.Linear(36, 36), (IMAGES.flatten(1), LABELS), "autoencoder",
        lambda m, r: F.mse_loss(m(IMAGES[r].flatten(1)), IMAGES[r].flatten(1)),
    ),
}  # fmt: skip


def advice(model: nn.Module, step: Step, batches: list[Any]) -> list[str]:
    """What is told about steps over the batches."""
    found: list[str] = []
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    first = FirstSteps(model, lambda finding: found.append(finding.text))
    for batch in batches:
        with first.looked_over():
            optimizer.zero_grad()
            outcome_of(step(batch), 1).loss.backward()
            optimizer.step()
    first.end()
    return found


@pytest.mark.parametrize("name", ROWS_OF)
def test_the_written_step_is_right(name: str) -> None:
    row = ROWS_OF[name]
    torch.manual_seed(0)
    model = row.model()
    batches = list(batches_of(row.data, 8, ROWS))
    written = write_step(model, batches[0])
    step = compile_step(written.source, model, {})
    assert written.task == row.task
    torch.testing.assert_close(outcome_of(step(batches[0]), 8).loss, row.loss(model, slice(8)))
    usual_call(model, batches[0])()
    assert advice(model, step, batches) == []
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("task", CASES)
def test_nothing_is_advised_about_a_usual_step(task: str) -> None:
    make, batch, *_ = CASES[task]
    model = make()
    assert (
        advice(model, compile_step(write_step(model, batch).source, model, {}), [batch] * 2) == []
    )


def test_a_mistake_in_a_step_is_advised() -> None:
    """Guards the tests above."""
    model = classes(nn.Softmax(1))
    source = "def step(batch):\n    return F.cross_entropy(model(batch[0]), batch[1])\n"
    assert len(advice(model, compile_step(source, model, {}), [(X, LABELS)])) == 1


@pytest.mark.parametrize("name", ["floats (N, 1)", "a sigmoid, floats", "bools (N,)"])
def test_the_accuracy_of_two_classes(name: str) -> None:
    row = ROWS_OF[name]
    model: Any = row.model()
    got = compile_step(write_step(model, row.data).source, model, {})(row.data)
    found = model[0](X)[:, 0] > 0
    assert torch.equal(got["accuracy"], (found == BITS).float().mean())


def test_the_figures_of_masks_are_those_of_two_classes() -> None:
    model = pixels(1)
    got = compile_step(write_step(model, (IMAGES, MASKS)).source, model, {})((IMAGES, MASKS))
    found, y = model(IMAGES) > 0, MASKS.bool()
    overlaps = [(a & b).sum() / (a | b).sum() for a, b in ((found, y), (~found, ~y))]
    assert torch.equal(got["mean IoU"], torch.stack(overlaps).mean())
    assert torch.equal(got["accuracy"], (found == y).float().mean())


def test_the_accuracy_of_padded_tokens_is_that_of_the_others() -> None:
    model, batch = Tokens(), {"ids": TOKENS, "attention_mask": REAL}
    got = compile_step(write_step(model, batch).source, model, {})(batch)
    right = model(TOKENS)[:, :-1].argmax(-1) == TOKENS[:, 1:]
    assert torch.equal(got["accuracy"], right[REAL[:, 1:] == 1].float().mean())


def test_a_softmax_that_underflows_has_a_finite_loss() -> None:
    model = classes(nn.Softmax(1))
    x = X * 1e4
    got = compile_step(write_step(model, (x, LABELS)).source, model, {})((x, LABELS))
    got["loss"].backward()
    assert got["loss"].isfinite()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_floats_of_one_value_are_numbers() -> None:
    """Nothing says yet that they are classes."""
    assert write_step(binary(), (X, torch.zeros(16))).task == "regression"
    assert write_step(binary(nn.Sigmoid()), (X, torch.zeros(16))).task == ONE


@pytest.mark.parametrize(("classes", "five"), [(10, False), (11, True)])
def test_of_many_classes_the_first_five_are_told_too(classes: int, five: bool) -> None:
    model, y = nn.Linear(4, classes), torch.arange(16) % classes
    got = compile_step(write_step(model, (X, y)).source, model, {})((X, y))
    scores = model(X)
    assert torch.equal(got["accuracy"], (scores.argmax(1) == y).float().mean())
    assert ("top-5 accuracy" in got) == five
    if five:
        ranks = (scores > scores.gather(1, y[:, None])).sum(1)
        assert torch.equal(got["top-5 accuracy"], (ranks < 5).float().mean())


@pytest.mark.parametrize(("labels", "task"), [(9, "autoencoder"), (10, CLASSES)])
def test_few_labels_of_data_that_is_made_again_are_not_its_classes(labels: int, task: str) -> None:
    x = IMAGES.flatten(1)
    assert write_step(nn.Linear(36, 36), (x, torch.arange(16) % labels)).task == task


def test_tokens_of_one_place_and_numbers_predict_no_next_token() -> None:
    with pytest.raises(Exception, match="No usual task fits"):
        write_step(Tokens(), TOKENS[:, :1])
    with pytest.raises(Exception, match="No usual task fits"):
        write_step(nn.Sequential(nn.Linear(5, 5), nn.Unflatten(1, (5, 1))), torch.randn(16, 5))


def test_two_predictions_of_one_shape_are_not_one() -> None:
    class Both(Calls):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return self.main(x), -self.main(x)

    with pytest.raises(Exception, match="No usual task fits"):
        write_step(Both(), (X, LABELS))


def test_an_array_of_objects_is_refused() -> None:
    with pytest.raises(Exception, match="an array of object, which no tensor can hold"):
        batches_of((np.array([None, "a"]), np.zeros(2)), 1)


def test_two_steps_keep_their_own_source() -> None:
    sources = [f"def step(batch):\n    return model(batch).mean() * {n}\n" for n in (2, 3)]
    steps = [compile_step(source, nn.Identity(), {}) for source in sources]
    assert list(map(inspect.getsource, steps)) == sources
    (again,) = {compile_step(sources[0], nn.Identity(), {}).__code__.co_filename}
    assert again == steps[0].__code__.co_filename
