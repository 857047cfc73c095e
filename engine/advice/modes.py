"""Train and eval mode where they do not belong, and graphs of evaluations."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..operations.failures.reading import ArgumentTexts
from ..recording.modes import Running, Tell
from ..recording.recording import Place
from ..system.private_torch import DropoutNd
from .notes import LOSSES, Notes, argument, counted, is_plain

TOLD_AFTER = 3
"""Steps in eval mode, or evaluations with a graph, one after the other."""

_DROPOUTS = (F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout)


@dataclass
class _Seen:
    """How the outermost module around a BatchNorm or Dropout ran last. `steps`: the optimizer
    steps by then; `in_eval`: the steps since it ran in train mode."""

    is_training: bool
    steps: int
    in_eval: int = 0


class _Mark:
    """Lives in a node of a graph, and goes with it."""

    __slots__ = ("__weakref__",)


@dataclass(eq=False)
class _Forward:
    """The newest forward pass of a module in train mode with a graph. `mark` is in a node of the
    graph; `judged`: a loss function, or a comparison, has got what came of it."""

    module: weakref.ref[nn.Module]
    layer: str
    mark: weakref.ref[_Mark]
    judged: bool = False


class Modes:
    """Looks at each call of BatchNorm and Dropout: the layers that differ between the modes. Code
    without such layers computes the same in both, so nothing is told of it.
    `is_held` tells whether an optimizer that has stepped holds one of these parameters;
    `evaluates()` is called when a layer runs that does not run as in training."""

    def __init__(
        self,
        notes: Notes,
        is_held: Callable[[Iterable[Tensor]], bool],
        evaluates: Callable[[], None],
    ) -> None:
        self._notes = notes
        self._is_held = is_held
        self._evaluates = evaluates
        self._seen = weakref.WeakKeyDictionary[nn.Module, _Seen]()
        self._drawn: tuple[weakref.ref[nn.Module], str] | None = None
        """The module that ran last under no_grad, and its layer that was in train mode."""
        self._evaluated: weakref.ref[nn.Module] | None = None
        """The module that ran last, in eval mode and with a graph."""
        self._forward: _Forward | None = None
        self._judged: dict[Place | None, list[weakref.ref[_Mark]]] = {}
        """By the line that judged it, the forward passes in train mode since the last backward."""
        self._unused: dict[Place | None, int] = {}
        self._read: set[Place | None] = set()
        """The lines with a dropout that were read."""
        self.layers: Mapping[Callable, Tell] = {
            F.batch_norm: self._batch_norm,
            **dict.fromkeys(_DROPOUTS, self._dropout),
        }
        self.told: Mapping[Callable, Tell] = {
            **dict.fromkeys(LOSSES, self._loss),
            **dict.fromkeys((Tensor.__eq__, Tensor.eq, torch.eq), self._compared),
            torch.autograd.grad: lambda *told: self.saw_loss(),
        }

    @property
    def matters(self) -> bool:
        """Whether a module was seen that does not run in train mode as in eval mode."""
        return bool(self._seen)

    def saw_loss(self) -> None:
        """Backward runs: the graphs built so far were not built for nothing."""
        self._unused.clear()
        self._judged.clear()
        self._forward = None

    # -- layers ----------------------------------------------------------------------------------

    def _batch_norm(
        self, func: Callable, args: tuple, kwargs: dict[str, Any], result: Any, modules: Running
    ) -> None:
        if argument(args, kwargs, 1, "running_mean") is not None:
            is_training = bool(argument(args, kwargs, 5, "training"))
            self._ran("BatchNorm", is_training, result, modules)

    def _dropout(
        self, func: Callable, args: tuple, kwargs: dict[str, Any], result: Any, modules: Running
    ) -> None:
        layer = modules[-1] if modules else None
        if isinstance(layer, DropoutNd):
            if layer.p > 0:
                self._ran("Dropout", layer.training, result, modules)
        elif layer is not None and not layer.training and kwargs.get("training") is True:
            self._left_on(func, args, kwargs, layer)

    def _left_on(
        self, func: Callable, args: tuple, kwargs: dict[str, Any], layer: nn.Module
    ) -> None:
        """A module in eval mode calls a dropout, which drops unless it is told not to. A line that
        says training=True, or cannot be read, is left alone."""
        frame, place = self._notes.frame(), self._notes.place()
        if frame is None or not kwargs.get("p") or place in self._read:
            return
        self._read.add(place)
        texts = ArgumentTexts(frame, frame.f_lasti, args)
        if texts.of_argument(0) is None or texts.of_argument(2) or texts.of_keyword("training"):
            return
        name = f"F.{func.__name__}"
        self._notes.find(
            "mode",
            f"`{name}` drops values at random in eval mode too: its argument training is True"
            " unless it is given.",
            (
                f"it ran in the forward of {type(layer).__name__}, whose `training` is False",
                f"`{self._notes.source(place)}` gives no training",
            ),
            f"{name}(x, {kwargs['p']:g}, training=self.training)",
            place,
        )

    def _ran(self, layer: str, is_training: bool, result: Any, modules: Running) -> None:
        outermost = modules[0] if modules else None
        if outermost is None:
            return
        has_graph = torch.is_grad_enabled()
        if not has_graph or not outermost.training:
            self._evaluates()
        if not has_graph:
            self._evaluated = None
            is_drawn = is_training and outermost.training
            self._drawn = (weakref.ref(outermost), layer) if is_drawn else None
            return
        self._drawn = None
        seen = self._seen.get(outermost)
        if seen is None:
            seen = self._seen[outermost] = _Seen(is_training, self._notes.steps)
        if outermost.training:
            seen.in_eval, seen.is_training = 0, True
            self._evaluated = None
            if is_training and is_plain(result) and result.grad_fn is not None:
                self._begin_forward(outermost, layer, result)
            return
        self._forward = None
        if is_plain(result) and result.requires_grad:
            self._evaluated = weakref.ref(outermost)
        if not seen.is_training and self._notes.steps > seen.steps:
            seen.in_eval += 1
            if seen.in_eval == TOLD_AFTER and self._is_held(outermost.parameters()):
                self._tell_eval(outermost, layer)
        seen.is_training, seen.steps = False, self._notes.steps

    def _begin_forward(self, module: nn.Module, layer: str, result: Tensor) -> None:
        """A layer of a forward pass with a graph has run; another one of the same pass may have
        run before."""
        forward = self._forward
        if forward is not None and not forward.judged and forward.module() is module:
            return
        mark = _Mark()
        result.grad_fn.metadata[_Mark] = mark  # pyright: ignore
        self._forward = _Forward(weakref.ref(module), layer, weakref.ref(mark))

    # -- what is computed from them --------------------------------------------------------------

    def _judge(self) -> None:
        """What came of the newest forward pass with a graph is compared with targets. If the graphs
        of several such passes have died, and backward ran on none, these were an evaluation."""
        forward = self._forward
        if forward is None or forward.judged or not torch.is_grad_enabled():
            return
        forward.judged = True
        marks = self._judged.setdefault(self._notes.place(), [])
        marks.append(forward.mark)
        module = forward.module()
        unused = sum(mark() is None for mark in marks)
        if unused == TOLD_AFTER and module is not None:
            self._notes.is_waiting = True
            self._tell_train(forward.module, forward.layer, unused)

    def _loss(
        self, func: Callable, args: tuple, kwargs: dict[str, Any], result: Any, modules: Running
    ) -> None:
        self._judge()
        if self._drawn is not None and not torch.is_grad_enabled():
            self._tell_train(*self._drawn)
        elif self._evaluated is not None and is_plain(result) and result.requires_grad:
            self._notes.is_waiting = True
            place = self._notes.place()
            count = self._unused[place] = self._unused.get(place, 0) + 1
            outermost = self._evaluated()
            if count == TOLD_AFTER and outermost is not None and self._notes.steps:
                self._tell_graph(outermost, place)

    def _compared(
        self, func: Callable, args: tuple, kwargs: dict[str, Any], result: Any, modules: Running
    ) -> None:
        if len(args) < 2 or not is_plain(args[0]) or not is_plain(args[1]):
            return
        if args[0].is_floating_point():
            return
        self._judge()
        if self._drawn is not None and not torch.is_grad_enabled():
            self._tell_train(*self._drawn)

    # -- telling ---------------------------------------------------------------------------------

    def _tell_train(
        self, reference: weakref.ref[nn.Module], layer: str, with_graph: int = 0
    ) -> None:
        module = reference()
        if module is None or not self._notes.steps or not self._is_held(module.parameters()):
            return
        name, place = self._notes.name_of(module, "model"), self._notes.place()
        does = (
            "drops values at random"
            if layer == "Dropout"
            else "uses the statistics of the batch, and changes its running ones"
        )
        line = 0 if place is None else place[1]
        how = f"its {layer} ran in train mode under no_grad, and line {line} compares the result"
        fix = f"{name}.eval()  # before the evaluation, and {name}.train() after it"
        more = ""
        if with_graph:
            how = (
                f"the graphs of {with_graph} forward passes in train mode were dropped without a"
                f" backward; line {line} compares their results"
            )
            more = " Its graphs are built for nothing, too."
            fix = f"{name}.eval()  # before the evaluation, in which: with torch.no_grad():"
        self._notes.find(
            "mode",
            f"`{name}` is evaluated in train mode: {layer} {does}.{more}",
            (
                f"{how} with targets",
                f"{counted(self._notes.steps, 'optimizer step')} had been taken",
            ),
            fix,
            place,
            name,
        )

    def _tell_eval(self, module: nn.Module, layer: str) -> None:
        name = self._notes.name_of(module, "model")
        does = (
            "drops nothing"
            if layer == "Dropout"
            else "does not learn its running statistics, and does not use those of the batch"
        )
        self._notes.find(
            "mode",
            f"`{name}` is trained in eval mode: {layer} {does}.",
            (
                f"{TOLD_AFTER} optimizer steps in a row followed a forward pass in eval mode;"
                f" `{name}.training` is False",
            ),
            f"{name}.train()  # before the training loop, and again after each evaluation",
            self._notes.place(),
            name,
        )

    def _tell_graph(self, module: nn.Module, place: Place | None) -> None:
        name = self._notes.name_of(module, "model")
        self._notes.find(
            "mode",
            f"`{name}` is evaluated with gradients on, and backward is not called: its graphs are"
            " built for nothing, and cost memory and time.",
            (
                f"`{self._notes.source(place)}` ran {TOLD_AFTER} times in eval mode; each loss has"
                " a grad_fn, and no backward followed",
            ),
            "with torch.no_grad():  # around the evaluation",
            place,
        )
