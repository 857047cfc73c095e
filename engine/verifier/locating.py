"""The first module of a program whose output is not that of the live module."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .jobs import Located, LocateJob
from .programs import OnnxProgram, open_program
from .values import ModuleCall, difference, leaves, read_calls

_SCOPES = "pkg.torch.onnx.name_scopes"


def locate(job: LocateJob) -> Located:
    """Find the first module, in the order in which the live modules' calls ended, whose output
    differs: an inner module comes before the one around it."""
    calls = read_calls(job.calls)
    if job.format == "onnx":
        same = _of_onnx(job.path, calls)
    elif job.format == "pt2":
        same = _of_modules(torch.export.unflatten(torch.export.load(job.path)), calls)
    else:
        program = open_program(job.format, job.path, job.weights)
        assert isinstance(program, nn.Module)
        script = isinstance(program, torch.jit.ScriptModule)
        same = _of_script(program) if script else _of_modules(program, calls)
    return Located(next((call.path for call in calls if same(call) is False), None))


def _agree(expected: list[Tensor], found: list[Tensor]) -> bool:
    pairs = zip(expected, found, strict=False)
    return len(expected) == len(found) and all(difference(x, y).agrees for x, y in pairs)


def _of_modules(program: nn.Module, calls: list[ModuleCall]) -> Callable[[ModuleCall], bool | None]:
    """Run the whole program on the inputs of the whole model, and look at what each module gives.
    torch.export calls the second call of a module `path@1`."""
    found: dict[tuple[str, int], list[Tensor]] = {}
    counted: Counter[str] = Counter()

    def hook(path: str) -> Callable[..., None]:
        name, _, number = path.partition("@")

        def see(module: nn.Module, args: Any, output: Any) -> None:
            count = int(number) if number else counted[name]
            counted[name] += 1
            found[name, count] = leaves(output)

        return see

    for path, module in program.named_modules():
        module.register_forward_hook(hook(path))
    whole = calls[-1]
    torch.manual_seed(0)
    with torch.no_grad():
        program(*whole.args, **whole.kwargs)

    def same(call: ModuleCall) -> bool | None:
        outputs = found.get((call.path, call.number))
        return None if outputs is None else _agree(call.outputs, outputs)

    return same


def _of_script(program: nn.Module) -> Callable[[ModuleCall], bool | None]:
    """TorchScript runs its modules without Python: each is run by itself, on the inputs that the
    live one had."""

    modules = dict(program.named_modules())

    def same(call: ModuleCall) -> bool | None:
        if call.path not in modules:
            return None
        torch.manual_seed(0)
        try:
            with torch.no_grad():
                output = modules[call.path](*call.args, **call.kwargs)
        except Exception:  # a traced module takes tensors only
            return None
        return _agree(call.outputs, leaves(output))

    return same


def _of_onnx(path: str, calls: list[ModuleCall]) -> Callable[[ModuleCall], bool | None]:
    """The last node of a module gives its output, unless the converter has merged it away."""
    import onnx

    last: dict[str, str] = {}
    for node in onnx.load(path).graph.node:
        told = {each.key: each.value for each in node.metadata_props}
        for scope in ast.literal_eval(told.get(_SCOPES, "[]"))[:-1]:
            last[scope] = node.output[0]
    outputs = {call.path: last[call.path] for call in calls if call.path and call.path in last}
    program = OnnxProgram(path, tuple(dict.fromkeys(outputs.values())))
    whole = calls[-1]
    values = dict(zip(program.outputs, program(*whole.args, **whole.kwargs), strict=True))
    several = Counter(call.path for call in calls)

    def same(call: ModuleCall) -> bool | None:
        if call.path not in outputs or several[call.path] > 1 or len(call.outputs) != 1:
            return None
        value = values[outputs[call.path]]
        if value.shape != call.outputs[0].shape:  # it is another value of the module's
            return None
        return _agree(call.outputs, [value])

    return same
