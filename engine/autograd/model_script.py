"""The script of a backward pass over the lab's model: its Python, its batch, its loss."""

from __future__ import annotations

import io

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import LabError
from ..models.code import write
from ..models.forward import ForwardPass
from ..training.components import OneHotMSELoss
from .script import Source

_MAIN = 'if __name__ == "__main__":'


_CALL = (
    'if __name__ == "__main__":',
    "    model = run_backward(sys.argv[1])",
    "    for name, parameter in model.named_parameters():",
    "        grad = parameter.grad",
    '        print(name, "no gradient" if grad is None else grad.norm().item())',
)
_CALL_INPUTS = (
    'if __name__ == "__main__":',
    "    for gradient in run_backward(sys.argv[1]):",
    '        print("no gradient" if gradient is None else gradient.norm().item())',
)


def model_source(forward: ForwardPass, inputs: tuple[str, ...] = ()) -> Source:
    """How the script makes the loss: the model's Python, and a batch and weights from the file
    that `model_data` writes. Raises LabError for a loss that cannot be written as code."""
    code = write(forward.document, {}).text.partition(_MAIN)[0].rstrip()
    model = code[code.index("class Model") :]
    made = [
        "data = torch.load(path, weights_only=True)",
        "model = Model()",
        'model.load_state_dict(data["weights"])',
        "for name, parameter in model.named_parameters():",
        '    parameter.grad = data["gradients"].get(name)',
        'torch.set_rng_state(data["random"])',
        'x, y = data["x"], data["y"]',
        f"loss = {_loss(forward.loss_function)}",
    ]
    return Source(
        title="A backward pass stepped in Tensor Lab, with hooks in place of its edits.\n\n"
        "Run it with the file that was saved beside it: python THIS_FILE.py THIS_FILE.pt",
        roots=("loss",),
        gradients=("None",),
        before=model,
        made=tuple(made),
        arguments="path",
        call=_CALL_INPUTS if inputs else _CALL,
        result="model",
        is_alone=True,
        inputs=tuple(f'model.get_parameter("{name}")' for name in inputs),
    )


def model_data(
    forward: ForwardPass, gradients: dict[str, Tensor], variables: dict[str, Tensor]
) -> bytes:
    """The file that the script loads: weights and buffers as they were before forward, the batch,
    the state of the random numbers, each parameter's `.grad` from before the pass, and the tensors
    of the console that edits use."""
    state = {**forward.module.state_dict(), **forward.buffers_before()}
    buffer = io.BytesIO()
    torch.save(
        {
            "weights": {name: tensor.detach().cpu() for name, tensor in state.items()},
            "gradients": {name: gradient.cpu() for name, gradient in gradients.items()},
            "variables": {name: tensor.detach().cpu() for name, tensor in variables.items()},
            "x": forward.x.cpu(),
            "y": forward.y.cpu(),
            "random": torch.Generator().manual_seed(forward.seed).get_state(),
        },
        buffer,
    )
    return buffer.getvalue()


def _loss(function: object) -> str:
    if isinstance(function, OneHotMSELoss):
        target = "F.one_hot(y, prediction.shape[1]).to(prediction.dtype)"
        return f"F.mse_loss((prediction := model(x)), {target}, reduction={function.reduction!r})"
    if isinstance(function, nn.CrossEntropyLoss):
        arguments = {
            "ignore_index": (function.ignore_index, -100),
            "reduction": (function.reduction, "mean"),
            "label_smoothing": (function.label_smoothing, 0.0),
        }
        given = [f"{name}={v!r}" for name, (v, default) in arguments.items() if v != default]
        return f"F.cross_entropy({', '.join(['model(x)', 'y', *given])})"
    name = getattr(function, "__name__", "")
    if getattr(functional, name, None) is function:
        return f"F.{name}(model(x), y)"
    raise LabError("This loss cannot be written as Python.", hint="Use a loss of the catalogue.")
