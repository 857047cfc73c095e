"""The four questions, asked of every kind of tensor through the session."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from engine.protocol import (
    BroadcastCommand,
    Command,
    ErrorSnapshot,
    PickCommand,
    ProductCommand,
    ReductionCommand,
    RunCellCommand,
    encode_snapshot,
)
from engine.server.session import Session

KINDS = {
    "parameter": lambda: nn.Parameter(torch.randn(3, 4)),
    "bfloat16": lambda: torch.randn(3, 4).bfloat16(),
    "float8": lambda: torch.randn(3, 4).to(torch.float8_e4m3fn),
    "uint16": lambda: torch.ones(3, 4, dtype=torch.uint16),
    "bool": lambda: torch.ones(3, 4, dtype=torch.bool),
    "complex": lambda: torch.randn(3, 4, dtype=torch.complex64),
    "conj": lambda: torch.randn(3, 4, dtype=torch.complex64).conj(),
    "neg": lambda: torch.randn(3, 4, dtype=torch.complex64).conj().imag,
    "coo": lambda: torch.randn(3, 4).to_sparse(),
    "csr": lambda: torch.randn(3, 4).to_sparse_csr(),
    "quantised": lambda: torch.quantize_per_tensor(torch.randn(3, 4), 0.1, 0, torch.qint8),
    "meta": lambda: torch.empty(3, 4, device="meta"),
    "expanded": lambda: torch.randn(3, 1).expand(3, 4),
    "empty": lambda: torch.empty(0, 4),
    "scalar": lambda: torch.tensor(2.0),
    "large": lambda: torch.zeros(1).expand(1 << 16, 1 << 16),
    "deep": lambda: torch.randn((2,) * 8),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "lazy": lambda: nn.LazyLinear(3).weight,
    "shrunk": lambda: _shrunk(),
    "number": lambda: 3.5,
    "text": lambda: "abc",
}


def _shrunk() -> torch.Tensor:
    x = torch.zeros(3, 4)
    x.untyped_storage().resize_(0)
    return x


@pytest.mark.filterwarnings("ignore")  # of torch, about making some of these
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "command",
    [
        BroadcastCommand(operands=("x", "(4,)")),
        BroadcastCommand(operands=("x", "x"), in_place=True),
        ReductionCommand(expression="x", op="sum", dims=(0,)),
        ReductionCommand(expression="x", op="amax", keepdim=True),
        ProductCommand(operands=("x", "x")),
        ProductCommand(operands=("x", "(4, 2)")),
        PickCommand(source="x[1:]"),
        PickCommand(source="x[[0, 0]]"),
        PickCommand(source="x[0]"),
    ],
    ids=lambda command: type(command).__name__,
)
def test_every_kind_of_tensor_is_answered(command: Command, kind: str) -> None:
    snapshots = []
    session = Session(snapshots.append)
    session.handle(RunCellCommand(source="pass"))
    x = KINDS[kind]()
    assert session.lab.console.namespace is not None
    session.lab.console.namespace.variables["x"] = x
    snapshots.clear()
    session.handle(command)
    (answer,) = snapshots
    assert len(encode_snapshot(answer)) < 64 * 1024
    if isinstance(answer, ErrorSnapshot):  # what cannot be answered is refused in words
        assert answer.error.type == "LabError", answer.error
        assert kind in ("nested", "lazy", "number", "text")
    session.close()
