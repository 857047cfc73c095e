"""Checks whether a model fits its data set and its loss, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

from ..project import catalogue, wiring
from ..project.document import Block, Model, TrainingSetup
from ..project.problems import Fix, Problem
from ..protocol import TensorSpec
from .problems import shape_text

# Blocks that keep the size of the last dimension; they may be between a Linear and the Output.
_PASSING = frozenset(("Activation", "Regularisation", "Normalisation"))


def check_fit(
    model: Model, training: TrainingSetup, specs: Mapping[tuple[str, str], TensorSpec]
) -> list[Problem]:
    """Return the problems between the model, the data set and the loss.

    `specs` has the spec of each output port (block id, port) that is known.
    """
    data = catalogue.datasets().get(training.data.kind)
    if data is None:
        return [Problem(f"There is no data set “{training.data.kind}”. Choose another.")]
    problems = []
    for block in model.blocks:
        if block.kind == "Input" and (block.id, "x") in specs:
            problems += _check_input(block, specs[block.id, "x"], data)
    source = wiring.prediction_of(model)
    if source is not None and source in specs:
        loss = next((b for b in model.blocks if b.kind in catalogue.losses()), None)
        kind = loss.kind if loss else training.loss
        if kind not in catalogue.losses():
            return [*problems, Problem(f"There is no loss “{kind}”. Choose another.")]
        end = loss or next(b for b in model.blocks if b.kind == "Output")
        problems += _check_prediction(model, source[0], end, kind, specs[source], data.classes)
    return problems


def _check_input(block: Block, spec: TensorSpec, data: catalogue.DatasetKind) -> list[Problem]:
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
    if spec.dtype != "float32":
        problems.append(
            Problem(
                f"{data.title} gives float32, but “{block.name}” expects {spec.dtype}: set dtype "
                "to float32.",
                block.id,
                fix=Fix("Set dtype to float32", block.id, "dtype", "float32"),
            )
        )
    return problems


def _check_prediction(
    model: Model, source: str, end: Block, kind: str, spec: TensorSpec, classes: int
) -> list[Problem]:
    title = catalogue.kind(kind).title
    port = catalogue.ports(end)[0][0].name
    if len(spec.shape) != 2 or spec.shape[0] != "B":
        return [
            Problem(
                f"{title} expects one row of {classes} scores for each sample, (B, {classes});"
                f" the model returns {shape_text(spec.shape)}.",
                end.id,
                port,
            )
        ]
    problems = []
    width = spec.shape[1]
    if width != classes:
        fix = None
        linear = _last_linear(model, source)
        if linear is not None:
            text = f"Set out_features of {linear.name} to {classes}"
            fix = Fix(text, linear.id, "out_features", classes)
        spare = kind == "nn.CrossEntropyLoss" and isinstance(width, int) and width > classes
        problems.append(
            Problem(
                f"The data set has {classes} classes, but the model returns "
                f"{shape_text(spec.shape)}: it should be (B, {classes}).",
                end.id,
                port,
                fix=fix,
                severity="warning" if spare else "error",
            )
        )
    if kind == "nn.CrossEntropyLoss" and model.block(source).kind in (
        "nn.Softmax",
        "torch.softmax",
    ):
        problems.append(
            Problem(
                "Cross-entropy loss applies softmax itself: a Softmax before it slows learning"
                " down. Remove the Softmax.",
                source,
                severity="warning",
            )
        )
    return problems


def _last_linear(model: Model, source: str) -> Block | None:
    """The Linear block that sets the width of the output of block `source`; None if no such block
    does."""
    feeding = {wire.target: wire.source for wire in model.wires}
    block = model.block(source)
    while catalogue.kind(block.kind).group in _PASSING:
        block = model.block(feeding[block.id])
    return block if block.kind == "nn.Linear" else None
