"""Checks whether a model fits its data set and its loss, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

from ..datasets.facts import Facts, facts_of
from ..datasets.samples import DataProblem
from ..project import catalogue, wiring
from ..project.document import Block, Model, TrainingSetup
from ..project.problems import LOSS, Fix, Problem
from ..protocol import TensorSpec, shape_text

# Blocks that keep the size of the last dimension; they may be between a Linear and the Output.
_PASSING = frozenset(("Activation", "Regularisation", "Normalisation"))
_SOFTMAX = ("nn.Softmax", "torch.softmax")
_APPLIED = {
    "nn.CrossEntropyLoss": _SOFTMAX,
    "nn.BCEWithLogitsLoss": ("nn.Sigmoid",),
    "nn.MultiLabelSoftMarginLoss": ("nn.Sigmoid",),
}
"""What a loss applies itself to raw scores."""
_EXPECTED = {
    "nn.NLLLoss": ("nn.LogSoftmax",),
    "nn.KLDivLoss": ("nn.LogSoftmax",),
    "nn.BCELoss": ("nn.Sigmoid", *_SOFTMAX),
}
"""The end of a model that a loss expects: one of these."""


def check_fit(
    model: Model, training: TrainingSetup, specs: Mapping[tuple[str, str], TensorSpec]
) -> list[Problem]:
    """Return the problems between the model, the data set and the loss.

    `specs` has the spec of each output port (block id, port) that is known.
    """
    try:
        data = facts_of(training.data)
    except DataProblem as problem:
        return [Problem(f"{problem} {problem.hint}".strip())]
    problems = []
    for block in model.blocks:
        if block.kind == "Input" and (block.id, "x") in specs:
            problems += _check_input(block, specs[block.id, "x"], data)
    source = wiring.prediction_of(model)
    if source is not None and source in specs:
        loss = next((b for b in model.blocks if b.kind in catalogue.losses()), None)
        kind = loss.kind if loss else training.loss
        if kind not in catalogue.losses():
            return [*problems, Problem(f"{catalogue.no_loss(kind)} Choose another.")]
        end = loss or next(b for b in model.blocks if b.kind == "Output")
        if data.classes:
            problems += _check_scores(model, source[0], end, kind, specs[source], data)
        else:
            problems += _check_numbers(model, source[0], end, kind, specs[source], data)
    return problems


def _check_input(block: Block, spec: TensorSpec, data: Facts) -> list[Problem]:
    problems = []
    if spec.shape[1:] != data.sample_shape:
        wanted = shape_text(data.sample_shape)
        problems.append(
            Problem(
                f"A sample of {data.title} has shape {wanted}, but “{block.name}” expects "
                f"{shape_text(spec.shape[1:])}: set shape to {wanted}.",
                block.id,
                fix=Fix(f"Set shape to {wanted}", block.id, "shape", data.sample_shape),
            )
        )
    if spec.dtype != data.dtype:
        problems.append(
            Problem(
                f"{data.title} gives {data.dtype}, but “{block.name}” expects {spec.dtype}: set"
                f" dtype to {data.dtype}.",
                block.id,
                fix=Fix(f"Set dtype to {data.dtype}", block.id, "dtype", data.dtype),
            )
        )
    return problems


def _check_scores(
    model: Model, source: str, end: Block, kind: str, spec: TensorSpec, data: Facts
) -> list[Problem]:
    """Labels (B, ...) need scores (B, C, ...)."""
    title, classes = catalogue.kind(kind).title, data.classes
    port = catalogue.ports(end)[0][0].name
    wanted = shape_text(("B", classes, *data.target_shape))
    shape = spec.shape
    single = shape == ("B", 1, *data.target_shape) and classes == 2
    if single and catalogue.kind(kind).target in ("shares", "signs"):
        return _check_end(model, source, kind)
    if len(shape) != 2 + len(data.target_shape) or shape[0] != "B":
        each = "sample" if not data.target_shape else "character"
        return [
            Problem(
                f"{title} expects one row of {classes} scores for each {each}, {wanted};"
                f" the model returns {shape_text(shape)}.",
                end.id,
                port,
            )
        ]
    problems = []
    if shape[2:] != data.target_shape:
        problems.append(
            Problem(
                f"The model returns {shape_text(shape)}: scores of characters are {wanted}, with"
                " the classes along dim 1. Permute them by (0, 2, 1).",
                end.id,
                port,
            )
        )
    elif shape[1] != classes:
        fix, other = _width_fix(model, source, classes), ""
        if single:
            other = " Or choose binary cross-entropy, which takes one score for two classes."
            fix = fix or Fix("Choose binary cross-entropy", end.id, LOSS, "nn.BCEWithLogitsLoss")
        takes_more = ("nn.CrossEntropyLoss", "nn.NLLLoss")
        spare = kind in takes_more and isinstance(shape[1], int) and shape[1] > classes
        problems.append(
            Problem(
                f"The data set has {classes} classes, but the model returns "
                f"{shape_text(shape)}: it should be {wanted}.{other}",
                end.id,
                port,
                fix=fix,
                severity="warning" if spare else "error",
            )
        )
    return problems + _check_end(model, source, kind)


def _check_end(model: Model, source: str, kind: str) -> list[Problem]:
    """Warn of a last block that the loss applies itself, or of one that it misses."""
    found, title = model.block(source).kind, catalogue.kind(kind).title
    if found in _APPLIED.get(kind, ()):
        name = found.rpartition(".")[2]
        name = name[:1].upper() + name[1:]
        words = (
            f"{title} applies {name.lower()} itself: a {name} before it slows learning down."
            f" Remove the {name}."
        )
    elif kind in _EXPECTED and found not in _EXPECTED[kind]:
        wanted = _EXPECTED[kind][0].removeprefix("nn.")
        words = f"{title} expects the output of {wanted}: add one at the end."
    else:
        return []
    return [Problem(words, source, severity="warning")]


def _check_numbers(
    model: Model, source: str, end: Block, kind: str, spec: TensorSpec, data: Facts
) -> list[Problem]:
    """Numbers (B, T) need a prediction of this shape, and a loss that compares numbers."""
    if catalogue.kind(kind).target in ("labels", "lists"):
        title = catalogue.kind(kind).title
        return [
            Problem(
                f"The targets of {data.title} are numbers; {title} compares scores with classes."
                " Choose the mean squared error loss.",
                end.id,
                fix=Fix("Choose mean squared error", end.id, LOSS, "nn.MSELoss"),
            )
        ]
    wanted = ("B", *data.target_shape)
    if spec.shape == wanted:
        return []
    fits = len(spec.shape) == 2 and spec.shape[0] == "B"
    return [
        Problem(
            f"Each target of {data.title} is {data.target_shape[0]} number"
            f"{'s' if data.target_shape[0] > 1 else ''}, but the model returns"
            f" {shape_text(spec.shape)}: it should be {shape_text(wanted)}.",
            end.id,
            catalogue.ports(end)[0][0].name,
            fix=_width_fix(model, source, data.target_shape[0]) if fits else None,
        )
    ]


def _width_fix(model: Model, source: str, width: int) -> Fix | None:
    """An edit of the Linear block that sets the width of the output of block `source`; None if no
    such block does."""
    feeding = {wire.target: wire.source for wire in model.wires}
    block = model.block(source)
    while catalogue.kind(block.kind).group in _PASSING:
        block = model.block(feeding[block.id])
    if block.kind != "nn.Linear":
        return None
    return Fix(f"Set out_features of {block.name} to {width}", block.id, "out_features", width)
