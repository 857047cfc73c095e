"""Figures of chosen modules in each optimizer step: their outputs, and the gradients of these and
of their parameters."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..project.subject import Subject
from ..protocol import MAX_WATCHED, WATCHED_FIGURES, WHOLE_SUBJECT
from ..recording.compiled import add_forward_hook, own_modules
from ..restoring.module_kept import has_other_contents
from ..system.errors import LabError
from ..system.private_torch import current_graph_task_id, foreach_norm
from ..training.objectives.batches import tensors_in
from .hooks import quiet


class Watching:
    """Watches modules of one subject: `watch` puts hooks on them, or takes them away. The hooks
    change no number, and keep no tensor but sums.

    The figures of a step are over all calls of a module since the last `begin` in which autograd
    records (a recomputation inside backward is not counted); of an output with several
    tensors, the first real one counts.
    """

    def __init__(self) -> None:
        self.subject: Subject | None = None
        self._module: weakref.ref[nn.Module] | None = None
        self._parts: dict[str, _Watched] = {}

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self._parts)

    def watch(self, subject: Subject, module: nn.Module, paths: Sequence[str]) -> None:
        """Watch exactly these parts of the subject's module. Raises LabError, and changes nothing,
        for a part that it does not have or that is never called, and for more than MAX_WATCHED."""
        parts = {path: part for path, part, _ in own_modules(module, remove_duplicate=False)}
        if unknown := [path for path in paths if path not in parts]:
            raise LabError(f"{type(module).__name__} has no module `{unknown[0]}`.")
        for path in paths:
            if reason := _why_not_called(parts, path):
                raise LabError(
                    f"{reason}, so it cannot be watched.", hint="Watch the whole subject."
                )
        if len(paths) > MAX_WATCHED:
            raise LabError(
                f"At most {MAX_WATCHED} modules are watched at a time.",
                hint="Take the mark off another one first.",
            )
        self._end()
        self.subject, self._module = subject, weakref.ref(module)
        self._parts = {path: _Watched(parts[path]) for path in dict.fromkeys(paths)}

    def follow(self, subject: Subject, module: nn.Module) -> None:
        """The subject's module may have been made again: watch the same parts of it."""
        if not self._parts or subject != self.subject:
            return
        if self._module is None or self._module() is not module:
            known = {path for path, _, _ in own_modules(module, remove_duplicate=False)}
            self.watch(subject, module, [path for path in self._parts if path in known])

    def begin(self, is_measured: bool = True) -> None:
        """A step begins. One that is not measured costs next to nothing."""
        for part in self._parts.values():
            part.begin(is_measured)

    def take(self) -> dict[str, Tensor]:
        """The figures since `begin`, 0-dim, by module and WATCHED_FIGURES; then a step begins. A
        module that was not called has none."""
        found: dict[str, Tensor] = {}
        with quiet():
            for path, part in self._parts.items():
                title = path or WHOLE_SUBJECT
                found.update({f"{title}: {name}": value for name, value in part.figures().items()})
                part.begin(is_measured=True)
        return found

    def _end(self) -> None:
        for part in self._parts.values():
            part.end()
        self._parts = {}


def _why_not_called(parts: Mapping[str, nn.Module], path: str) -> str:
    """Why no hook of this part is ever called; "" if it may be."""
    names = path.split(".") if path else []
    for depth in range(len(names)):
        around, inside = parts[".".join(names[:depth])], ".".join(names[depth:])
        if isinstance(around, torch.jit.ScriptModule):
            return f"TorchScript runs `{path}` without Python"
        if isinstance(around, torch.fx.GraphModule) and not any(
            node.op == "call_module" and f"{inside}.".startswith(f"{node.target}.")
            for node in around.graph.nodes
        ):
            return f"The graph has the operations of `{path}` and never calls it"
    return ""


