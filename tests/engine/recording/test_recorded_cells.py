"""Cells of all kinds run the same whether they are recorded lightly, traced, or not at all."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from engine.console.output import Output
from engine.handlers.trace import move_trace, start_trace
from engine.lab import Lab
from engine.protocol import (
    MoveTraceCommand,
    StartTraceCommand,
    TraceSnapshot,
    encode_snapshot,
    join_trace,
)

CELLS = {
    "vmap": "r = torch.func.vmap(lambda a: a.sin().sum())(torch.arange(6.).reshape(2, 3))",
    "grad": "r = torch.func.grad(lambda a: (a**3).sum())(torch.tensor([1., 2.]))",
    "hessian": "r = torch.func.hessian(lambda a: (a**3).sum())(torch.tensor([1., 2.]))",
    "jvp": "r = torch.func.jvp(torch.sin, (torch.tensor(1.),), (torch.tensor(1.),))[1]",
    "inference": "with torch.inference_mode():\n    r = torch.ones(2) * 2\n    r += 1",
    "sparse": "r = torch.sparse.mm(torch.eye(3).to_sparse(), torch.ones(3, 2))",
    "nested": (
        "a = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(3, 3)],"
        " layout=torch.jagged)\nr = (a * 2).values()"
    ),
    "meta": "r = torch.tensor((torch.ones(3, device='meta') * 2).shape[0])",
    "complex": (
        "a = torch.ones(3, dtype=torch.complex64, requires_grad=True)\n"
        "(a.conj() * a).abs().sum().backward()\nr = a.grad"
    ),
    "training": (
        "torch.manual_seed(0)\nnet = nn.Sequential(nn.Linear(2, 4), nn.Dropout(), nn.Linear(4, 1))"
        "\n"
        "opt = torch.optim.Adam(net.parameters())\nfor _ in range(3):\n    opt.zero_grad()\n"
        "    loss = net(torch.ones(4, 2)).square().mean()\n    loss.backward()\n    opt.step()\n"
        "r = loss.detach()"
    ),
    "own mode": (
        "from torch.utils._python_dispatch import TorchDispatchMode\nn = 0\n"
        "class Count(TorchDispatchMode):\n"
        "    def __torch_dispatch__(self, f, types, args=(), kwargs=None):\n"
        "        global n\n        n += 1\n        return f(*args, **(kwargs or {}))\n"
        "with Count():\n    torch.ones(2, 3) @ torch.ones(3, 4)\nr = torch.tensor(n)"
    ),
    "subclass": (
        "class T(torch.Tensor):\n    pass\n"
        "r = (torch.ones(3).as_subclass(T) * 2).as_subclass(torch.Tensor)"
    ),
    "thread": (
        "import threading\nout = []\ndef go():\n    x = torch.ones(2, requires_grad=True)\n"
        "    out.append(nn.Identity()(x * 2).detach())\n"
        "t = threading.Thread(target=go)\nt.start()\nt.join()\nr = out[0] + 0"
    ),
    "numpy": "a = torch.ones(3)\na.numpy()[:] += 1\nr = a * 2",
    "hooks": (
        "x = torch.ones(3, requires_grad=True)\ny = x * 2\ny.register_hook(lambda g: g * 3)\n"
        "y.sum().backward()\nr = x.grad"
    ),
    "shrunk": "a = torch.ones(4)\nr = a * 2\na.untyped_storage().resize_(0)",
    "raising module": (
        "class B(nn.Module):\n    def forward(self, x):\n        raise ValueError('no')\n"
        "try:\n    nn.Sequential(nn.Identity(), B())(torch.ones(1))\nexcept ValueError:\n    pass\n"
        "r = torch.ones(2) * 3"
    ),
    "checkpoint": (
        "from torch.utils.checkpoint import checkpoint\nx = torch.ones(3, requires_grad=True)\n"
        "checkpoint(lambda a: a.sin().exp(), x, use_reentrant=False).sum().backward()\nr = x.grad"
    ),
    "compiled": (
        "r = torch.compile(lambda a: (a * 2).sin(), backend='eager', fullgraph=True)(torch.ones(3))"
    ),
}


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_gives_the_same(name: str) -> None:
    plain = {"torch": torch, "nn": nn, "np": np, "F": F, "__name__": "__main__"}
    exec(CELLS[name], plain)
    lab = Lab(emit=lambda snapshot: None)
    output = Output(lambda told: None)
    error, _ = lab.console.namespace.run(CELLS[name], "<cell>", output, lab.control)
    assert error is None, error
    assert torch.equal(lab.console.namespace.variables["r"], plain["r"])

    lab = Lab(emit=lambda snapshot: None)
    answers = list(start_trace(lab, StartTraceCommand(source=CELLS[name])))
    trace = join_trace([a for a in answers if isinstance(a, TraceSnapshot)])
    assert trace.error is None, trace.error
    assert torch.equal(lab.console.namespace.variables["r"], plain["r"])
    assert trace.calls
    for _ in trace.calls:
        (step,) = move_trace(lab, MoveTraceCommand(move="step"))
        assert encode_snapshot(step)


def test_a_module_that_raises_is_marked() -> None:
    lab = Lab(emit=lambda snapshot: None)
    answers = list(start_trace(lab, StartTraceCommand(source=CELLS["raising module"])))
    trace = join_trace([a for a in answers if isinstance(a, TraceSnapshot)])
    failed = [call.name for call in trace.calls if call.mark == "error" and call.kind != "line"]
    assert failed == ["Sequential", "B"]
