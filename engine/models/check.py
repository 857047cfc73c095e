"""The check of a whole model after every edit: shapes, counts, problems and code."""

from __future__ import annotations

from ..project import wiring
from ..project.document import Model, TrainingSetup
from ..project.problems import Problem, located
from ..protocol import BlockReport, ModelSnapshot
from ..system.errors import LabError
from . import code, shapes
from .fit import check_fit


def check(model: Model, training: TrainingSetup) -> ModelSnapshot:
    """Return all that is known of a model, which may be unfinished. No real module is built.

    The live weights and the random state are not touched.
    """
    problems = list(wiring.check(model))
    try:
        found = shapes.infer(model)
    except wiring.WiringError:  # `wiring.check` reports it
        found = {block.id: shapes.BlockShapes() for block in model.blocks}
    specs = {
        (block_id, port): spec
        for block_id, known in found.items()
        for port, spec in known.outputs.items()
    }
    problems += check_fit(model, training, specs)
    written = code.write(model, specs)
    reports = tuple(
        BlockReport(
            block=block.id,
            outputs=found[block.id].outputs,
            parameters=found[block.id].parameters,
            parameter_bytes=found[block.id].parameter_bytes,
            activation_bytes=found[block.id].activation_bytes,
            problems=(
                *(p for p in problems if p.block == block.id),
                *found[block.id].problems,
            ),
        )
        for block in model.blocks
    )
    everything: list[Problem] = [*problems, *(p for r in reports for p in r.problems)]
    return ModelSnapshot(
        blocks=reports,
        parameters=sum(report.parameters for report in reports),
        parameter_bytes=sum(report.parameter_bytes for report in reports),
        activation_bytes=sum(report.activation_bytes for report in reports),
        problems=tuple(problem for problem in problems if problem.block is None),
        runnable=not any(problem.severity == "error" for problem in everything),
        code=written.text,
        lines=written.lines,
    )


def require_runnable(model: Model, training: TrainingSetup) -> ModelSnapshot:
    """Raise LabError with all problems of a model that cannot run on its data set."""
    checked = check(model, training)
    if checked.runnable:
        return checked
    found = [*checked.problems, *(p for report in checked.blocks for p in report.problems)]
    errors = tuple(problem for problem in found if problem.severity == "error")
    raise LabError(
        f"The model cannot run. {located(errors, model)[0].message}",
        hint="Fix what the Problems list names.",
        problems=errors,
    )
