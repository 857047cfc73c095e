"""Norms by module, histograms and images of the newest run: read again while it goes on, and only
while they are seen."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QObject, Signal

from app.presenters.live_reading import LiveReading
from app.processes.link import Link
from app.selection.finding import module_of, parameter_of
from app.selection.references import Element, Module, Parameter
from app.workbench import Workbench
from engine.protocol import (
    HistogramsSnapshot,
    ImagesSnapshot,
    LoopSnapshot,
    ModuleNormsSnapshot,
    ReadHistogramsCommand,
    ReadImagesCommand,
    ReadModuleNormsCommand,
    RunSnapshot,
    TrainingSnapshot,
)
from widgets.training.train_view import TrainView

MODULES, HISTOGRAMS = "module lines", "histograms"


class OverTimePresenter(QObject):
    """`tensor_wanted(reference)`: the reader wants to see a tensor."""

    tensor_wanted = Signal(object)

    def __init__(self, bench: Workbench, view: TrainView, parent: QObject) -> None:
        super().__init__(parent)
        self._bench = bench
        self._modules, self._histograms = view.modules, view.histograms
        self._is_loop = bench.newest(LoopSnapshot) is not None
        bench.store.on(RunSnapshot, self._follow)
        self._links: dict[int, Link] = {}
        self._view = view
        link = self._link
        self._lines = LiveReading(
            bench, self._modules, self._norms_command, self._take_norms, self, link
        )
        self._maps = LiveReading(
            bench, self._histograms, self._histograms_command, self._take_histograms, self, link
        )
        self._images = view.images
        self._strip = LiveReading(
            bench,
            self._images,
            lambda: ReadImagesCommand(name=self._images.name),
            self._take_images,
            self,
            link,
        )
        view.rank.activated.connect(lambda _: self._read_again())
        self._images.asked.connect(self._strip.again)
        self._images.chosen.connect(self._choose_newest)
        self._modules.asked.connect(self._lines.again)
        self._histograms.asked.connect(self._maps.again)
        bench.selection.views[self._modules] = MODULES
        bench.selection.views[self._histograms] = HISTOGRAMS
        self._modules.chosen.connect(self._choose)
        self._histograms.chosen.connect(
            lambda name: bench.selection.choose(Parameter(name), HISTOGRAMS)
        )
        bench.selection.changed.connect(lambda _: self._show_chosen())

    def show_ranks(self, own: int, links: Mapping[int, Link]) -> None:
        """Of a script that is one of several ranks: its number, and the links to the others."""
        before = self._view.rank.currentData()
        self._links = dict(links)
        self._view.show_ranks(own, sorted(links))
        if self._view.rank.currentData() != before:
            self._read_again()

    def _link(self) -> Link | None:
        return self._links.get(self._view.rank.currentData())

    def _read_again(self) -> None:
        for reading in (self._lines, self._maps, self._strip):
            reading.again()

    @property
    def _folder(self) -> str:
        """The folder of the newest run; "" before its first step, and of a loop."""
        if self._is_loop:
            return ""
        run = self._bench.newest(TrainingSnapshot)
        return "" if run is None else run.folder

    def _follow(self, snapshot: RunSnapshot) -> None:
        """Both pages are about the run or the loop whose plots are shown."""
        self._is_loop = isinstance(snapshot, LoopSnapshot)

    def _norms_command(self) -> ReadModuleNormsCommand:
        pane = self._modules
        return ReadModuleNormsCommand(
            folder=self._folder,
            depth=pane.depth,
            by_parameter=pane.by_parameter,
            names=pane.wanted,
            of_loop=self._is_loop,
        )

    def _take_norms(self, found: ModuleNormsSnapshot) -> bool:
        self._modules.show_norms(found)
        self._show_chosen()
        return True

    def _histograms_command(self) -> ReadHistogramsCommand:
        pane = self._histograms
        return ReadHistogramsCommand(
            folder=self._folder, name=pane.name, kind=pane.kind, of_loop=self._is_loop
        )

    def _take_histograms(self, found: HistogramsSnapshot) -> bool:
        self._histograms.show_histograms(found)
        return True

    def _take_images(self, found: ImagesSnapshot) -> bool:
        self._images.show_images(found)
        return True

    def _choose_newest(self, name: str) -> None:
        self.tensor_wanted.emit(Element(f"lab.logged[{name!r}]"))

    def _choose(self, name: str, is_parameter: bool) -> None:
        self._bench.selection.choose(Parameter(name) if is_parameter else Module(name), MODULES)

    def _show_chosen(self) -> None:
        chosen, known = self._bench.selection.current, self._bench.known
        name = parameter_of(chosen, known)
        if name is not None:
            self._histograms.show_chosen(name)
        if not self._modules.by_parameter:
            name = module_of(chosen, known)
        self._modules.show_chosen(name)
