"""The edits of the document that gestures in the Model workspace make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from PySide6.QtCore import QRectF

from app.presenters.model import placing
from app.presenters.model.clipboard import blocks_from_clipboard, blocks_to_clipboard
from app.selection.references import Blocks
from app.window.model_page import ModelPage
from app.workbench import Workbench
from engine.project import catalogue, edits, files
from engine.project.document import Model, ParamValue, Project, Wire
from engine.project.problems import Fix
from widgets.layout import BLOCK_WIDTH, block_size, snap

_PASTE_PX = 32.0


class ModelEdits:
    """Each method makes one undo step. If an edit is refused, the document stays as it is, and the
    canvas, which has previewed the edit, is set back to it."""

    def __init__(self, bench: Workbench, page: ModelPage) -> None:
        self._bench, self._page = bench, page

    def edit(self, text: str, change: Callable[[Project], Project]) -> None:
        """Make an edit that the canvas has previewed; if it is refused, set the canvas back."""
        before = self._bench.project
        self._bench.edit(text, change)
        if self._bench.project is before:
            self._page.canvas.show_model(before.model)

    def _add(self, text: str, change: Callable[[Project], tuple[Project, str]]) -> None:
        """Make an edit that adds a block, and select the block."""
        added = self._bench.edit_with(text, change)
        if added is None:
            self._page.canvas.show_model(self._bench.project.model)
        else:
            self._bench.selection.choose(Blocks((added,)))
            self._page.canvas.reveal(self._page.canvas.model_scene.blocks[added].rect())

    def add_block(self, kind: str, x: float, y: float) -> None:
        self._add(f"Add {_title(kind)}", lambda p: edits.add_block(p, kind, x, y))

    def add_chosen(self, kind: str, near: tuple[float, float] | None = None) -> None:
        """Add a block after the selected one and wire the two, or else add it near a point (None:
        the middle of the view). It never covers another block."""
        selected = self._page.canvas.selected_blocks()
        if len(selected) == 1:
            before = self._bench.project.model.block(selected[0])
            self._add(f"Add {_title(kind)}", lambda p: placing.add_after(p, kind, before))
        else:
            x, y = near or self.middle_place()
            self._add(f"Add {_title(kind)}", lambda p: placing.add_clear(p, kind, x, y))

    def insert_on_wire(self, kind: str, x: float, y: float, wire: Wire) -> None:
        self._add(f"Insert {_title(kind)}", lambda p: placing.insert(p, kind, wire, x, y))

    def middle_place(self) -> tuple[float, float]:
        """The top left corner of a block in the middle of the view."""
        middle = self._page.canvas.center()
        return snap(middle.x() - BLOCK_WIDTH / 2), snap(middle.y() - _PASTE_PX)

    def delete(self, blocks: Sequence[str], wires: Sequence[Wire]) -> None:
        text = count("Delete", blocks) if blocks else "Delete wire"
        self.edit(text, lambda project: edits.remove(project, blocks, wires))

    def rename(self, block_id: str, name: str) -> None:
        """Rename a block; if the name is refused, its field shows why."""
        self._rename(block_id, name, self._page.properties.show_name_error)

    def rename_in_place(self, block_id: str, name: str) -> None:
        """Rename a block on the canvas; if the name is refused, the canvas shows why."""
        canvas = self._page.canvas
        corner = canvas.model_scene.blocks[block_id].rect().topLeft()
        self._rename(block_id, name, lambda why: canvas.say_briefly(why, "error", corner))

    def _rename(self, block_id: str, name: str, refused: Callable[[str], None]) -> None:
        try:
            project = edits.rename(self._bench.project, block_id, name)
        except edits.EditError as error:
            refused(str(error))
            return
        self._bench.history.edit(project, "Rename")

    def set_param(self, block_id: str, param: str, value: ParamValue) -> None:
        self._bench.edit(
            f"Set {param}",
            lambda project: edits.set_param(project, block_id, param, value),
            field=(block_id, param),
        )

    def fix(self, fix: Fix) -> None:
        self._bench.edit(f"Fix: {fix.text}", lambda project: edits.apply_fix(project, fix))

    # -- clipboard -------------------------------------------------------------------------------

    def copy(self, blocks: Sequence[str]) -> None:
        blocks_to_clipboard(edits.fragment(self._bench.project, blocks))

    def cut(self, blocks: Sequence[str]) -> None:
        self.copy(blocks)
        self.edit(count("Cut", blocks), lambda project: edits.remove(project, blocks))

    def paste_at(self, x: float, y: float) -> None:
        """Paste with the middle at (x, y), inside the visible part if there is room, and below any
        block that would be covered."""
        try:
            piece = blocks_from_clipboard()
        except files.FileProblem as problem:
            self._bench.say(f"The clipboard's blocks were not pasted. {problem}")
            return
        if piece is None:
            self._bench.say("There are no blocks in the clipboard: copy some first.")
            return
        boxes = [(block.x, block.y, *block_size(block)) for block in piece.blocks]
        left, top = min(box[0] for box in boxes), min(box[1] for box in boxes)
        right = max(box[0] + box[2] for box in boxes)
        bottom = max(box[1] + box[3] for box in boxes)
        seen = self._page.canvas.visible_rect()
        edge = _PASTE_PX
        x = _clamped(
            x - (right - left) / 2, seen.left() + edge, seen.right() - edge - (right - left)
        )
        y = _clamped(
            y - (bottom - top) / 2, seen.top() + edge, seen.bottom() - edge - (bottom - top)
        )
        dx, dy = placing.shift_clear(self._bench.project, piece, snap(x - left), snap(y - top))
        self._add_piece("Paste", piece, dx, dy)

    def duplicate(self, blocks: Sequence[str]) -> None:
        piece = edits.fragment(self._bench.project, blocks)
        dx, dy = placing.shift_clear(self._bench.project, piece, _PASTE_PX, _PASTE_PX)
        self._add_piece("Duplicate", piece, dx, dy)

    def _add_piece(self, text: str, piece: Model, dx: float, dy: float) -> None:
        added = self._bench.edit_with(
            count(text, piece.blocks), lambda p: edits.add_fragment(p, piece, dx, dy)
        )
        self._bench.selection.choose(Blocks(tuple(added)) if added else None)
        blocks = self._page.canvas.model_scene.blocks
        boxes = [blocks[key].rect() for key in added or () if key in blocks]
        if boxes:
            self._page.canvas.reveal(reduce(QRectF.united, boxes))


def _clamped(value: float, low: float, high: float) -> float:
    """`value` between two bounds; as it is if there is nothing between them."""
    return min(max(value, low), high) if low <= high else value


def _title(kind: str) -> str:
    return catalogue.kind(kind).title


def count(verb: str, blocks: Sequence | dict) -> str:
    return f"{verb} {len(blocks)} blocks" if len(blocks) != 1 else f"{verb} block"
