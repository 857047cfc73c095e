"""Which parameters the loss reaches, and which an optimizer trains."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from ..autograd.graph.reading import AccumulateGrad
from ..recording.recording import Place
from ..subjects.structure import hidden_in, unregistered
from .notes import Names, Notes, counted, listed, shape

WALKS = 6
"""Losses whose graphs are walked, at first and again for each new optimizer."""
MAX_NODES = 5_000
"""The most nodes that are walked in one graph. torch frees nodes that Python has touched by
recursion, which for a much longer chain overflows the stack."""
DECIDED_AFTER = 3
"""Steps of an optimizer before the first finding about its parameters."""
WATCHED_STEPS = 64
"""Steps after which a parameter without a gradient is told while the code still runs."""

_References = list[weakref.ref[Tensor]]


class Trained:
    """Walks the graphs of the first losses, and looks at the optimizers' parameters.

    A parameter that is reached but held by no optimizer, one that is held but never gets a
    gradient, and an optimizer of which no parameter is reached are told once the optimizer took a
    few steps: at its WATCHED_STEPS-th, or at the end. Once each of its parameters has had a
    gradient, the steps of other optimizers count as well.
    """

    def __init__(self, notes: Notes, names: Names) -> None:
        self._notes, self._names = notes, names
        self.walks_left = WALKS
        self._is_whole = True  # all that backward was called on was walked
        self._reached: dict[int, weakref.ref[Tensor]] = {}
        self._silent = weakref.WeakKeyDictionary[Optimizer, _References]()
        self._steps = weakref.WeakKeyDictionary[Optimizer, int]()
        self._since = weakref.WeakKeyDictionary[Optimizer, int]()  # the step of the code
        self._places = weakref.WeakKeyDictionary[Optimizer, Place | None]()
        self._saw_loss = False

    def saw_loss(self, loss: Tensor) -> None:
        self._saw_loss = True
        if not self.walks_left:
            return
        self.walks_left -= 1
        self._names.look()
        parameters = _parameters_under(loss)
        if parameters is None:
            self._is_whole = False
            return
        self._reached.update((id(p), weakref.ref(p)) for p in parameters)

    def before_step(self, optimizer: Optimizer, has_closure: bool) -> bool:
        """Whether enough steps of this optimizer were seen."""
        steps = self._steps[optimizer] = self._steps.get(optimizer, 0) + 1
        if steps == 1:
            self.walks_left, self._since[optimizer] = WALKS, self._notes.steps
            self._names.look()
            self._places[optimizer] = self._notes.place()
            self._silent[optimizer] = [weakref.ref(p) for p in _parameters_of(optimizer)]
        if not has_closure:
            self._look(optimizer)
        if not self.looks_at(optimizer):  # of its steps, some may not have been shown
            steps = max(steps, self._notes.steps - self._since[optimizer] + 1)
        if steps < WATCHED_STEPS:
            return False
        self.decide()
        return True

    def looks_at(self, optimizer: Optimizer) -> bool:
        """Whether it needs to be shown each of its steps."""
        return bool(self._silent.get(optimizer))

    def after_step(self, optimizer: Optimizer, has_closure: bool) -> None:
        if has_closure:
            self._look(optimizer)

    def _look(self, optimizer: Optimizer) -> None:
        if self.looks_at(optimizer):
            silent = self._silent[optimizer]
            self._silent[optimizer] = [r for r in silent if _is_silent(r())]

    def is_held(self, parameters: Iterable[Tensor]) -> bool:
        """Whether an optimizer that has stepped holds one of them."""
        held = {id(p) for optimizer in self._steps for p in _parameters_of(optimizer)}
        return any(id(p) in held for p in parameters)

    def decide(self) -> None:
        """Tell what is wrong with the optimizers that took enough steps."""
        stepped = [o for o, steps in self._steps.items() if steps >= DECIDED_AFTER]
        if not stepped:
            return
        unheld = self._unheld(stepped)
        strangers = [o for o in stepped if self._is_stranger(o)] if unheld else []
        for optimizer in strangers:
            self._tell_stranger(optimizer, unheld)
        if unheld and not strangers:
            self._tell_unheld(unheld, stepped)
        for optimizer in stepped:
            silent = [p for p in (r() for r in self._silent[optimizer]) if p is not None]
            if silent and optimizer not in strangers:
                self._tell_silent(optimizer, silent)

    def _unheld(self, stepped: list[Optimizer]) -> list[Tensor]:
        """The parameters that the losses reach, that still live, and that no optimizer holds."""
        held = {id(p) for optimizer in stepped for p in _parameters_of(optimizer)}
        found = [r() for key, r in self._reached.items() if key not in held]
        unheld = [p for p in found if p is not None and p.requires_grad]
        if not unheld:
            return []
        others = (each for each in gc.get_objects() if issubclass(type(each), Optimizer))
        held |= {id(p) for optimizer in others for p in _parameters_of(optimizer)}
        in_order = {id(p): p for m in self._names.modules.values() for p in m.parameters()}
        found = {id(p): p for p in unheld if id(p) not in held}
        return [p for key, p in (in_order | found).items() if key in found]

    def _is_stranger(self, optimizer: Optimizer) -> bool:
        """Whether no loss reaches any parameter of the optimizer."""
        held = {id(p) for p in _parameters_of(optimizer)}
        return self._is_whole and bool(held) and not held & self._reached.keys()

    # -- telling ---------------------------------------------------------------------------------

    def _tell_stranger(self, optimizer: Optimizer, unheld: list[Tensor]) -> None:
        name, kind = self._names.optimizer(optimizer), type(optimizer).__name__
        model = next(iter(self._holders(unheld)), "model")
        self._notes.find(
            "not_trained",
            f"`{name}` holds the parameters of another model than the one that the loss comes"
            " from: its steps change nothing that the loss depends on.",
            (
                f"`{name}` holds {counted(len(_parameters_of(optimizer)), 'parameter')};"
                " backward reaches none of them",
                f"backward reaches {listed(self._names.parameters(unheld))}, which no optimizer"
                " holds",
            ),
            f"{name} = torch.optim.{kind}({model}.parameters(), lr={_rate(optimizer)})",
            self._places.get(optimizer),
            name,
        )

    def _tell_unheld(self, unheld: list[Tensor], stepped: list[Optimizer]) -> None:
        names = self._names.parameters(unheld)
        reached = counted(len(unheld), "parameter")
        for path, lost in self._in_plain_lists():
            inside = [p for p in unheld if id(p) in lost]
            if inside:
                self._notes.find(
                    "not_trained",
                    f"`{path}` is a plain list or dict: torch does not know the modules in it, so"
                    f" `parameters()` leaves them out and no optimizer trains them.",
                    (
                        f"{counted(len(inside), 'parameter')} in it get a gradient and are held by"
                        f" no optimizer: {listed([shape(p) for p in inside])}",
                    ),
                    _registered(path, lost),
                    what=path,
                )
                unheld = [p for p in unheld if id(p) not in lost]
        if not unheld:
            return
        names = self._names.parameters(unheld)
        optimizer = self._names.optimizer(stepped[0])
        pieces = self._names.written(unheld)
        each = (f"*{piece}" if piece.endswith("()") else piece for piece in pieces)
        whole = f"[{', '.join(each)}]"
        if len(pieces) == 1 and pieces[0].endswith("()"):
            whole = pieces[0]
        self._notes.find(
            "not_trained",
            f"No optimizer holds {listed([f'`{n}`' for n in names])}: backward computes"
            " gradients for them, and no step uses these.",
            (
                f"{reached} that the loss reaches: {listed([shape(p) for p in unheld])}",
                f"`{optimizer}` has taken {counted(self._steps[stepped[0]], 'step')} without them",
            ),
            f'{optimizer}.add_param_group({{"params": {whole}}})'
            "  # or freeze them: requires_grad_(False)",
            self._places.get(stepped[0]),
            names[0],
        )

    def _tell_silent(self, optimizer: Optimizer, silent: list[Tensor]) -> None:
        names = self._names.parameters(silent)
        name, steps = self._names.optimizer(optimizer), self._steps[optimizer]
        total = len(_parameters_of(optimizer))
        cleared = len(silent) == total and bool(self._reached)
        text = f"{listed([f'`{n}`' for n in names])} got no gradient: "
        frozen = self._names.written(silent)[0].removesuffix(".parameters()")
        fix = f"{frozen}.requires_grad_(False)  # if it is meant to stay as it is"
        if len(silent) == total and not self._saw_loss:
            text = f"`{name}.step()` runs, and backward() does not: no parameter has a gradient."
            fix = f"loss.backward()  # before {name}.step()"
        elif cleared and {id(p) for p in silent} <= self._reached.keys():
            text += f"they were cleared after backward, before `{name}.step()` could use them."
            fix = f"{name}.zero_grad()  # before loss.backward(), not after it"
        else:
            text += "the loss does not depend on them, so no step changes them."
        self._notes.find(
            "no_gradient",
            text,
            (
                f"`.grad` of {len(silent)} of {counted(total, 'parameter')} of `{name}` was None in"
                f" all of its {steps} steps",
            ),
            fix,
            self._places.get(optimizer),
            names[0],
        )

    def _holders(self, parameters: list[Tensor]) -> list[str]:
        """The names of the modules that hold one of the parameters."""
        wanted = {id(p) for p in parameters}
        return [
            name
            for name, module in self._names.modules.items()
            if any(id(p) in wanted for p in module.parameters())
        ]

    def _in_plain_lists(self) -> Iterable[tuple[str, dict[int, str]]]:
        """The attributes that hide modules in a list, with the parameters in each."""
        for name, module in self._names.modules.items():
            for path in unregistered(module):
                yield f"{name}.{path}", _lost_at(module, path)


def _lost_at(module: nn.Module, path: str) -> dict[int, str]:
    """The class that would register each parameter in the collection at the path, by its id; ""
    for a collection that holds others."""
    held: Any = module
    for part in path.split("."):
        held = getattr(held, part, None) if not part.isdigit() else held[int(part)]
    if not isinstance(held, list | tuple | dict):
        return {}
    found: dict[int, str] = {}
    for each in hidden_in(held):
        if isinstance(each, nn.Module):
            found.update((id(p), "ModuleList") for p in each.parameters())
        else:
            found[id(each)] = "ParameterList"
    if isinstance(held, dict):
        found = {key: kind.replace("List", "Dict") for key, kind in found.items()}
    inner = held.values() if isinstance(held, dict) else held
    if any(isinstance(each, list | tuple | dict) for each in inner):
        found = dict.fromkeys(found, "")
    return found


def _registered(path: str, lost: dict[int, str]) -> str:
    attribute, kind = path.rpartition(".")[2], next(iter(lost.values()))
    if not kind:
        return (
            f"# nn.ModuleList, nn.ModuleDict or nn.ParameterList for self.{attribute}, and for each"
            " list and dict in it"
        )
    return f"self.{attribute} = nn.{kind}(self.{attribute})"


def _parameters_of(optimizer: Optimizer) -> list[Tensor]:
    """The parameters that require grad."""
    return [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]


def _is_silent(parameter: Tensor | None) -> bool:
    return parameter is not None and parameter.requires_grad and parameter.grad is None


def _rate(optimizer: Optimizer) -> str:
    return f"{float(optimizer.param_groups[0].get('lr', 0.001)):g}"


def _parameters_under(loss: Tensor) -> list[Tensor] | None:
    """The parameters of modules that the graph of `loss` leads to; None if it is too large."""
    if loss.grad_fn is None:
        return []
    seen, waiting = {loss.grad_fn}, [loss.grad_fn]
    found = []
    while waiting:
        node = waiting.pop()
        if isinstance(node, AccumulateGrad):
            found.append(node.variable)  # pyright: ignore[reportAttributeAccessIssue]
            continue
        for each, _ in node.next_functions:
            if each is not None and each not in seen:
                seen.add(each)
                waiting.append(each)
        if len(seen) > MAX_NODES:
            return None
    return [p for p in found if isinstance(p, nn.Parameter)]
