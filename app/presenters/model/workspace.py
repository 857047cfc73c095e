"""The Model workspace: connects its widgets with edits, commands and the store."""

from __future__ import annotations

from functools import reduce

from PySide6.QtCore import QObject, QRectF, QSignalBlocker
from PySide6.QtGui import QGuiApplication

from app.presenters.model.edits import ModelEdits, count
from app.presenters.model.first_page import show_view
from app.selection.references import Blocks, Reference
from app.window.model_page import ModelPage
from app.workbench import Workbench
from engine.project import catalogue, edits
from engine.project.document import Project, replace
from engine.protocol import (
    ForwardSnapshot,
    InitialiseCommand,
    ModelSnapshot,
    WeightsSnapshot,
)
from widgets.text import format_bytes

CANVAS, CODE = "canvas", "canvas code"


class ModelPresenter(QObject):
    def __init__(self, bench: Workbench, page: ModelPage, parent: QObject) -> None:
        super().__init__(parent)
        self._bench, self.page = bench, page
        self._blocks: tuple[str, ...] = ()  # those whose properties and code are shown
        self.edits = ModelEdits(bench, page)
        self._connect_canvas()
        self._connect_panels()
        bench.store.project_changed.connect(self._on_project_changed)
        bench.store.revision_changed.connect(lambda: page.canvas.show_progress((), None))
        bench.store.on(ModelSnapshot, self._show_report)
        bench.store.on(ForwardSnapshot, self._show_progress)
        bench.store.on(WeightsSnapshot, self._tell_origin)
        bench.selection.changed.connect(self._follow)
        bench.files.opened.connect(self._on_opened)
        bench.selection.views[page.canvas] = CANVAS
        bench.selection.views[page.code] = CODE
        page.canvas.show_model(bench.project.model)
        self._on_opened()

    # -- views -> edits --------------------------------------------------------------------------

    def _connect_canvas(self) -> None:
        canvas = self.page.canvas
        canvas.block_dropped.connect(self.edits.add_block)
        canvas.block_dropped_on_wire.connect(self.edits.insert_on_wire)
        canvas.blocks_moved.connect(
            lambda moved: self.edits.edit(
                count("Move", moved), lambda p: edits.move_blocks(p, moved)
            )
        )
        canvas.wire_requested.connect(
            lambda wire: self.edits.edit("Connect", lambda p: edits.connect(p, wire))
        )
        canvas.wire_rerouted.connect(
            lambda old, new: self.edits.edit("Re-route", lambda p: edits.reroute(p, old, new))
        )
        canvas.delete_requested.connect(self.edits.delete)
        canvas.duplicate_requested.connect(self.edits.duplicate)
        canvas.copy_requested.connect(self.edits.copy)
        canvas.cut_requested.connect(self.edits.cut)
        canvas.paste_requested.connect(self.edits.paste_at)
        canvas.selection_changed.connect(self._choose)
        canvas.block_activated.connect(self._edit_properties)
        canvas.rename_requested.connect(self.edits.rename_in_place)
        canvas.fix_requested.connect(self.edits.fix)
        canvas.layout_requested.connect(self.arrange)
        canvas.insert_requested.connect(self.ask_for_block)
        canvas.view_changed.connect(self._on_view_changed)

    def _connect_panels(self) -> None:
        page = self.page
        page.block_palette.block_chosen.connect(self.edits.add_chosen)
        page.block_palette.drag_moved.connect(page.canvas.ghost)
        page.block_palette.drag_dropped.connect(page.canvas.drop)
        page.block_palette.drag_cancelled.connect(page.canvas.end_ghost)
        page.properties.rename_requested.connect(self.edits.rename)
        page.properties.param_edited.connect(self.edits.set_param)
        page.properties.fix_requested.connect(self.edits.fix)
        page.properties.problem_activated.connect(self._select_one)
        page.properties.left.connect(page.canvas.setFocus)
        page.problems.fix_requested.connect(self.edits.fix)
        page.problems.problem_activated.connect(self._select_one)
        page.problems_moved.connect(self._show_properties)
        page.code.block_selected.connect(self._select_one)

    def _edit_properties(self, _block: str) -> None:
        self.page.properties_dock.show()
        self.page.properties_dock.raise_()
        self.page.properties.edit()

    # -- commands --------------------------------------------------------------------------------

    def arrange(self) -> None:
        from widgets.layout.model_layout import layout_model  # the window shows before it is needed

        model = self._bench.project.model
        view = self.page.canvas.viewport().size()
        room = (float(view.width()), float(view.height()))
        if model.blocks:
            self._bench.layout.submit("model", layout_model, model, room, then=self._move_to)

    def _move_to(self, positions: object) -> None:
        assert isinstance(positions, dict)
        known = {block.id for block in self._bench.project.model.blocks}
        moved = {key: place for key, place in positions.items() if key in known}
        self._bench.edit("Arrange", lambda project: edits.move_blocks(project, moved))
        self.page.canvas.fit()

    def initialise(self) -> None:
        project = self._bench.project
        question = "Reset all weights? Training progress will be lost."
        if not self._bench.confirm(question, "Reset"):
            return
        self._bench.send(InitialiseCommand(model=project.model, training=project.training))

    def copy_code(self) -> None:
        report = self._bench.newest(ModelSnapshot)
        if report is None or not report.code:
            self._bench.say("There is no code yet: the engine has not read the model.")
            return
        QGuiApplication.clipboard().setText(report.code)
        self._bench.say("The model's Python is in the clipboard.")

    def ask_for_block(self, x: float | None = None, y: float | None = None) -> None:
        """Ask for a block, and add it at a point of the scene or in the middle of the view."""
        canvas = self.page.canvas
        if x is None or y is None:
            x, y = self.edits.middle_place()
        point = canvas.viewport().mapToGlobal(canvas.mapFromScene(x, y))
        self._bench.window.ask_for_block(
            lambda kind: self.edits.add_chosen(kind, (x, y)),
            self._bench.window.mapFromGlobal(point),
        )

    # -- store -> views --------------------------------------------------------------------------

    def _on_project_changed(self, old: Project, new: Project) -> None:
        if old.subject != new.subject:
            self._show_totals()
        if old.model is new.model:
            return
        self.page.canvas.show_model(new.model)
        known = {block.id for block in new.model.blocks}
        self._blocks = tuple(block for block in self._blocks if block in known)
        match self._bench.selection.current:
            case Blocks(ids) if not known.issuperset(ids):
                kept = tuple(block for block in ids if block in known)
                self._bench.selection.choose(Blocks(kept) if kept else None, CANVAS)
        self._show_properties()

    def _show_progress(self, forward: ForwardSnapshot) -> None:
        done = forward.order[: forward.position]
        self.page.canvas.show_progress(done, done[-1] if done else None)

    def _tell_origin(self, weights: WeightsSnapshot) -> None:
        if weights.origin:
            self._bench.say(weights.origin)

    def _on_opened(self) -> None:
        self._bench.selection.forget()
        view = self._bench.project.view
        self._show_report(self._bench.newest(ModelSnapshot))
        show_view(self.page.canvas, view)

    def _on_view_changed(self, zoom: float, x: float, y: float) -> None:
        view = self._bench.project.view
        self._bench.store.set_view(replace(view, canvas_zoom=zoom, canvas_center=(x, y)))

    def _show_report(self, report: ModelSnapshot | None) -> None:
        """Show what the engine has found; None if it has not answered yet."""
        self.page.canvas.show_report(report)
        if report is None:
            self.page.code.show_code("", {})
            self.page.show_problems((), self._bench.project.model)
            self._show_totals()
            self._show_properties()
            return
        self.page.code.show_code(report.code, report.lines)
        block_problems = [p for block in report.blocks for p in block.problems]
        model = self._bench.project.model
        # In an empty project nothing is wrong yet.
        problems = [*report.problems, *block_problems] if model.blocks else []
        self.page.show_problems(problems, model)
        self._show_totals()
        self._show_code_of(self._blocks)
        self._show_properties()

    def _show_totals(self) -> None:
        """Show the size of the model; nothing while another subject is worked on."""
        report = self._bench.newest(ModelSnapshot)
        if report is None or self._bench.project.subject.is_code:
            self._bench.window.show_totals("")
            return
        blocks = len(report.blocks)
        self._bench.window.show_totals(
            f"{blocks} block{'s' * (blocks != 1)} · {report.parameters:,} parameters · "
            f"{format_bytes(report.parameter_bytes)}"
        )

    # -- selection -------------------------------------------------------------------------------

    def _choose(self, blocks: tuple[str, ...]) -> None:
        """The user has selected these blocks on the canvas."""
        if blocks != self._bench.selected_blocks:
            self._bench.selection.choose(Blocks(blocks) if blocks else None, CANVAS)
        self._show_blocks(blocks)

    def _follow(self, reference: Reference | None) -> None:
        """Select the blocks on the canvas; for what is in no block, it stays as it is."""
        blocks = self._bench.selected_blocks
        if blocks or reference is None:
            with QSignalBlocker(self.page.canvas):
                self.page.canvas.select(blocks)
            self._show_blocks(blocks)

    def show_chosen(self) -> None:
        """Bring the blocks of the selection into view."""
        there = self.page.canvas.model_scene.blocks
        boxes = [there[block].rect() for block in self._bench.selected_blocks if block in there]
        if boxes:
            self.page.canvas.reveal(reduce(QRectF.united, boxes))

    def show_code(self) -> None:
        """Bring the lines of the selected block into view."""
        self.page.code_dock.show()
        self.page.code_dock.raise_()
        self._show_code_of(self._bench.selected_blocks)

    def _show_blocks(self, blocks: tuple[str, ...]) -> None:
        if blocks != self._blocks:
            self._blocks = blocks
            self._bench.history.seal()
            self._show_code_of(blocks)
            self._show_properties()

    def _show_code_of(self, blocks: tuple[str, ...]) -> None:
        self.page.code.highlight_block(blocks[0] if len(blocks) == 1 else None)

    def _show_properties(self) -> None:
        selected = self._blocks
        report = self._bench.newest(ModelSnapshot)
        if len(selected) != 1:
            model = self._bench.project.model
            self.page.properties.show_block(None, None, None, report, model)
            return
        block = self._bench.project.model.block(selected[0])
        of_block = next((r for r in report.blocks if r.block == block.id), None) if report else None
        kind = catalogue.kinds().get(block.kind)
        self.page.properties.show_block(block, kind, of_block, report)

    def _select_one(self, block_id: str) -> None:
        self._bench.selection.choose(Blocks((block_id,)), CANVAS)
