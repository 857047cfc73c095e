"""Which operation gave the first number that is not finite, in forward or in backward."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node

from ...restoring.module_kept import module_kept
from ..objectives.batches import tensors_in
from ..objectives.objective import Outcome
from .seen_calls import Call, seen_calls

_HINTS = {
    "log log2 log10": "The logarithm of 0 is -inf, of less it is NaN: clamp its input,"
    " or use log_softmax.",
    "sqrt rsqrt": "The square root is NaN below 0, and its gradient is infinite at 0: add a small"
    " number under the root.",
    "norm vector_norm std": "The gradient of a root at 0 is not finite: add a small number.",
    "div __truediv__ __rtruediv__ reciprocal": "A division by 0: add a small number below.",
    "exp": "exp overflows float32 above 88.7: subtract the largest value first.",
    "pow __pow__": "A power of 0 or of less: its value or its gradient is not finite.",
}
_HINT = "Look at its inputs; then lower the learning rate, clip the gradients, or scale the data."


class Origin(NamedTuple):
    """`text` names in one sentence where the numbers come from. `module` and `parameter` are paths,
    `file` and `line` those of the user's code; empty where there is none."""

    text: str
    hint: str
    module: str = ""
    parameter: str = ""
    file: str = ""
    line: int = 0


def is_finite(tensor: Tensor) -> bool:
    """Whether no number of it is NaN or infinite; True for dtypes without such numbers."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return True
    if tensor.is_sparse:
        tensor = tensor.coalesce().values()
    return bool(torch.isfinite(tensor).all())


def origin_of_loss(model: nn.Module, batch: Any, run: Callable[[], Outcome]) -> Origin | None:
    """Where a loss that is not finite comes from: numbers of the model or the batch, else the first
    call with such a result. `run` runs the model and the loss on the batch once more; the model is
    left as it was. None if the loss is finite this time."""
    found = _in_numbers(model, batch)
    if found is not None:
        return found
    seen: list[tuple[Call, list[Tensor], bool]] = []  # those with a result that is not finite

    def saw(
        call: Callable[[], Call], func: Callable, args: tuple, kwargs: dict[str, Any], result: Any
    ) -> None:
        results = [each for each in tensors_in(result) if not is_finite(each)]
        if results:
            has_nan = any(bool(each.isnan().any()) for each in results)
            seen.append((call(), [*tensors_in(args), *tensors_in(kwargs)], has_nan))

    with module_kept(model, None), torch.no_grad(), seen_calls(model, saw):
        loss = run().loss
    if is_finite(loss) or not seen:
        return None
    # An infinite number can be meant (a mask): if the loss is NaN, the first NaN counts.
    wants_nan = bool(loss.isnan())
    call, inputs, _ = next(each for each in seen if each[2] or not wants_nan)
    what = "NaN" if wants_nan else "an infinite number"
    text = f"In forward, {call} is the first to give {what}{_ranges(inputs)}."
    first = seen[0][0]
    if first != call and not all(map(is_finite, inputs)):
        text += f" The first infinite number came from {first}."
    return _of_call(call, text)


def origin_of_gradient(model: nn.Module, run: Callable[[], Outcome]) -> Origin | None:
    """Which node of backward gave the first gradient that is not finite, as `origin_of_loss`."""
    calls: dict[Node, Call] = {}
    found: list[Node] = []

    def saw(
        call: Callable[[], Call], func: Callable, args: tuple, kwargs: dict[str, Any], result: Any
    ) -> None:
        for each in tensors_in(result):
            if each.grad_fn is not None and each.grad_fn not in calls:
                calls[each.grad_fn] = call()

    def look(node: Node, grad_inputs: Iterable[Any], grad_outputs: Iterable[Any]) -> None:
        if not found and _all_finite(grad_outputs) and not _all_finite(grad_inputs):
            found.append(node)

    parameters = [p for p in model.parameters() if p.requires_grad]
    with module_kept(model, None), torch.enable_grad():
        with seen_calls(model, saw):
            loss = run().loss
        assert loss.grad_fn is not None
        hooks = []
        of_call: dict[Node, Call] = {}
        for node, label in _labelled(loss.grad_fn, calls):
            if label is not None:
                of_call[node] = label
            hooks.append(
                node.register_hook(lambda gi, go, node=node: look(node, gi, go))  # pyright: ignore
            )
        torch.autograd.grad(loss, parameters, allow_unused=True)
        for hook in hooks:
            hook.remove()
    if not found:
        return None
    node = found[0]
    call = of_call.get(node)
    of = f" of {call}" if call is not None else ""
    text = f"In backward, {node.name()}{of} gave the first gradient that is not finite."
    return Origin(text, _HINT) if call is None else _of_call(call, text)


def _in_numbers(model: nn.Module, batch: Any) -> Origin | None:
    named = [("parameter", *each) for each in model.named_parameters()]
    named += [("buffer", *each) for each in model.named_buffers()]
    for kind, name, tensor in named:
        if not is_finite(tensor):
            count = int(torch.isfinite(tensor).logical_not().sum())
            text = f"The {kind} `{name}` has {count:,} numbers that are NaN or infinite."
            hint = "Go back to before it got them, or begin with fresh weights."
            parameter = name if kind == "parameter" else ""
            return Origin(text, hint, name.rpartition(".")[0], parameter)
    for place, tensor in enumerate(tensors_in(batch)):
        if not is_finite(tensor):
            rows = torch.isfinite(tensor).logical_not().reshape(len(tensor), -1).any(1)
            where = rows.nonzero().flatten().tolist()
            listed = ", ".join(map(str, where[:5])) + (", …" if len(where) > 5 else "")
            text = f"Tensor {place} of the batch has NaN or infinite numbers, in sample {listed}."
            return Origin(text, "Mend or leave out these samples of the data.")
    return None


def _labelled(root: Node, calls: dict[Node, Call]) -> Iterator[tuple[Node, Call | None]]:
    """The nodes under the root, each with the call that made it: its own, else that of the node
    which uses its result."""
    waiting, seen = [(root, calls.get(root))], {root}
    while waiting:
        node, label = waiting.pop()
        yield node, label
        for each, _ in node.next_functions:
            if each is not None and each not in seen:
                seen.add(each)
                waiting.append((each, calls.get(each, label)))


def _all_finite(gradients: Iterable[Any]) -> bool:
    return all(is_finite(each) for each in gradients if isinstance(each, Tensor))


def _ranges(inputs: list[Tensor]) -> str:
    """“; its inputs reach from -0.3 to 4.1” of the first input of real numbers."""
    for tensor in inputs:
        if tensor.is_floating_point() and tensor.numel():
            low, high = (float(each) for each in torch.aminmax(tensor.detach()))
            return f"; its first input reaches from {low:.4g} to {high:.4g}"
    return ""


def _of_call(call: Call, text: str) -> Origin:
    name = call.name.rpartition(".")[2]
    hint = next((words for names, words in _HINTS.items() if name in names.split()), _HINT)
    return Origin(text, hint, call.module or "", "", call.file, call.line)
