"""The union of all snapshots: what the window's side can decode."""

from __future__ import annotations

from .autograd_snapshots import (
    BackwardScriptSnapshot,
    BackwardSnapshot,
    ComparisonSnapshot,
    ForwardSnapshot,
    GraphSnapshot,
    ValueSnapshot,
    WhyNoGradientSnapshot,
)
from .derivative_snapshots import DerivativeSnapshot, EntrySnapshot, GradcheckSnapshot
from .flow_snapshots import FlowHistogramsSnapshot, FlowSnapshot
from .rule_snapshots import RuleCheckSnapshot, RuleOpsSnapshot, RuleSnapshot
from .snapshots import (
    CellSnapshot,
    CompletionsSnapshot,
    DoneSnapshot,
    ErrorSnapshot,
    ExportSnapshot,
    ModelSnapshot,
    OutputSnapshot,
    ReadySnapshot,
    TensorsSnapshot,
    TrainingSnapshot,
    VariablesSnapshot,
    WeightsSnapshot,
)
from .tensor_snapshots import (
    AliasesSnapshot,
    BitsSnapshot,
    BroadcastSnapshot,
    ExplanationSnapshot,
    LinesSnapshot,
    LocationSnapshot,
    PickSnapshot,
    ProductSnapshot,
    ReductionSnapshot,
    StatisticsSnapshot,
    StorageSnapshot,
    ValuesSnapshot,
)
from .trace_snapshots import (
    NodeDetailSnapshot,
    TraceRootSnapshot,
    TraceSnapshot,
    TraceStepSnapshot,
)

AnySnapshot = (
    ReadySnapshot
    | ErrorSnapshot
    | DoneSnapshot
    | ModelSnapshot
    | WeightsSnapshot
    | ForwardSnapshot
    | GraphSnapshot
    | BackwardSnapshot
    | BackwardScriptSnapshot
    | ComparisonSnapshot
    | ValueSnapshot
    | TrainingSnapshot
    | ExportSnapshot
    | OutputSnapshot
    | TensorsSnapshot
    | CellSnapshot
    | VariablesSnapshot
    | CompletionsSnapshot
    | BroadcastSnapshot
    | ReductionSnapshot
    | ProductSnapshot
    | PickSnapshot
    | ValuesSnapshot
    | StatisticsSnapshot
    | LinesSnapshot
    | BitsSnapshot
    | StorageSnapshot
    | LocationSnapshot
    | AliasesSnapshot
    | ExplanationSnapshot
    | NodeDetailSnapshot
    | TraceSnapshot
    | TraceStepSnapshot
    | TraceRootSnapshot
    | WhyNoGradientSnapshot
    | DerivativeSnapshot
    | EntrySnapshot
    | GradcheckSnapshot
    | FlowSnapshot
    | FlowHistogramsSnapshot
    | RuleSnapshot
    | RuleCheckSnapshot
    | RuleOpsSnapshot
)
