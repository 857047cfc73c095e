"""The scripts in `assets/scripts`: they train, and a window can attach to each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from engine.connecting.dialing import dial
from engine.connecting.places import listening
from engine.protocol import (
    ContinueTrainingCommand,
    HeldSnapshot,
    HistogramsSnapshot,
    LoopSnapshot,
    PauseSignal,
    ReadHistogramsCommand,
    StepTrainingCommand,
)
from engine.system.program import version
from tests.engine.attaching import ROOT, Script, Window

SCRIPTS = ROOT / "assets/scripts"


def source(name: str) -> str:
    """The script; it waits for its window."""
    text = (SCRIPTS / name).read_text(encoding="utf-8")
    waits = text.replace("lab.watch(model, optimizer,", "lab.watch(model, optimizer, wait=True,")
    assert waits != text
    return waits


def losses(printed: str) -> list[float]:
    return [float(loss) for loss in re.findall(r"loss ([\d.]+)", printed)]


def test_gpt_learns_and_its_figures_are_drawn(script: Callable[..., Script]) -> None:
    text = source("gpt.py")
    running = script(text, "--steps", "60")
    running.address()
    window = running.attach()
    assert window.welcome.about.name == "gpt"
    window.send(PauseSignal())
    window.until(HeldSnapshot, lambda held: held.at)
    window.send(StepTrainingCommand())  # it logs after its step
    window.until(HeldSnapshot, lambda held: held.at)
    window.send(ReadHistogramsCommand(folder="", of_loop=True))
    assert window.until(HistogramsSnapshot).names == ("logits",)
    window.send(ContinueTrainingCommand())
    loops = [s for s in window.to_end() if isinstance(s, LoopSnapshot)]
    assert loops[-1].step == 60
    told = [loop.logged["accuracy"] for loop in loops if "accuracy" in loop.logged]
    accuracies = [value for points in told for value in points.values]
    assert accuracies
    assert all(0 <= value <= 1 for value in accuracies)
    printed = losses(running.end())
    assert len(printed) == 2
    assert printed[-1] < printed[0] - 1


def test_each_rank_can_be_attached_to(
    forked_processes: None, script: Callable[..., Script], tmp_path: Path, sockets: Path
) -> None:
    (tmp_path / "ranks.py").write_text(source("ranks.py"))
    runner = script(
        "import sys\nfrom torch.distributed.run import main\n"
        "main(['--nproc-per-node', '2', '--standalone', sys.argv[1],"
        " '--steps', '30'])",
        str(tmp_path / "ranks.py"),
    )
    runner.address()
    runner.address()
    there = sorted(listening(), key=lambda place: place.about.rank)
    assert [(p.about.rank, p.about.world_size, p.about.name) for p in there] == [
        (0, 2, "ranks"),
        (1, 2, "ranks"),
    ]
    windows = [Window(dial(str(place.about.pid), version())) for place in there]
    first = windows[0]  # the other rank waits for this one in the next backward
    first.send(PauseSignal())
    assert first.until(HeldSnapshot, lambda held: held.at).at == "step"
    first.send(ContinueTrainingCommand())
    for window in windows:
        window.to_end()
        assert [s for s in window.seen if isinstance(s, LoopSnapshot)][-1].step == 30
    printed = losses(runner.end())
    assert printed[-1] < printed[0]


def test_the_notebook_runs(script: Callable[..., Script]) -> None:
    cells = json.loads((SCRIPTS / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert all(not cell.get("outputs") for cell in cells)
    running = script("\n".join([*code, "print(worst.item())"]))
    assert float(running.end()) < 0.2
