"""Autograd from the inside: read the graph under a tensor, step through its backward pass.

Not here: the numbers in tensors (`tensors`), recording the calls of torch (`recording`).

```python
import torch
from tensorlab.engine.autograd import BackwardStepper, read_graph

x = torch.tensor(3.0, requires_grad=True)
y = x**3

for node in read_graph(y, names={"x": x}).nodes:
    print(node.id, node.op, node.label, node.outputs, node.saved_bytes)

with BackwardStepper(y) as stepper:
    while (step := stepper.step()) is not None:
        print(step.node.name, step.incoming, "->", step.outgoing)
    # PowBackward0 (tensor(1.),) -> (tensor(27.),)
    # AccumulateGrad (tensor(27.),) -> ()
    stepper.reset()                                         # x.grad is None again
    stepper.edit(0, torch.tensor(10.0))                     # as a pre-hook on PowBackward0
    stepper.run()                                           # x.grad is 270
```

`BreakMode` has the same methods. It is one run of torch's own `backward()`, held before each node:
it frees saved tensors as it goes, and cannot go back.

`Recorder` finds the module, function, operator and line that made a node:

```python
with Recorder() as recorder:        # or LightRecorder: functions and lines only
    loss = net(x).square().mean()
node = read_graph(loss).nodes[0]
for call in recorder.recording.chain_of(node.sequence):
    print(call.kind, call.name, call.module, call.source)
    # function mean  SourceLine(file='train.py', line=2, text='loss = net(x).square().mean()')
    # op aten::mean  SourceLine(file='train.py', line=2, text='loss = net(x).square().mean()')
```

With a `Recorder` each call keeps its arguments and results as they were when it ran, even if they
were overwritten later (`engine.autograd.trace.trace.Trace` steps through them).

`rule_of` gives the rule of a step as a formula, computes it, and fills in its numbers:

```python
rule = rule_of(step.node, step.incoming)
rule.formula(0)                             # "∂L/∂x = g · n · x^(n - 1)"
rule.numbers(0, ()).lines[1:]               # ("= 1 · 3 · 3^(3 - 1)", "= 27")
```

`step.incoming` and `step.outgoing` hold None where a gradient is undefined. Stepping to the end
leaves in `.grad` the same bits as `y.backward()`.
"""

from ..recording.light.light_recorder import LightRecorder
from ..recording.recorder import Recorder
from ..recording.recording import Call, Recording
from .backward.held_engine import BreakMode
from .backward.stepper import BackwardStepper
from .backward.stepping import Step, SteppedPass
from .formulas import Rule, rule_of
from .graph.node_facts import SavedTensor
from .graph.reading import Graph, Node, read_graph

__all__ = [
    "BackwardStepper",
    "BreakMode",
    "Call",
    "Graph",
    "LightRecorder",
    "Node",
    "Recorder",
    "Recording",
    "Rule",
    "SavedTensor",
    "Step",
    "SteppedPass",
    "read_graph",
    "rule_of",
]
