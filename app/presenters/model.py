"""The Model workspace: gestures become edits, every edit is checked by the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication

from app.clipboard import blocks_from_clipboard, blocks_to_clipboard
from app.model_page import ModelPage
from app.workbench import Workbench
from engine.project import catalogue, edits
from engine.project.document import Block, Model, ParamValue, Project, Wire, replace
from engine.protocol import (
    CheckModelCommand,
    ErrorSnapshot,
    Fix,
    ForwardSnapshot,
    InitialiseCommand,
    ModelSnapshot,
    Snapshot,
    WeightsSnapshot,
)
from widgets.canvas.geometry import block_size, snap
from widgets.canvas.layout import layout_model
from widgets.text import format_bytes

_BESIDE_PX = 240.0
_PASTE_PX = 32.0


class ModelChecker(QObject):
    """Has the engine check every revision of the model, one at a time: while a check is under
    way, only the newest revision waits."""

    def __init__(self, bench: Workbench, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self._in_flight = 0
        self._waiting = False
        bench.store.revision_changed.connect(self.check)
        bench.link.snapshot.connect(self._on_snapshot)
        bench.link.state_changed.connect(self._on_state)

    def check(self) -> None:
        if self._in_flight:
            self._waiting = True
            return
        project = self._bench.store.project
        command = CheckModelCommand(model=project.model, training=project.training)
        self._in_flight = self._bench.send(command)

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        if not self._in_flight or snapshot.reply_to != self._in_flight:
            return
        if isinstance(snapshot, ModelSnapshot | ErrorSnapshot):
            self._in_flight = 0
            if self._waiting:
                self._waiting = False
                self.check()

    def _on_state(self, state: str) -> None:
        if state == "lost":
            self._in_flight = 0
            self._waiting = False
        elif state == "ready" and not self._in_flight:
            self.check()  # a new engine knows no model


class ModelPresenter(QObject):
    def __init__(self, bench: Workbench, page: ModelPage, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self.page = bench, page
        self._connect_canvas()
        self._connect_panels()
        self._connect_actions()
        bench.store.project_changed.connect(self._on_project_changed)
        bench.store.revision_changed.connect(lambda: page.canvas.show_progress((), None))
        bench.store.snapshot.connect(self._on_snapshot)
        bench.selection.changed.connect(self._show_selection)
        bench.files.opened.connect(self._on_opened)
        self._show_all()

    # -- views -> edits --------------------------------------------------------------------------

    def _connect_canvas(self) -> None:
        canvas = self.page.canvas
        canvas.block_dropped.connect(self.add_block)
        canvas.block_dropped_on_wire.connect(self._insert_on_wire)
        canvas.blocks_moved.connect(
            lambda moved: self._edit(_count("Move", moved), lambda p: edits.move_blocks(p, moved))
        )
        canvas.wire_requested.connect(
            lambda wire: self._edit("Connect", lambda p: edits.connect(p, wire))
        )
        canvas.wire_rerouted.connect(
            lambda old, new: self._edit("Re-route", lambda p: edits.reroute(p, old, new))
        )
        canvas.delete_requested.connect(self._delete)
        canvas.duplicate_requested.connect(self._duplicate)
        canvas.copy_requested.connect(self._copy)
        canvas.cut_requested.connect(self._cut)
        canvas.paste_requested.connect(self._paste_at)
        canvas.selection_changed.connect(self._bench.selection.set)
        canvas.block_activated.connect(lambda _block: self.page.properties_dock.show())
        canvas.fix_requested.connect(self._fix)
        canvas.layout_requested.connect(self.arrange)
        canvas.insert_requested.connect(self._ask_for_block)
        canvas.view_changed.connect(self._on_view_changed)

    def _connect_panels(self) -> None:
        page = self.page
        page.block_palette.block_chosen.connect(self.add_chosen)
        page.block_palette.drag_moved.connect(page.canvas.ghost)
        page.block_palette.drag_dropped.connect(page.canvas.drop)
        page.block_palette.drag_cancelled.connect(page.canvas.end_ghost)
        page.properties.rename_requested.connect(self._rename)
        page.properties.param_edited.connect(self._set_param)
        page.properties.fix_requested.connect(self._fix)
        page.properties.problem_activated.connect(self._select_one)
        page.problems.fix_requested.connect(self._fix)
        page.problems.problem_activated.connect(self._select_one)
        page.code.block_selected.connect(self._select_one)

    def _connect_actions(self) -> None:
        on = self._bench.actions.on
        canvas = self.page.canvas
        on("edit.cut", canvas.request_cut)
        on("edit.copy", canvas.request_copy)
        on("edit.paste", canvas.request_paste)
        on("edit.duplicate", canvas.request_duplicate)
        on("edit.delete", canvas.request_delete)
        on("edit.select_all", canvas.select_all)
        on("view.fit", canvas.fit)
        on("model.insert", self._ask_for_block_in_view)
        on("model.layout", self.arrange)
        on("model.copy_code", self._copy_code)
        on("model.initialise", self._initialise)

    def _edit(self, text: str, change: Callable[[Project], Project]) -> None:
        """An edit that a gesture has previewed: refused, the canvas goes back to what holds."""
        before = self._bench.store.project
        self._bench.edit(text, change)
        if self._bench.store.project is before:
            self.page.canvas.show_model(before.model)

    def _add(self, text: str, change: Callable[[Project], tuple[Project, str]]) -> None:
        """An edit that makes a block, which is selected."""
        added = self._bench.edit_with(text, change)
        if added is None:
            self.page.canvas.show_model(self._bench.store.project.model)
        else:
            self._bench.selection.set((added,))
            self.page.canvas.reveal(self.page.canvas.model_scene.blocks[added].rect())

    def add_block(self, kind: str, x: float, y: float) -> None:
        self._add(f"Add {_title(kind)}", lambda p: edits.add_block(p, kind, x, y))

    def add_chosen(self, kind: str) -> None:
        """Add after the selected block and wire it, or else in the middle of the view."""
        selected = self._bench.selection.blocks
        if len(selected) != 1:
            self.add_block(kind, *self._free_place())
            return
        before = self._bench.store.project.model.block(selected[0])
        self._add(f"Add {_title(kind)}", lambda p: _add_after(p, kind, before))

    def _insert_on_wire(self, kind: str, x: float, y: float, wire: Wire) -> None:
        self._add(f"Insert {_title(kind)}", lambda p: edits.insert_on_wire(p, kind, wire, x, y))

    def _free_place(self) -> tuple[float, float]:
        """A place for a block near the middle of the view, clear of the others."""
        middle = self.page.canvas.center()
        x, y = snap(middle.x() - _BESIDE_PX / 3), snap(middle.y() - _PASTE_PX)
        taken = {(block.x, block.y) for block in self._bench.store.project.model.blocks}
        while any(abs(x - left) < _PASTE_PX and abs(y - top) < _PASTE_PX for left, top in taken):
            x, y = x + _PASTE_PX, y + _PASTE_PX
        return x, y

    def _delete(self, blocks: Sequence[str], wires: Sequence[Wire]) -> None:
        text = _count("Delete", blocks) if blocks else "Delete wire"
        self._edit(text, lambda project: edits.remove(project, blocks, wires))

    def _rename(self, block_id: str, name: str) -> None:
        self._bench.edit("Rename", lambda project: edits.rename(project, block_id, name))
        self._show_properties()

    def _set_param(self, block_id: str, param: str, value: ParamValue) -> None:
        self._bench.edit(
            f"Set {param}",
            lambda project: edits.set_param(project, block_id, param, value),
            field=(block_id, param),
        )

    def _fix(self, fix: Fix) -> None:
        self._bench.edit(f"Fix: {fix.text}", lambda project: edits.apply_fix(project, fix))

    # -- clipboard -------------------------------------------------------------------------------

    def _copy(self, blocks: Sequence[str]) -> None:
        blocks_to_clipboard(edits.fragment(self._bench.store.project, blocks))

    def _cut(self, blocks: Sequence[str]) -> None:
        self._copy(blocks)
        self._edit(_count("Cut", blocks), lambda project: edits.remove(project, blocks))

    def _paste_at(self, x: float, y: float) -> None:
        """Paste with the middle at (x, y), or beside where it came from if that is the place."""
        piece = blocks_from_clipboard()
        if piece is None:
            self._bench.window.say("There are no blocks in the clipboard: copy some first.")
            return
        boxes = [(block.x, block.y, *block_size(block)) for block in piece.blocks]
        left, top = min(box[0] for box in boxes), min(box[1] for box in boxes)
        right = max(box[0] + box[2] for box in boxes)
        bottom = max(box[1] + box[3] for box in boxes)
        dx, dy = snap(x - (left + right) / 2), snap(y - (top + bottom) / 2)
        self._add_piece("Paste", piece, dx, dy)

    def _duplicate(self, blocks: Sequence[str]) -> None:
        piece = edits.fragment(self._bench.store.project, blocks)
        self._add_piece("Duplicate", piece, _PASTE_PX, _PASTE_PX)

    def _add_piece(self, text: str, piece: Model, dx: float, dy: float) -> None:
        added = self._bench.edit_with(
            _count(text, piece.blocks), lambda p: edits.add_fragment(p, piece, dx, dy)
        )
        self._bench.selection.set(added or ())

    # -- commands --------------------------------------------------------------------------------

    def arrange(self) -> None:
        model = self._bench.store.project.model
        view = self.page.canvas.viewport().size()
        room = (float(view.width()), float(view.height()))
        if model.blocks:
            self._bench.layout.submit("model", layout_model, model, room, then=self._move_to)

    def _move_to(self, positions: object) -> None:
        assert isinstance(positions, dict)
        known = {block.id for block in self._bench.store.project.model.blocks}
        moved = {key: place for key, place in positions.items() if key in known}
        self._bench.edit("Arrange", lambda project: edits.move_blocks(project, moved))
        self.page.canvas.fit()

    def _initialise(self) -> None:
        project = self._bench.store.project
        question = "Set all parameters anew? What the model has learnt is lost."
        if not self._bench.dialogs.confirm(self._bench.window, question, "Forget"):
            return
        self._bench.send(InitialiseCommand(model=project.model, training=project.training))

    def _copy_code(self) -> None:
        report = self._bench.store.newest(ModelSnapshot)
        if report is None or not report.code:
            self._bench.window.say("There is no code yet: the engine has not read the model.")
            return
        QGuiApplication.clipboard().setText(report.code)
        self._bench.window.say("The model's Python is in the clipboard.")

    def _ask_for_block_in_view(self) -> None:
        self._ask_for_block(*self._free_place())

    def _ask_for_block(self, x: float, y: float) -> None:
        canvas = self.page.canvas
        point = canvas.viewport().mapToGlobal(canvas.mapFromScene(x, y))
        self._bench.window.ask_for_block(
            lambda kind: self.add_block(kind, x, y), self._bench.window.mapFromGlobal(point)
        )

    # -- store -> views --------------------------------------------------------------------------

    def _on_project_changed(self, old: Project, new: Project) -> None:
        if old.model is new.model:
            return
        self.page.canvas.show_model(new.model)
        known = {block.id for block in new.model.blocks}
        kept = tuple(b for b in self._bench.selection.blocks if b in known)
        self._bench.selection.set(kept)
        self._show_properties()

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        if isinstance(snapshot, ModelSnapshot):
            self._show_report(snapshot)
        elif isinstance(snapshot, ForwardSnapshot):
            done = snapshot.order[: snapshot.position]
            self.page.canvas.show_progress(done, done[-1] if done else None)
        elif isinstance(snapshot, WeightsSnapshot):
            self._bench.window.say(snapshot.origin)

    def _on_opened(self) -> None:
        self._bench.selection.set(())
        view = self._bench.store.project.view
        self.page.canvas.show_model(self._bench.store.project.model)
        if view.canvas_zoom == 1.0 and view.canvas_center == (0.0, 0.0):
            self.page.canvas.fit()
        else:
            self.page.canvas.set_view(view.canvas_zoom, *view.canvas_center)

    def _on_view_changed(self, zoom: float, x: float, y: float) -> None:
        view = self._bench.store.project.view
        self._bench.store.set_view(replace(view, canvas_zoom=zoom, canvas_center=(x, y)))

    def _show_all(self) -> None:
        self._on_opened()
        report = self._bench.store.newest(ModelSnapshot)
        if report is not None:
            self._show_report(report)
        self._show_properties()

    def _show_report(self, report: ModelSnapshot) -> None:
        self.page.canvas.show_report(report)
        self.page.code.show_code(report.code, report.lines)
        block_problems = [p for block in report.blocks for p in block.problems]
        self.page.show_problems([*report.problems, *block_problems])
        blocks = len(report.blocks)
        self._bench.window.show_totals(
            f"{blocks} block{'s' * (blocks != 1)} · {report.parameters:,} parameters · "
            f"{format_bytes(report.parameter_bytes)}"
        )
        self._show_properties()
        self._show_selection(self._bench.selection.blocks)

    def _show_selection(self, blocks: tuple[str, ...]) -> None:
        self._bench.history.seal()
        self.page.canvas.select(blocks)
        self.page.code.highlight_block(blocks[0] if len(blocks) == 1 else None)
        self._show_properties()

    def _show_properties(self) -> None:
        selected = self._bench.selection.blocks
        report = self._bench.store.newest(ModelSnapshot)
        if len(selected) != 1:
            self.page.properties.show_block(None, None, None, report)
            return
        block = self._bench.store.project.model.block(selected[0])
        of_block = next((r for r in report.blocks if r.block == block.id), None) if report else None
        kind = catalogue.kinds().get(block.kind)
        self.page.properties.show_block(block, kind, of_block, report)

    def _select_one(self, block_id: str) -> None:
        self._bench.selection.set((block_id,))


def _add_after(project: Project, kind: str, before: Block) -> tuple[Project, str]:
    """Add a block to the right of another and wire the one's first output to its first input,
    where both exist."""
    project, added = edits.add_block(project, kind, before.x + _BESIDE_PX, before.y)
    outputs = catalogue.ports(before)[1]
    inputs = catalogue.ports(project.model.block(added))[0]
    if outputs and inputs:
        wire = Wire(before.id, outputs[0].name, added, inputs[0].name)
        project = edits.connect(project, wire)
    return project, added


def _title(kind: str) -> str:
    return catalogue.kind(kind).title


def _count(verb: str, blocks: Sequence | dict) -> str:
    return f"{verb} {len(blocks)} blocks" if len(blocks) != 1 else f"{verb} block"
