"""The choice of the weights with which Train begins."""

from __future__ import annotations

from engine.protocol import EpochRow, RunSnapshot, TrainingSnapshot
from widgets import make
from widgets.training.run_words import DIVERGED, at_chance


class StartWeights:
    """The weights as they are, or fresh ones. After a run that spoilt the weights, fresh ones are
    chosen, and after another run this is taken back, unless the user has made the choice."""

    def __init__(self) -> None:
        self._spoilt = False
        self.box = make.combo(
            "run_weights",
            "Weights with which Train begins",
            "The weights with which Train begins",
            (
                ("present weights", False, "Go on with the weights as they are now"),
                ("fresh weights", True, "Initialise all weights from the seed first"),
            ),
        )
        self.box.activated.connect(self._keep_choice)

    @property
    def fresh(self) -> bool:
        """Whether Train initialises the weights first."""
        return bool(self.box.currentData())

    def choose_fresh(self, fresh: bool) -> None:
        """Choose whether Train initialises the weights first."""
        self.box.setCurrentIndex(self.box.findData(fresh))

    def show_run(self, snapshot: RunSnapshot, last: EpochRow | None) -> None:
        """A run has come to another state; `last` is its newest epoch."""
        if not isinstance(snapshot, TrainingSnapshot) or snapshot.state in ("running", "paused"):
            return
        diverged = snapshot.error is not None and snapshot.error.type == DIVERGED
        if diverged or (snapshot.state == "finished" and at_chance(snapshot, last)):
            self._spoilt = self._spoilt or not self.fresh
            self.choose_fresh(True)
        elif self._spoilt:
            self._spoilt = False
            self.choose_fresh(False)

    def clear(self) -> None:
        """Return to the state before the first run."""
        self._spoilt = False
        self.choose_fresh(False)

    def _keep_choice(self) -> None:
        self._spoilt = False
