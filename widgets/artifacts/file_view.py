"""One open file: its keys, and beside them numbers, program, comparison and metadata."""

from __future__ import annotations

from pathlib import PurePath

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QStackedWidget, QTabWidget, QWidget

from engine.protocol import ArtifactEntry, ArtifactSnapshot, ProgramGraph
from widgets import make
from widgets.artifacts.difference_table import DifferenceTable
from widgets.artifacts.entry_tree import EntryTree
from widgets.artifacts.program_graph import graph_of, node_words, value_words
from widgets.artifacts.rows import Row
from widgets.structure.calls_picture import CallsPane
from widgets.table import ReadTable
from widgets.text import format_bytes
from widgets.theme import GRID
from widgets.values.values_view import ValuesView

EMPTY = (
    "No file is open. Open one, or drop it here: weights and checkpoints (.pt, .safetensors),"
    " programs (.pt2, TorchScript, .onnx), arrays (.npy, .npz), or a folder of Hugging Face, of"
    " torch.distributed.checkpoint or of a run. Two that are dropped together are compared. Nothing"
    " of a file is run."
)
LONGEST_NAME = 24
NO_VALUES = "Choose a tensor among the keys: its numbers, statistics and histogram are shown here."
NO_NODE = "Select an operation in the graph: its inputs, outputs and attributes are told here."
NO_GRAPH = "This file has tensors and no program, so there is no graph to draw."


