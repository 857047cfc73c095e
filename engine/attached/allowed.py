"""Which commands a window may give to a process of the user's."""

from __future__ import annotations

from ..project.subject import CanvasSubject
from ..protocol import (
    Command,
    CompareArtifactsCommand,
    CompareSubjectsCommand,
    ContinueTrainingCommand,
    DerivativeCommand,
    DescribeDataCommand,
    ExportCommand,
    FlowCommand,
    GradcheckCommand,
    HelloCommand,
    KeepBeforeCommand,
    LoadWeightsCommand,
    MoveTraceCommand,
    PlanExportCommand,
    PreviewInitCommand,
    ReadEntryCommand,
    ReadFlowCommand,
    ReadForwardGraphCommand,
    ReadStructureCommand,
    RunCellCommand,
    ShowSubjectCommand,
    StartBackwardCommand,
    StartTraceCommand,
    StepLineCommand,
    StepTrainingCommand,
    TraceRootCommand,
    TrainCommand,
    WatchCommand,
    WriteStepCommand,
)
from ..system.errors import LabError

_ON_THE_USERS_OBJECTS = frozenset[type[Command]](
    {
        CompareArtifactsCommand,
        CompareSubjectsCommand,
        ContinueTrainingCommand,
        DerivativeCommand,
        DescribeDataCommand,
        ExportCommand,
        FlowCommand,
        GradcheckCommand,
        HelloCommand,
        KeepBeforeCommand,
        LoadWeightsCommand,
        MoveTraceCommand,
        PlanExportCommand,
        PreviewInitCommand,
        ReadEntryCommand,
        ReadFlowCommand,
        ReadForwardGraphCommand,
        ReadStructureCommand,
        StartTraceCommand,
        StepLineCommand,
        StepTrainingCommand,
        TraceRootCommand,
        WatchCommand,
        WriteStepCommand,
    }
)
"""Commands on objects and files that they name, beside those that only read. All others are on the
canvas, on runs of Train, or run other code."""


def refusal(command: Command) -> LabError | None:
    """The refusal for the window if the command is not for a process of the user's."""
    kind = type(command)
    if kind is RunCellCommand:
        return LabError(
            "Your script runs: Python runs among its variables only while it is held.",
            hint="Pause it first.",
        )
    if issubclass(kind, TrainCommand):
        return LabError(
            "Your script trains by itself.",
            hint="Its own loop is drawn here: pause it and step it.",
        )
    only_reads = kind.while_held or kind.while_running or kind.apart
    if not (only_reads or kind in _ON_THE_USERS_OBJECTS):
        return LabError(
            "That is not done inside your script: it would change more than the script's own"
            " objects.",
            hint="Detach, and do it in an engine of this window's own.",
        )
    is_canvas = isinstance(getattr(command, "subject", None), CanvasSubject)
    has_root = isinstance(command, StartBackwardCommand) and (command.root or command.of)
    if is_canvas and not has_root and kind is not ShowSubjectCommand:
        return LabError(
            "The canvas's model is not in your script.",
            hint="Choose a model of the script as the subject.",
        )
    return None
