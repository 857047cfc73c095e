"""The model as a scene. A change of the model updates only the items that it is about."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtWidgets import QGraphicsScene

from engine.project import catalogue
from engine.project.document import Model, Wire
from widgets.layout import SIDES, Side

from .items import BlockItem
from .obstacles import Obstacles, box_of
from .overlays import ProblemItem
from .wires import WireItem

if TYPE_CHECKING:  # the window shows before messages are needed
    from engine.protocol import BlockReport, ModelSnapshot, TensorSpec

Thing = BlockItem | WireItem | ProblemItem
"""The items that can lie under the pointer."""


class ModelScene(QGraphicsScene):
    """Shows the last model given. Previews move items until the next `show_model`."""

    def __init__(self, parent=None) -> None:
        super().__init__(parent)
        # Blocks move often: Qt's index would be rebuilt more often than it is used.
        self.setItemIndexMethod(QGraphicsScene.ItemIndexMethod.NoIndex)
        self.model = Model()
        self._incoming: dict[tuple[str, str], Wire] = {}
        self.blocks: dict[str, BlockItem] = {}
        self.wires: dict[Wire, WireItem] = {}
        self.problems: dict[str, ProblemItem] = {}
        self._reports: dict[str, BlockReport] = {}
        self._done: frozenset[str] = frozenset()
        self._content: QRectF | None = None
        self._things: Obstacles | None = None

    # -- what is shown ---------------------------------------------------------------------------

    def show_model(self, model: Model) -> None:
        """Show a model: add, remove and update items, and end every preview."""
        self.model = model
        self._incoming = {(w.target, w.target_port): w for w in reversed(model.wires)}
        known = {block.id: block for block in model.blocks if block.kind in catalogue.kinds()}
        for gone in self.blocks.keys() - known.keys():
            self._drop_problem(gone)
            self.removeItem(self.blocks.pop(gone))
        for key, block in known.items():
            item = self.blocks.get(key)
            if item is None:
                self.blocks[key] = item = BlockItem(block)
                self.addItem(item)
            elif item.block != block:
                # The report of a block is wrong for other parameters, and still right after a move.
                if (item.block.kind, item.block.params) != (block.kind, block.params):
                    self._set_report(item, None)
                item.show_block(block)
            item.setPos(block.x, block.y)

        wanted = dict.fromkeys(wire for wire in model.wires if self._ends(wire) is not None)
        for wire in self.wires.keys() - wanted.keys():
            self.removeItem(self.wires.pop(wire))
        for wire in wanted:
            if wire not in self.wires:
                self.wires[wire] = WireItem(wire)
                self.addItem(self.wires[wire])
            self.wires[wire].show()
        self._mark_wired()
        self._derive_wires()
        self.follow(self.blocks)

    def show_report(self, snapshot: ModelSnapshot | None) -> None:
        """Show shapes, parameter counts and problems; None removes them."""
        reports = {report.block: report for report in snapshot.blocks} if snapshot else {}
        for key, item in self.blocks.items():
            self._set_report(item, reports.get(key))
        self._derive_wires()
        self._moved()
        self.place_labels(self.wires.values())

    def show_progress(self, done: Collection[str], current: str | None) -> None:
        """Mark the blocks that a forward pass has run, and the one it ran last."""
        self._done = frozenset(done)
        for key, item in self.blocks.items():
            progress = "current" if key == current else "done" if key in self._done else "none"
            if progress != item.progress:
                item.progress = progress
                item.update()
        self._derive_wires()

    def spec(self, block: str, port: str) -> TensorSpec | None:
        """The shape and dtype of the tensor at an output port; None if not known."""
        report = self._reports.get(block)
        return report.outputs.get(port) if report else None

    def incoming(self, block: str, port: str) -> Wire | None:
        """The wire that ends at an input port; None without one."""
        return self._incoming.get((block, port))

    def content_rect(self) -> QRectF:
        """The box around everything."""
        if self._content is None:
            wires = (box_of(wire.boundingRect()) for wire in self.wires.values())
            every = [*self.things().boxes, *wires]
            if not every:
                return QRectF()
            lefts, tops, rights, bottoms = zip(*every, strict=True)
            self._content = QRectF()
            self._content.setCoords(min(lefts), min(tops), max(rights), max(bottoms))
        return self._content

    def things(self) -> Obstacles:
        """The boxes of all blocks and problems in scene coordinates."""
        if self._things is None:
            items = (*self.blocks.values(), *self.problems.values())
            self._things = Obstacles(item.sceneBoundingRect() for item in items)
        return self._things

    def _moved(self) -> None:
        """Forget what was measured: the next question measures again."""
        self._content = self._things = None

    # -- previews --------------------------------------------------------------------------------

    def preview_moves(self, positions: Mapping[str, QPointF]) -> None:
        """Show blocks elsewhere until the next `show_model`."""
        for key, pos in positions.items():
            self.blocks[key].setPos(pos)
        self.follow(positions)

    def end_previews(self) -> None:
        """Move every item back to its place in the model."""
        for item in self.blocks.values():
            item.setPos(item.block.x, item.block.y)
            if item.port_looks:
                item.port_looks = {}
                item.update()
        for wire in self.wires.values():
            wire.show()
        self.follow(self.blocks)

    def follow(self, blocks: Iterable[str]) -> None:
        """Redraw the wires of these blocks, and place the wires' labels."""
        moved = set(blocks)
        self._moved()
        touched = []
        row = {key: number for number, key in enumerate(self.blocks)}
        bodies = Obstacles(item.rect() for item in self.blocks.values())
        for wire, item in self.wires.items():
            if (wire.source in moved or wire.target in moved) and (ends := self._ends(wire)):
                item.run(*ends, bodies, without=(row[wire.source], row[wire.target]))
                touched.append(item)
        self.place_labels(touched)

    def place_labels(self, items: Iterable[WireItem]) -> None:
        """Place the labels of these wires so that they cover no block and no other label."""
        wires = list(items)
        placed = set(map(id, wires))
        obstacles = [item.rect() for item in self.blocks.values()]
        obstacles += [item.sceneBoundingRect() for item in self.problems.values()]
        for item in self.wires.values():
            if id(item) not in placed:
                obstacles += [rect for rect in item.label_rects.values() if not rect.isEmpty()]
        taken = Obstacles(obstacles)
        for item in wires:
            item.place_label(taken)
            for rect in item.label_rects.values():
                if not rect.isEmpty():
                    taken.add(rect)

    # -- hits ------------------------------------------------------------------------------------

    def block_at(self, pos: QPointF) -> BlockItem | None:
        hits = [item for item in self.blocks.values() if item.rect().contains(pos)]
        return max(hits, key=lambda item: item.zValue()) if hits else None

    def port_at(self, pos: QPointF, radius: float) -> tuple[BlockItem, Side, str] | None:
        """The nearest port within `radius` scene pixels."""
        near = list(self.ports_near(pos, radius))
        return min(near, key=lambda each: each[0])[1:] if near else None

    def ports_near(
        self, pos: QPointF, radius: float
    ) -> Iterable[tuple[float, BlockItem, Side, str]]:
        """(distance, block, side, port) of every port within `radius` scene pixels."""
        for item in self.blocks.values():
            if not item.rect().adjusted(-radius, -radius, radius, radius).contains(pos):
                continue
            for side in SIDES:
                for index, port in enumerate(item.ports[side]):
                    off = item.pos() + item.port_offset(side, index) - pos
                    distance = (off.x() ** 2 + off.y() ** 2) ** 0.5
                    if distance <= radius:
                        yield distance, item, side, port.name

    def wire_at(self, pos: QPointF, radius: float) -> WireItem | None:
        """The wire whose label is at a scene point, or the nearest one within `radius` scene
        pixels."""
        best, best_distance = None, radius
        for item in self.wires.values():
            reach = item.boundingRect().adjusted(-radius, -radius, radius, radius)
            if not item.isVisible() or not reach.contains(pos):
                continue
            distance = 0.0 if item.label_rects[False].contains(pos) else item.distance(pos)
            if distance <= best_distance:
                best, best_distance = item, distance
        return best

    def fix_at(self, pos: QPointF) -> ProblemItem | None:
        """The problem whose fix button lies under a scene point."""
        for item in self.problems.values():
            if item.fix_rect().contains(item.mapFromScene(pos)):
                return item
        return None

    # -- inner -----------------------------------------------------------------------------------

    def _ends(self, wire: Wire) -> tuple[QPointF, QPointF] | None:
        source, target = self.blocks.get(wire.source), self.blocks.get(wire.target)
        if source is None or target is None:
            return None
        start = source.port_pos("out", wire.source_port)
        end = target.port_pos("in", wire.target_port)
        return (start, end) if start is not None and end is not None else None

    def _mark_wired(self) -> None:
        wired: dict[str, set[tuple[Side, str]]] = {key: set() for key in self.blocks}
        for wire in self.wires:
            wired[wire.source].add(("out", wire.source_port))
            wired[wire.target].add(("in", wire.target_port))
        for key, item in self.blocks.items():
            if item.wired != wired[key]:
                item.wired = frozenset(wired[key])
                item.update()

    def _derive_wires(self) -> None:
        """Set every wire's label and colour from the reports and the progress."""
        for wire, item in self.wires.items():
            spec = self.spec(wire.source, wire.source_port)
            report = self._reports.get(wire.target)
            faulty = report is not None and any(
                problem.port == wire.target_port and problem.severity == "error"
                for problem in report.problems
            )
            role = "error" if faulty else "accent" if wire.source in self._done else "intermediate"
            if (spec, role) != (item.spec, item.role):
                item.show_spec(spec, role)

    def _set_report(self, item: BlockItem, report: BlockReport | None) -> None:
        key = item.block.id
        if report is None:
            self._reports.pop(key, None)
        else:
            self._reports[key] = report
        if item.report == report:
            return
        item.report = report
        item.update()
        self._drop_problem(key)
        # An input without a wire is not an error yet, so only its port shows it.
        item.waiting = frozenset(
            problem.port
            for problem in (report.problems if report else ())
            if problem.port and problem.port in item.port_names("in")
            and self.incoming(key, problem.port) is None
        )  # fmt: skip
        item.problems = tuple(
            problem
            for problem in (report.problems if report else ())
            if problem.port not in item.waiting
            and not (item.waiting and problem.severity == "warning")
        )
        problems = sorted(item.problems, key=lambda problem: problem.severity != "error")
        if problems:
            self.problems[key] = ProblemItem(item, problems[0], len(problems) - 1)
        item.restack()

    def _drop_problem(self, key: str) -> None:
        if key in self.problems:
            self.removeItem(self.problems.pop(key))
