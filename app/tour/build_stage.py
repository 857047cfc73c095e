"""Tour, Model workspace: drag blocks in, wire them, correct a mistake, arrange."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt

from app.tour.hand import TourFailure
from app.tour.stage import Stage
from engine.project import catalogue
from engine.project.document import Block, Wire
from engine.protocol import ModelSnapshot

# kind, column and row on the canvas, arguments typed into the form
BLOCKS: tuple[tuple[str, int, int, dict[str, str]], ...] = (
    ("Input", 0, 0, {}),
    ("nn.Flatten", 1, 0, {}),
    ("nn.Linear", 2, 0, {}),
    ("nn.ReLU", 0, 1, {}),
    ("nn.Linear", 1, 1, {"in_features": "32", "out_features": "10"}),  # 32: the mistake to mend
    ("Output", 2, 1, {}),
    ("nn.CrossEntropyLoss", 2, 2, {}),
)
WIRES = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (4, 6))  # positions in BLOCKS
_COLUMN_PX, _ROW_PX = 224, 144
_ORIGIN = QPoint(120, 96)


class BuildStage(Stage):
    def run(self) -> None:
        window = self.application.window
        start = window.page("start")
        self.picture("start")
        self.press(start, "start_new")
        self.picture("empty-canvas")
        self._page = self.application.workspaces.model.page
        ids = [self._drag_in(kind, column, row) for kind, column, row, _ in BLOCKS]
        for source, target in WIRES:
            self._draw_wire(ids[source], ids[target])
        for block_id, (_, _, _, arguments) in zip(ids, BLOCKS, strict=True):
            for name, text in arguments.items():
                self._set_param(block_id, name, text)
        self._mend(ids[4])
        self._arrange()
        self.report["parameters"] = self._check().parameters
        self.picture("model")

    def _drag_in(self, kind: str, column: int, row: int) -> str:
        """Drag a kind from the palette to the canvas; return the new block's id."""
        rows, canvas = self._page.block_palette.list, self._page.canvas
        before = {block.id for block in self._blocks()}
        rows.scrollTo(rows.index_of(kind))
        at = rows.visualRect(rows.index_of(kind)).center()
        goal = _ORIGIN + QPoint(column * _COLUMN_PX, row * _ROW_PX)
        self.hand.drag(rows.viewport(), at, canvas.viewport(), goal)
        added = [block for block in self._blocks() if block.id not in before]
        if len(added) != 1 or added[0].kind != kind:
            raise TourFailure(f"dragging {kind} onto the canvas did not add it")
        self.count("blocks_dragged")
        return added[0].id

    def _draw_wire(self, source: str, target: str) -> None:
        canvas, model = self._page.canvas, self.project.model
        out = catalogue.ports(model.block(source))[1][0].name
        into = catalogue.ports(model.block(target))[0][0].name
        viewport = canvas.viewport()
        self.hand.drag(
            viewport,
            canvas.port_center(source, out, "out"),
            viewport,
            canvas.port_center(target, into, "in"),
        )
        if Wire(source, out, target, into) not in self.project.model.wires:
            raise TourFailure(f"the wire from {source} to {target} was not drawn")
        self.count("wires_drawn")

    def _set_param(self, block_id: str, name: str, text: str) -> None:
        canvas, form = self._page.canvas, self._page.properties.form
        self.hand.click(canvas.viewport(), canvas.block_center(block_id))
        self.hand.write(form.field(name), text)
        if name not in self.project.model.block(block_id).params:
            raise TourFailure(f"typing {text} into {name} of {block_id} set nothing")

    def _mend(self, block_id: str) -> None:
        """Find the shape error on the block, and press its fix."""
        if self._check().runnable:
            raise TourFailure("a Linear of 32 features after one of 64 was not refused")
        canvas = self._page.canvas
        self.hand.click(canvas.viewport(), canvas.block_center(block_id))
        self.picture("shape-error")
        self.press(self._page.properties, "problem_fix")
        if not self._check().runnable:
            raise TourFailure("the model does not run after the fix")

    def _arrange(self) -> None:
        canvas = self._page.canvas
        before = self._blocks()
        self.hand.press(canvas, Qt.Key.Key_L, Qt.KeyboardModifier.ControlModifier)
        self.hand.until(lambda: self._blocks() != before, "the blocks to be arranged")
        canvas.setFocus()
        self.hand.press(canvas, Qt.Key.Key_Escape)
        self.hand.press(canvas, Qt.Key.Key_F)

    def _check(self) -> ModelSnapshot:
        """The engine's report on the current model."""
        return self.wait_for(
            ModelSnapshot, lambda s: s.revision == self.store.revision, "the model's check"
        )

    def _blocks(self) -> tuple[Block, ...]:
        return self.project.model.blocks
