"""One element of a parameter, and what the optimizer does to it."""

from __future__ import annotations

from msgspec import Struct

from ...project.document import Model, TrainingSetup
from ...project.subject import CanvasSubject, Subject
from ..commands import Command
from ..snapshots import Snapshot
from ..values import Value


class ReadElementCommand(Command, frozen=True, kw_only=True):
    """Read an element of the parameter `name`, and try the optimizer's step on copies -> an
    ElementSnapshot. `index` may count from the end; None: the element with the largest gradient, or
    the first one without a gradient. With `whole`, all elements are told too. The run stays as it
    is."""

    handler = "training.elements:read_element"
    newest_only = True
    while_running = True
    name: str
    index: tuple[int, ...] | None = None
    whole: bool = False
    subject: Subject = CanvasSubject()
    model: Model = Model()
    training: TrainingSetup = TrainingSetup()


class Element(Struct, frozen=True, kw_only=True):
    """The element at `index` of a parameter, and what its optimizer (a class of torch.optim; empty:
    none has it) keeps of it, by torch's own names.

    `update` is what a step with this gradient adds to `value`, so that it becomes `after`; None
    where it is not known, and `note` says why. `rule` gives the new value, `words` explain it;
    `options` are the options of its group that they name.
    """

    index: tuple[int, ...]
    value: float
    gradient: float | None = None
    optimizer: str = ""
    state: dict[str, float] = {}
    update: float | None = None
    after: float | None = None
    rule: str = ""
    words: str = ""
    options: dict[str, float] = {}
    note: str = ""


class ElementSnapshot(Snapshot, frozen=True, kw_only=True):
    """With all elements, if they were asked for: `whole` has the parameter, its gradient, what the
    optimizer keeps of each element, and the next update, as far as each is known."""

    name: str
    element: Element
    whole: tuple[Value, ...] = ()
