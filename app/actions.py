"""The table of all actions, by menu; shortcuts and the command palette are made from it too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct
from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from widgets.icons import set_icon


class ActionSpec(Struct, frozen=True):
    """`id` is `category.verb`. `text` is the menu text, `tip` the tooltip."""

    id: str
    text: str
    shortcut: str
    icon: str
    tip: str
    checkable: bool = False

    @property
    def on_canvas(self) -> bool:
        """The action's keys work only while the canvas has the focus, because they mean something
        else elsewhere."""
        edits_blocks = self.category == "Edit" and self.id not in ("edit.undo", "edit.redo")
        return edits_blocks or self.id in ("view.fit", "model.insert")

    @property
    def category(self) -> str:
        return self.id.partition(".")[0].capitalize()


SEPARATOR, RECENT, PANELS = "", "recent", "panels"
"""What a menu has besides actions. The window fills the submenus of recent files and panels."""


def _menu(*rows: tuple | str) -> tuple[ActionSpec | str, ...]:
    return tuple(row if isinstance(row, str) else ActionSpec(*row) for row in rows)


# fmt: off
MENUS: dict[str, tuple[ActionSpec | str, ...]] = {
    "&File": _menu(
        ("file.new", "&New project", "Ctrl+N", "file-plus-outline", "Start an empty project."),
        ("file.open", "&Open…", "Ctrl+O", "folder-open-outline",
         "Open a project, a Python file with a module to work on, or a file of tensors or of a"
         " program to look into."),
        ("file.open_folder", "Open &folder…", "", "folder-outline",
         "Look into a folder of Hugging Face, of torch.distributed.checkpoint or of a run."),
        RECENT,
        SEPARATOR,
        ("file.attach", "&Attach to a script…", "", "connection",
         "Show a script, a notebook or a run that says `tensorlab.watch(model)`: its tensors, its"
         " loop, its graph. It trains on."),
        ("engine.detach", "&Detach", "", "link-off",
         "Leave the script that the window is attached to, and start an engine of its own. Code"
         " that is held goes on."),
        SEPARATOR,
        ("file.save", "&Save", "Ctrl+S", "content-save-outline", "Write the project to its file."),
        ("file.save_as", "Save &as…", "Ctrl+Shift+S", "content-save-edit-outline",
         "Write the project to another file, and save there from now on."),
        SEPARATOR,
        ("file.export", "&Export…", "Ctrl+E", "export",
         "Write the subject's weights (.pt, safetensors, ...) or a program (Python, ONNX, ...); a"
         " fresh process reads it back and compares."),
        SEPARATOR,
        ("file.quit", "&Quit", "Ctrl+Q", "exit-to-app",
         "Close the window. It asks about unsaved changes first."),
    ),
    "&Edit": _menu(
        ("edit.undo", "&Undo", "Ctrl+Z", "undo", "Undo the last edit."),
        ("edit.redo", "&Redo", "Ctrl+Shift+Z", "redo", "Repeat the edit that was undone."),
        SEPARATOR,
        ("edit.cut", "Cu&t", "Ctrl+X", "content-cut", "Move the selected blocks to the clipboard."),
        ("edit.copy", "&Copy", "Ctrl+C", "content-copy",
         "Copy the selected blocks and the wires among them."),
        ("edit.paste", "&Paste", "Ctrl+V", "content-paste",
         "Add the copied blocks under new names."),
        ("edit.duplicate", "&Duplicate", "Ctrl+D", "content-duplicate",
         "Copy the selected blocks and place the copies beside them."),
        ("edit.delete", "De&lete", "Del", "delete-outline",
         "Remove the selected blocks and wires; undo brings them back."),
        SEPARATOR,
        ("edit.select_all", "Select &all", "Ctrl+A", "select-all", "Select every block."),
    ),
    "&View": _menu(
        ("view.start", "&Start page", "Ctrl+1", "home-outline",
         "New projects, templates and recent files."),
        ("view.tensors", "Te&nsors workspace", "Ctrl+2", "matrix",
         "See the storage under every tensor, and run Python in the console."),
        ("view.model", "&Model workspace", "Ctrl+3", "vector-polyline",
         "Build the model from blocks."),
        ("view.autograd", "&Autograd workspace", "Ctrl+4", "sitemap-outline",
         "Step one batch forward through the model and its gradients backward."),
        ("view.train", "&Train workspace", "Ctrl+5", "chart-line",
         "Train the model and watch it learn."),
        ("view.files", "F&iles", "Ctrl+6", "file-search-outline",
         "What the open file of tensors or of a program holds: keys, numbers, graph."),
        SEPARATOR,
        ("view.show_in", "S&how the selection in…", "Ctrl+J", "arrow-top-right",
         "Go to another view of what is selected: its block or module, nodes, values, line."),
        ("view.back", "&Back", "Alt+Left", "arrow-left",
         "Go back to what you chose before, in the view where you chose it."),
        ("view.forward", "For&ward", "Alt+Right", "arrow-right",
         "Go to what you chose after it, once you have gone back."),
        SEPARATOR,
        ("view.commands", "&Command palette…", "Ctrl+Shift+P", "magnify",
         "Find every action, block and workspace by name."),
        ("view.fit", "&Fit to window", "F", "fit-to-page-outline", "Show the whole model."),
        PANELS,
        ("view.fold_left", "Show or hide the &left panels", "Ctrl+[", "dock-left",
         "Show or hide the left panels: the canvas or the tensor gets their space."),
        ("view.fold_right", "Show or hide the right panels", "Ctrl+]", "dock-right",
         "Show or hide the right panels: the canvas gets their space."),
        SEPARATOR,
        ("view.theme_system", "S&ystem theme", "", "theme-light-dark",
         "Light or dark, as the system is set.", True),
        ("view.theme_light", "&Light theme", "", "weather-sunny", "Dark on light.", True),
        ("view.theme_dark", "&Dark theme", "", "weather-night", "Light on dark.", True),
    ),
    "&Tensors": _menu(
        ("tensors.console", "Go to the &console", "Ctrl+`", "console-line",
         "Run Python on the tensors."),
        ("tensors.create", "C&reate a tensor", "Ctrl+T", "plus-box-outline",
         "Make a tensor with a function such as torch.zeros; the form shows its line."),
        ("tensors.show", "&Show a tensor…", "Ctrl+G", "eye-outline",
         "Choose the tensor that all views show: a variable, x.grad, net.weight, xs[0]."),
        SEPARATOR,
        ("tensors.open_file", "&Open Python as cells…", "", "file-code-outline",
         "Open a Python file and run it cell by cell: a line `# %%` starts a cell."),
        ("tensors.run_again", "Run the project's cells a&gain", "", "replay",
         "Run all cells that this project keeps, in order, up to the first that fails."),
        ("tensors.forget_cells", "Re&move the project's cells", "", "notebook-remove-outline",
         "Remove the cells from the project. The variables that they made stay."),
        ("tensors.show_muted_advice", "Show muted ad&vice", "", "bell-outline",
         "Show the notes again whose kinds were muted, from the next cell on."),
    ),
    "&Model": _menu(
        ("model.insert", "&Insert block…", "/", "plus-box-outline",
         "Add a block by name; one that is selected is wired to it."),
        ("model.layout", "&Arrange", "Ctrl+L", "sitemap",
         "Lay the blocks out in layers, in the order of the computation."),
        ("model.copy_code", "&Copy Python", "", "content-copy",
         "Copy the model's nn.Module to the clipboard."),
        SEPARATOR,
        ("model.initialise", "Reset all &weights", "", "restore",
         "Initialise all parameters again, from the seed of the training set-up."),
    ),
    "&Autograd": _menu(
        ("autograd.start", "&Start a forward pass", "F6", "play-box-outline",
         "Start with a batch of the chosen data at the first block."),
        ("autograd.step", "Step &forward", "F10", "debug-step-over", "Run the next block."),
        ("autograd.back", "Step ba&ck", "Shift+F10", "debug-step-out", "Undo the last step."),
        SEPARATOR,
        ("autograd.start_backward", "Start the &backward pass", "F7", "rewind-outline",
         "Read the graph from loss.grad_fn. The first step runs its root."),
        ("autograd.step_backward", "Step back&ward", "F11", "debug-step-into",
         "Run the next node of the autograd graph."),
        ("autograd.run_backward", "Run backward to the next b&reakpoint", "F12", "play",
         "Run the nodes of the autograd graph until a breakpoint, or the end."),
        ("autograd.out_backward", "&Finish this module", "Shift+F11", "debug-step-out",
         "Run all remaining nodes of the next node's module."),
        ("autograd.run_back", "Run back to the previous brea&kpoint", "Shift+F12", "rewind",
         "Undo nodes of the backward pass, back to the previous breakpoint or to the start."),
        ("autograd.own_backward", "Step my own back&ward()", "", "debug-step-into",
         "Open each backward() that your own code calls, and hold the code in it.", True),
        ("autograd.compare", "Compare with &backward()", "", "scale-balance",
         "Run the same batch through loss.backward() and compare every .grad."),
        SEPARATOR,
        # The keys of the trace are also those of the passes: see `Actions.give_step_keys`.
        ("trace.start", "Start the &trace", "F6", "play-box-outline",
         "Run the code, or the batch, and record every call of torch."),
        ("trace.over", "Trace: step o&ver", "F10", "debug-step-over",
         "Go to the next call that is not inside this one."),
        ("trace.back", "Trace: step back", "Shift+F10", "step-backward",
         "Go to the previous call."),
        ("trace.into", "Trace: step &into", "F11", "debug-step-into",
         "Go to the next call, also inside this one."),
        ("trace.out", "Trace: step out", "Shift+F11", "debug-step-out",
         "Go to the first call after the enclosing one."),
        ("trace.line", "Trace: next &line", "F12", "arrow-down-bold-outline",
         "Go to the next line that ran."),
        ("trace.back_line", "Trace: line b&ack", "Shift+F12", "arrow-up-bold-outline",
         "Go to the previous line that ran."),
    ),
    "&Train": _menu(
        ("train.check", "&Check before training", "Ctrl+F5", "clipboard-check-outline",
         "Check model, data and settings, and test the learning rate, on copies of the weights."),
        ("train.start", "&Train", "F5", "play", "Train the model from its current weights."),
        ("train.pause", "&Pause or continue", "F8", "pause",
         "Pause at the next step, or continue; also code that is held."),
        ("train.step", "Single &step", "F9", "debug-step-over", "Run one optimizer step."),
        ("train.op", "Next &operation of the step", "Alt+F9", "debug-step-into",
         "Hold the run's own step after its next call of torch, or the next node of backward."),
        ("train.module", "Next &module of the step", "Alt+Shift+F9", "debug-step-out",
         "Hold the run's own step where the next module has returned, in backward too."),
        ("train.phase", "Next p&hase of the step", "Ctrl+Shift+F9", "debug-step-into",
         "Run the next phase: zero_grad, forward, loss, backward or step."),
        ("train.batch", "Next &batch of the step", "", "debug-step-over",
         "Run the phases of the next of several batches a step (accumulate); of one, the step."),
        ("train.epoch", "To the end of the &epoch", "Ctrl+Alt+F9", "page-next-outline",
         "Let the run go on and pause after its epoch, with the validation."),
        ("train.back", "Bac&k one step", "Ctrl+F9", "skip-previous",
         "Undo the last optimizer step of the run."),
        ("train.line", "Next &line", "Shift+F9", "arrow-down-bold-outline",
         "Run the code that is held to its next line."),
        ("train.stop", "St&op", "Shift+F5", "stop", "End the run. The weights stay as they are."),
        ("train.annotate", "A&nnotate a step…", "Ctrl+Shift+N", "comment-text-outline",
         "Write words at the step under the crosshair of a plot, else at the newest; there again,"
         " change or delete them."),
        ("train.resume", "&Resume from checkpoint", "", "restart",
         "Continue from the last checkpoint of the run in this window."),
        SEPARATOR,
        ("engine.interrupt", "&Interrupt the engine", "", "hand-back-left-outline",
         "Stop the current job. An engine that does not answer is ended and restarted."),
        ("engine.restart", "&Restart the engine", "", "refresh",
         "End the engine's process and start a new one. Trained weights that were not saved are"
         " lost."),
    ),
    "&Help": _menu(
        ("help.guide", "&Guide", "Shift+F1", "book-open-variant",
         "Read and search the guides: for learner, teacher, practitioner and command line."),
        ("help.shortcuts", "&Keyboard shortcuts", "F1", "keyboard-outline",
         "Show every action with its keys."),
        ("help.about", "&About Tensor Lab", "", "information-outline", "Show the versions in use."),
    ),
}
# fmt: on

SPECS = tuple(row for rows in MENUS.values() for row in rows if isinstance(row, ActionSpec))
TRACE_ACTIONS = tuple(spec.id for spec in SPECS if spec.category == "Trace")
ON_CANVAS = tuple(spec.id for spec in SPECS if spec.on_canvas)


class Actions(QObject):
    """The QActions of `window`, by id, made from the table."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._rows: dict[str, tuple[ActionSpec, QAction]] = {}
        for spec in SPECS:
            action = QAction(spec.text, window)
            action.setObjectName(spec.id)
            action.setShortcut(QKeySequence(spec.shortcut))
            action.setToolTip(f"{spec.tip} ({spec.shortcut})" if spec.shortcut else spec.tip)
            action.setStatusTip(spec.tip)
            action.setCheckable(spec.checkable)
            set_icon(action, f"mdi6.{spec.icon}")
            if not spec.on_canvas:
                window.addAction(action)
            self._rows[spec.id] = spec, action

    def __getitem__(self, action_id: str) -> QAction:
        return self._rows[action_id][1]

    def __iter__(self) -> Iterator[tuple[ActionSpec, QAction]]:
        return iter(self._rows.values())

    def bind(self, calls: Mapping[str, Callable[[], object]]) -> None:
        """Connect every action, by its id, to the function that it calls. Raises ValueError that
        names the actions without a function, or the functions without an action."""
        for fault, ids in (
            ("actions that call nothing", self._rows.keys() - calls.keys()),
            ("callables without an action", calls.keys() - self._rows.keys()),
        ):
            if ids:
                raise ValueError(f"{fault}: {', '.join(sorted(ids))}")
        for action_id, call in calls.items():
            self[action_id].triggered.connect(lambda _checked=False, call=call: call())

    def give_step_keys(self, to_trace: bool) -> None:
        """Enable F6 and F10 to F12 either for the trace or for the passes, so that a key never has
        two meanings at once."""
        keys = {self[name].shortcut() for name in TRACE_ACTIONS}
        for spec, action in self:
            if action.shortcut() in keys:
                action.setEnabled((spec.id in TRACE_ACTIONS) == to_trace)

    def give_canvas(self, canvas: QWidget) -> None:
        """Let the keys of the canvas's actions work while this widget has the focus."""
        for spec, action in self:
            if spec.on_canvas:
                action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
                canvas.addAction(action)
