"""What a message means by a field that it leaves out, and the flags of commands."""

from __future__ import annotations

import inspect
import math

import msgspec
import pytest
import torch

from engine.protocol import COMMANDS, GradcheckCommand
from engine.protocol.codec import message_types
from engine.protocol.training.looks import EACH_MODULE

PLACES = {
    "AllocatorBlock.op", "BreakpointState.places", "DifferenceSnapshot.first",
    "ExportPlanSnapshot.run_step", "MoveBackwardCommand.target", "MoveTraceCommand.target",
    "NodeDetailSnapshot.sequence", "RuleCommand.input", "StartTraceCommand.node",
    "TraceCall.line", "TraceSnapshot.origin", "TraceStepSnapshot.first_node",
}  # fmt: skip
"""Where 0 would be the first one: -1."""
AT_LEAST_ONE = {
    "BackwardSnapshot.pass_number", "GraphSnapshot.parts", "StepNumbers.batches",
    "TraceSnapshot.parts", "TrainingSnapshot.processes",
}  # fmt: skip
USUALLY_TRUE = {
    "BackwardSnapshot.retain_graph", "Breakpoint.enabled", "ExportCommand.verify",
    "GradcheckCommand.double", "ModuleRow.training", "OutputTailSnapshot.is_whole",
    "TraceStepSnapshot.grad_enabled", "WeightRow.persistent", "ZeroGradientsCommand.set_to_none",
}  # fmt: skip
NOT_KNOWN = {
    "PredictionsSnapshot.accuracy", "PredictionsSnapshot.r2", "TrainingSnapshot.guess_accuracy",
    "TrialProgress.value",
}  # fmt: skip
SIZES = {
    "FlowCommand.steps": 60, "LandscapeCommand.points": 31, "LandscapeCommand.span": 1.0,
    "LandscapeCommand.batches": 4, "LinesCommand.lines": 6, "ReadStorageCommand.count": 1024,
    "ReadModuleNormsCommand.depth": 99,
    # as torch.autograd.gradcheck
    "GradcheckCommand.eps": 1e-6, "GradcheckCommand.atol": 1e-5, "GradcheckCommand.rtol": 1e-3,
}  # fmt: skip
FLAGS = {
    "newest_only": {
        "CheckModel", "Complete", "DescribeData", "Explain", "GraphNumbers", "ListRuns", "Locate",
        "NodeDetail", "ReadElement", "ReadEntry", "ReadHistograms", "ReadImages",
        "ReadModuleNorms", "ReadParameters", "ReadPredictions", "ReadRanks", "WriteStep",
    },
    "while_held": {
        "CheckRule", "CompareGradients", "EditGradient", "ReadBackwardCode", "GraphNumbers",
        "Inspect", "MoveBackward", "NodeDetail", "OpenArtifact", "Rule", "RuleOps", "RunHeld",
        "SetBreakpoints", "StartBackward", "UneditGradient", "WhyNoGradient", "ZeroGradients",
    },
    "while_running": {
        "Aliases", "AnnotateRun", "Bits", "Broadcast", "CompareRuns", "Complete", "Lines",
        "ListRuns", "Locate", "Pick", "Product", "ReadAnnotations", "ReadElement",
        "ReadHistograms", "ReadImages", "ReadModuleNorms", "ReadParameters", "ReadRanks",
        "ReadRun", "ReadStorage", "ReadValues", "ReadVariables", "Reduction", "ShowSubject",
        "Statistics",
    },
    "apart": {
        "AnnotateRun", "CompareRuns", "ListRuns", "ReadAnnotations", "ReadRun",
    },
}  # fmt: skip


def _default(struct: type[msgspec.Struct], name: str) -> object:
    return {field.name: field.default for field in msgspec.structs.fields(struct)}[name]


def test_a_number_that_a_message_leaves_out_is_zero_unless_that_would_say_something() -> None:
    every = {
        kind.__name__: kind
        for kind in message_types(msgspec.Struct)
        if kind.__module__.startswith("engine.protocol")
    }
    found = {
        f"{struct}.{field.name}": field.default
        for struct, kind in every.items()
        for field in msgspec.structs.fields(kind)
        if isinstance(field.default, bool | int | float)
    }
    nan = {name for name, value in found.items() if math.isnan(value)}
    assert nan == NOT_KNOWN
    for name in found.keys() - nan:
        expected = (
            -1 if name in PLACES
            else 1 if name in AT_LEAST_ONE
            else SIZES.get(name, name in USUALLY_TRUE)
        )  # fmt: skip
        assert found[name] == expected, name
    assert found.keys() >= PLACES | AT_LEAST_ONE | USUALLY_TRUE | SIZES.keys()
    assert EACH_MODULE == 99
    assert _default(every["FitSnapshot"], "counts") == (0, 0, 0)
    assert _default(every["ValuesSnapshot"], "picture_step") == (1, 1)


def test_the_tolerances_of_a_check_are_those_of_torch() -> None:
    theirs = inspect.signature(torch.autograd.gradcheck).parameters
    ours = GradcheckCommand(function="f")
    assert {name: getattr(ours, name) for name in ("eps", "atol", "rtol")} == {
        name: theirs[name].default for name in ("eps", "atol", "rtol")
    }


@pytest.mark.parametrize("flag", FLAGS)
def test_which_commands_are_answered_at_once_or_dropped_for_a_newer_one(flag: str) -> None:
    flagged = {kind.__name__ for kind in COMMANDS if getattr(kind, flag)}
    assert flagged == {f"{name}Command" for name in FLAGS[flag]}
