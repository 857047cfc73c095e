"""Autograd from the inside: read the graph under a tensor, step through its backward pass.

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

`BreakMode` is stepped alike, and is torch's own single run of `backward()`, held before each node:
it frees saved tensors as it goes and cannot go back.

`step.incoming` and `step.outgoing` hold None where a gradient is undefined. Stepping to the end
leaves in `.grad` the same bits as `y.backward()`.
"""

from .break_mode import BreakMode
from .graph import Edge, Graph, Node, SavedTensor, read_graph
from .stepped_pass import Step, SteppedPass
from .stepper import BackwardStepper

__all__ = [
    "BackwardStepper",
    "BreakMode",
    "Edge",
    "Graph",
    "Node",
    "SavedTensor",
    "Step",
    "SteppedPass",
    "read_graph",
]
