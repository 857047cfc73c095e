"""The union of all snapshots: what the window's side can decode."""

from __future__ import annotations

from .autograd_snapshots import (
    BackwardSnapshot,
    ComparisonSnapshot,
    ForwardSnapshot,
    GraphSnapshot,
    ValueSnapshot,
)
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
    LocationSnapshot,
    PickSnapshot,
    ProductSnapshot,
    ReductionSnapshot,
    StatisticsSnapshot,
    StorageSnapshot,
    ValuesSnapshot,
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
    | BitsSnapshot
    | StorageSnapshot
    | LocationSnapshot
    | AliasesSnapshot
    | ExplanationSnapshot
)
