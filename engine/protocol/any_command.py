"""The union of all commands: what the engine's side can decode."""

from __future__ import annotations

from .autograd_commands import (
    CheckRuleCommand,
    CompareGradientsCommand,
    DerivativeCommand,
    EditGradientCommand,
    ExportBackwardCommand,
    FlowCommand,
    GradcheckCommand,
    InspectCommand,
    MoveBackwardCommand,
    MoveForwardCommand,
    MoveTraceCommand,
    NodeDetailCommand,
    ReadEntryCommand,
    ReadFlowCommand,
    RuleCommand,
    RuleOpsCommand,
    SetBreakpointsCommand,
    StartBackwardCommand,
    StartForwardCommand,
    StartTraceCommand,
    TraceRootCommand,
    UneditGradientCommand,
    WhyNoGradientCommand,
    ZeroGradientsCommand,
)
from .commands import (
    CheckModelCommand,
    CompleteCommand,
    ContinueTrainingCommand,
    ExportCommand,
    HelloCommand,
    InitialiseCommand,
    NewNamespaceCommand,
    ReadVariablesCommand,
    RunCellCommand,
    StepTrainingCommand,
    TrainCommand,
)
from .tensor_commands import (
    AliasesCommand,
    BitsCommand,
    BroadcastCommand,
    ExplainCommand,
    LinesCommand,
    LocateCommand,
    PickCommand,
    ProductCommand,
    ReadStorageCommand,
    ReadValuesCommand,
    ReductionCommand,
    StatisticsCommand,
)

AnyCommand = (
    HelloCommand
    | CheckModelCommand
    | InitialiseCommand
    | StartForwardCommand
    | MoveForwardCommand
    | StartBackwardCommand
    | MoveBackwardCommand
    | NodeDetailCommand
    | StartTraceCommand
    | MoveTraceCommand
    | TraceRootCommand
    | SetBreakpointsCommand
    | EditGradientCommand
    | UneditGradientCommand
    | ZeroGradientsCommand
    | ExportBackwardCommand
    | CompareGradientsCommand
    | InspectCommand
    | TrainCommand
    | StepTrainingCommand
    | ContinueTrainingCommand
    | ExportCommand
    | RunCellCommand
    | NewNamespaceCommand
    | ReadVariablesCommand
    | CompleteCommand
    | BroadcastCommand
    | ReductionCommand
    | ProductCommand
    | PickCommand
    | ReadValuesCommand
    | StatisticsCommand
    | LinesCommand
    | BitsCommand
    | ReadStorageCommand
    | LocateCommand
    | AliasesCommand
    | ExplainCommand
    | WhyNoGradientCommand
    | DerivativeCommand
    | ReadEntryCommand
    | GradcheckCommand
    | FlowCommand
    | ReadFlowCommand
    | RuleCommand
    | CheckRuleCommand
    | RuleOpsCommand
)