class _Sums(NamedTuple):
    """Sums over some numbers: how many there are, their mean, the sum of the squared distances from
    it, and how many are 0."""

    count: int
    mean: Tensor
    squares: Tensor
    zeros: Tensor


class _Watched:
    """One module with its hook."""

    def __init__(self, module: nn.Module) -> None:
        self._module = weakref.ref(module)
        self._handle = add_forward_hook(module, self._on_output)
        self.begin(is_measured=True)

    def __deepcopy__(self, memo: dict[int, Any]) -> _Watched:
        """A copy of the module is not watched: it calls this hook, which it leaves alone."""
        return self

    def begin(self, is_measured: bool) -> None:
        self._is_measured = is_measured
        self._sums: _Sums | None = None
        self._gradient_squares: Tensor | None = None

    def end(self) -> None:
        self._handle.remove()
        self._is_measured = False  # a graph may still hold a hook on an output

    def figures(self) -> Mapping[str, Tensor]:
        """The figures by their names in WATCHED_FIGURES; before backward, those of gradients are
        missing."""
        sums, module = self._sums, self._module()
        if sums is None or module is None:
            return {}
        n = sums.count
        values = [
            sums.mean,
            (sums.squares / max(n - 1, 0)).sqrt(),
            sums.zeros / n,
            (sums.squares + n * sums.mean**2).sqrt(),
            None if self._gradient_squares is None else self._gradient_squares.sqrt(),
            _gradient_norm(module),
        ]
        named = zip(WATCHED_FIGURES, values, strict=True)
        return {name: value.to(sums.mean.device) for name, value in named if value is not None}

    def _on_output(self, module: nn.Module, args: Any, result: Any) -> None:
        if not self._is_measured or module is not self._module() or has_other_contents(module):
            return
        if not torch.is_grad_enabled() or _is_inside_backward():
            return
        try:
            output = next(filter(_is_real, tensors_in(result)), None)
            if output is None:
                return
            with quiet():
                sums = _sums(output.detach())
                self._sums = sums if self._sums is None else _joined(self._sums, sums)
                if output.requires_grad:
                    output.register_hook(self._on_gradient)
        except Exception:  # tensors of the user's own classes may raise; the step goes on
            logging.getLogger(__name__).exception("A module cannot be watched.")
            self.end()

    def _on_gradient(self, gradient: Tensor) -> None:
        if not self._is_measured:
            return
        with quiet():
            squares = _numbers(gradient).square().sum()
            before = self._gradient_squares
            self._gradient_squares = squares if before is None else before + squares


def _is_real(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.numel() > 0 and tensor.layout == torch.strided


def _is_inside_backward() -> bool:
    return current_graph_task_id() != -1


def _numbers(tensor: Tensor) -> Tensor:
    """The numbers of the tensor, in float32 or wider."""
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def _sums(tensor: Tensor) -> _Sums:
    numbers = _numbers(tensor)
    variance, mean = torch.var_mean(numbers, correction=0)
    return _Sums(tensor.numel(), mean, variance * tensor.numel(), (numbers == 0).sum())


def _joined(a: _Sums, b: _Sums) -> _Sums:
    """The sums over all numbers together (T. Chan, G. Golub, R. LeVeque, "Updating formulae and a
    pairwise algorithm for computing sample variances", 1979)."""
    count = a.count + b.count
    apart = b.mean - a.mean
    mean = a.mean + apart * (b.count / count)
    squares = a.squares + b.squares + apart**2 * (a.count * b.count / count)
    return _Sums(count, mean, squares, a.zeros + b.zeros)


def _gradient_norm(module: nn.Module) -> Tensor | None:
    """The 2-norm over the gradients of all parameters of the module; None without any."""
    gradients = [_numbers(p.grad) for p in module.parameters() if p.grad is not None]
    if not gradients:
        return None
    device = gradients[0].device
    norms = [norm.to(device) for norm in foreach_norm(gradients)]
    return torch.linalg.vector_norm(torch.stack(norms))