class FileView(QWidget):
    """`values` asks for numbers: the owner adds the file. `key_chosen(key)`: the reader has
    selected a tensor. `load_requested(group)`: load the tensors whose keys begin so, all for "".
    `blocks_requested(group)`: make a model of blocks from them.
    `variable_requested(key)`: a tensor is to become a variable. The other signals are buttons."""

    key_chosen = Signal(str)
    load_requested = Signal(str)
    blocks_requested = Signal(str)
    variable_requested = Signal(str)
    work_requested = Signal()
    open_requested = Signal()
    folder_requested = Signal()
    close_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("file_view")
        self.path = ""
        self._subject = "the subject"
        self._is_told = False
        self.tree, self.values, self.difference = EntryTree(), ValuesView(), DifferenceTable()
        self.calls = CallsPane()
        make.named(self.calls.view, "file_graph", "Graph of the program in the file")
        self.node = make.text("file_node", mono=9, wrap=True, width="own")
        self.node.setToolTip("The operation that is selected in the graph, as the file has it")
        self.graph_page = make.page((self.calls, 1), make.row(self.node, margins=GRID))
        self._program = ProgramGraph()
        self.about = ReadTable(
            "file_about",
            "What the file says of itself",
            (("Name", "What is told."), ("Text", "What the file says.")),
        )
        self._title = make.text("file_title", "heading", width="own")
        self._totals = make.text("file_totals", "muted")
        self._make_buttons()
        self.tabs = QTabWidget()
        pages = (
            (self.values, "Values", "The numbers of the chosen tensor"),
            (self.graph_page, "Graph", "The program's operations, in boxes of modules"),
            (self.difference, "Compare", "Which keys differ from those of another file"),
            (self.about, "About", "Metadata: versions, opset, config, state of a run"),
        )
        make.tabs("file_tabs", pages, "What to see of the file", tabs=self.tabs)
        self._pages = QStackedWidget()
        self._pages.addWidget(self._empty_page())
        self._pages.addWidget(self._file_page())
        make.column(self._pages, on=self)
        self.tree.row_chosen.connect(self._choose)
        self.calls.view.module_chosen.connect(self._choose_module)
        self.calls.view.node_selected.connect(self._choose_node)

    def _make_buttons(self) -> None:
        self.load = make.button(
            "file_load", "", "mdi6.import", self._load, primary=True, tip="Load the tensors.",
            accessible="Load the tensors",
        )  # fmt: skip
        self.blocks = make.button(
            "file_blocks", "New model", "mdi6.shape-square-rounded-plus", self._ask_for_blocks,
            tip="Make a new model of blocks from the names and shapes of the tensors, and load them"
            " into it; of a chosen branch, its tensors alone. What the file does not tell, such as"
            " activations, is named.",
        )  # fmt: skip
        self.work = make.button(
            "file_work", "Work on it", "mdi6.target", self.work_requested,
            tip="Make the program the subject of all workspaces: then it is loaded, and can be run,"
            " stepped and trained.",
        )  # fmt: skip
        self.variable = make.button(
            "file_variable", "Open in Tensors", "mdi6.matrix", self._ask_for_variable,
            tip="Make the chosen tensor a variable of the console; the line that does it is shown"
            " there.",
        )  # fmt: skip
        self.close_button = make.tool_button(
            "file_close", "mdi6.close", "Close the file: its tensors leave memory.",
            self.close_requested, accessible="Close the file",
        )  # fmt: skip

    # -- what is shown ---------------------------------------------------------------------------

    def show_file(
        self, whole: ArtifactSnapshot, entries: list[ArtifactEntry], program: ProgramGraph | None
    ) -> None:
        """Show a file from its index; `program` is whole."""
        self.path = whole.path
        self._title.setText(PurePath(whole.path).name)
        totals = whole.totals
        told = (whole.title, format_bytes(whole.size_bytes), f"{totals.tensors:,} tensors",
                f"{totals.elements:,} elements")  # fmt: skip
        self._totals.setText(" · ".join(told))
        self._totals.setToolTip(whole.path)
        self._program = program or ProgramGraph()
        graph = graph_of(self._program, entries)
        note = f"{self._program.note}\n" if self._program.note else ""
        make.tell(self.node, f"{note}{NO_NODE}" if graph else "")
        if graph is None:
            self.calls.view.clear(self._program.note or NO_GRAPH)
        else:
            self.calls.view.show_graph(graph)
        rows = [*whole.metadata, ("path", whole.path)]
        if program is not None:
            rows += [("input", value_words(value)) for value in program.inputs]
            rows += [("output", value_words(value)) for value in program.outputs]
            rows += [("graph", program.note)] * bool(program.note)
        self.about.show_rows(rows)
        self.difference.show_nothing()
        self.work.setVisible(whole.kind in ("torchscript", "exported program"))
        self.tabs.setCurrentWidget(self.values if graph is None else self.graph_page)
        self._pages.setCurrentIndex(1)
        self._is_told = True  # the picture shows all at first
        self.tree.show_entries(entries)
        self._is_told = False

    def show_nothing(self) -> None:
        """No file is open."""
        self.path = ""
        self.values.show_tensor("", NO_VALUES)
        self.calls.view.clear(NO_GRAPH)
        self.tree.show_entries(())
        self._pages.setCurrentIndex(0)

    def show_subject(self, title: str) -> None:
        """Name the subject into which weights are loaded."""
        self._subject = title
        self._show_actions()

    # -- what the reader does --------------------------------------------------------------------

    @property
    def _key(self) -> str:
        """The key of the chosen tensor whose numbers can be read."""
        row = self.tree.chosen
        return row.path if row and row.entry and row.entry.readable else ""

    @property
    def _group(self) -> str:
        """The chosen branch, whose tensors are loaded alone."""
        row = self.tree.chosen
        return row.path if row is not None and row.entry is None else ""

    def _choose(self, row: Row | None) -> None:
        self._show_actions()
        entry = row.entry if row else None
        if entry is None or entry.kind == "value" or not entry.readable:
            why = entry.text if entry and entry.kind == "value" else entry.note if entry else ""
            self.values.show_tensor("", why or NO_VALUES)
        else:
            self.values.show_tensor(entry.key)
            self.key_chosen.emit(entry.key)
        if row is not None and self.tabs.currentWidget() is self.graph_page and not self._is_told:
            self.calls.view.show_module(row.path if entry is None else row.path.rpartition(".")[0])

    def _choose_module(self, path: str) -> None:
        """The reader has selected a box of the graph: show a tensor of its module."""
        rows = self.tree.model.rows
        found = (row.path for row in rows if row.entry and row.path.startswith(f"{path}."))
        if path and (key := next(found, "")):
            self._is_told = True  # the picture keeps the box that the reader has selected
            self.tree.choose(key)
            self._is_told = False

    def _choose_node(self, number: int) -> None:
        """The reader has selected an operation, which is told, or a tensor, which is chosen."""
        operations = self._program.nodes
        if number < len(operations):
            make.tell(self.node, node_words(operations[-1 - number]))
            return
        hierarchy = self.calls.view.hierarchy
        label = "" if hierarchy is None else hierarchy.graph.nodes[number].label
        make.tell(self.node, label)
        if any(row.entry and row.path == label for row in self.tree.model.rows):
            self._is_told = True
            self.tree.choose(label)
            self._is_told = False

    def _load(self) -> None:
        self.load_requested.emit(self._group)

    def _ask_for_blocks(self) -> None:
        self.blocks_requested.emit(self._group)

    def _ask_for_variable(self) -> None:
        if self._key:
            self.variable_requested.emit(self._key)

    def _show_actions(self) -> None:
        self.variable.setEnabled(bool(self._key))
        group = self._group
        what = f"{_short(group)} " if group else ""
        self.load.setText(f"Load {what}into {_short(self._subject)}")
        self.load.setAccessibleName(self.load.text())
        self.load.setToolTip(
            f"Copy the tensors{f' under {group}' if group else ''} by their names into"
            f" {self._subject}. What is missing, unexpected or of another shape is told before"
            " anything is loaded. Choose a branch to load it alone."
        )

    # -- layout ----------------------------------------------------------------------------------

    def _file_page(self) -> QWidget:
        head = make.row(
            self._title, (self._totals, 1), self.load, self.blocks, self.work, self.variable,
            self.close_button, margins=(GRID, GRID, GRID, 0),
        )  # fmt: skip
        panes = make.splitter(self.tree, self.tabs, sizes=(620, 740), shares=(1, 1))
        return make.page(head, (panes, 1), margins=(0, 0, 0, GRID))

    def _empty_page(self) -> QWidget:
        middle = Qt.AlignmentFlag.AlignCenter
        open_ = make.button(
            "file_open", "Open a file…", "mdi6.folder-open-outline", self.open_requested,
            primary=True, tip="Choose a file: what it holds is shown, and nothing of it is run.",
        )  # fmt: skip
        folder = make.button(
            "file_open_folder", "Open a folder…", "mdi6.folder-outline", self.folder_requested,
            tip="Choose a folder of Hugging Face, of torch.distributed.checkpoint or of a run.",
        )  # fmt: skip
        buttons = make.row(make.STRETCH, open_, folder, make.STRETCH)
        words = make.empty(EMPTY, "file_empty")
        return make.page(
            make.STRETCH, (words, 0, middle), buttons, make.STRETCH, gap=2 * GRID, margins=4 * GRID
        )


def _short(name: str) -> str:
    """The end of a long name: a button has little room."""
    return name if len(name) <= LONGEST_NAME else f"…{name[1 - LONGEST_NAME :]}"
