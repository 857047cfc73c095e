"""`tensorlab run SCRIPT`: the script is as with `python SCRIPT`, and its model is found."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from engine.attached import running as running_module
from engine.attached.discovery import found_for
from engine.protocol import (
    ContinueTrainingCommand,
    FarewellSnapshot,
    HeldSnapshot,
    LoopSnapshot,
    PauseSignal,
    VariablesSnapshot,
)
from tests.engine.attaching import ROOT, Script
from tests.engine.processes import WAIT_S

pytestmark = pytest.mark.usefixtures("forked_processes")

PROGRAM = [sys.executable, str(ROOT / "tensorlab.py"), "run"]
TRAINER = """
import torch
from torch import nn

class Trainer:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
        self.adam = torch.optim.Adam(self.net.parameters())

    def fit(self):
        for _ in range(20):
            self.adam.zero_grad()
            self.net(torch.ones(2, 3)).sum().backward()
            self.adam.step()

if __name__ == "__main__":
    torch.manual_seed(0)
    trainer = Trainer()
    trainer.fit()
    print(torch.cat([p.flatten() for p in trainer.net.parameters()]).tolist())
"""

TRAINING = """
net = torch.nn.Linear(3, 1)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    net(torch.ones(3)).sum().backward()
    sgd.step()
print("ended")
"""
# As werkzeug's proxies: outside of a request, whatever is asked of it raises. The object
# `reduce_op` of torch.distributed warns when it is looked at.
RAISING = """
import torch
import torch.distributed as dist

class Proxy:
    def _fail(self, *args):
        raise RuntimeError("there is no request")
    __class__ = property(_fail)
    __dict__ = property(_fail)
    __getattr__ = __bool__ = __eq__ = __hash__ = __len__ = __repr__ = _fail

class Holder:
    def __init__(self):
        self.request = Proxy()

request, holder = Proxy(), Holder()
vars(holder)[1] = request
"""


def both(
    tmp_path: Path, source: str, *arguments: str, started: bool = True
) -> list[tuple[int, str, str]]:
    """Exit code, output and error of the script by Python, and by `tensorlab run`: by programs that
    are `started` as by a user, or forked."""
    path = tmp_path / "script.py"
    path.write_text(source)
    found = []
    for program in ([sys.executable], PROGRAM):
        ended = subprocess.run(
            [*program, path.name, *arguments],
            executable=sys.executable if started else None,  # with it, none is forked
            cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_S,
        )  # fmt: skip
        said = ended.stderr.splitlines(keepends=True)
        error = "".join(line for line in said if not line.startswith("Tensor Lab: "))
        found.append((ended.returncode, ended.stdout, error))
    return found


@pytest.mark.parametrize(
    "source",
    [
        "import app, engine, pickle, sys\nclass A: pass\n"
        "print(type(pickle.loads(pickle.dumps(A()))) is A, app.mine, engine.mine)\n"
        "print(sys.argv, sys.path[0], __name__, __file__, sys.flags.safe_path)\n"
        "def f():\n    return 1 / 0\n\nf()",
        "print('a'",
        "import os, signal\nprint('on')\nos.kill(os.getpid(), signal.SIGTERM)",
        "raise KeyboardInterrupt",
    ],
    ids=["names and an error", "syntax", "signal", "interrupt"],
)
def test_a_script_is_as_with_python(sockets: Path, tmp_path: Path, source: str) -> None:
    """Also one whose own modules have names of this program's folders."""
    for name in ("app", "engine"):
        (tmp_path / f"{name}.py").write_text("mine = __name__\n")
    plain, watched = both(tmp_path, source, "--wait", "a b")
    assert watched == plain


@pytest.mark.parametrize(
    ("source", "code"),
    [(TRAINER, 0), (RAISING + TRAINING, 0), (TRAINING + "sys.exit(7)", 7)],
    ids=["trainer", "raising", "exit"],
)
def test_a_script_that_trains_does_what_it_does_with_python(
    sockets: Path, tmp_path: Path, source: str, code: int
) -> None:
    """Also one with objects that raise or warn when they are looked at."""
    plain, watched = both(tmp_path, f"import sys, torch\n{source}", started=False)
    assert watched == plain and plain[0] == code and plain[1]


def test_workers_that_are_spawned_find_the_script(sockets: Path, tmp_path: Path) -> None:
    source = (
        "import multiprocessing\n"
        "def double(x): return 2 * x\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(double, [1, 2]))\n"
    )
    plain, watched = both(tmp_path, source)
    assert watched == plain == (0, "[2, 4]\n", "")


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    ended = subprocess.run([*PROGRAM, str(tmp_path / "no.py")], capture_output=True, text=True)
    assert ended.returncode == 2
    assert "no such file" in ended.stderr


def test_the_model_of_an_unchanged_script_is_found(
    sockets: Path, tmp_path: Path, run: Callable[..., Script]
) -> None:
    running = run(TRAINER)
    running.address()
    window = running.attach()
    window.send(PauseSignal())
    held = window.until(HeldSnapshot, lambda held: held.at)
    assert held.function == "fit"
    window.send(ContinueTrainingCommand())
    ended = window.to_end()
    assert ended[-1] == FarewellSnapshot(code=0)
    last = [s for s in ended if isinstance(s, LoopSnapshot)][-1]
    assert (last.title, last.step) == ("Loop in train.py", 20)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    adam = torch.optim.Adam(net.parameters())
    for _ in range(20):
        adam.zero_grad()
        net(torch.ones(2, 3)).sum().backward()
        adam.step()
    assert running.end() == f"{torch.cat([p.flatten() for p in net.parameters()]).tolist()}\n"


def test_the_window_is_told_of_an_error_and_of_the_exit_code(
    sockets: Path, run: Callable[..., Script]
) -> None:
    running = run(f"{TRAINER}\n    trainer.net(torch.ones(7))")
    running.address()
    ended = running.attach().to_end()
    last = [s for s in ended if isinstance(s, LoopSnapshot)][-1]
    assert (last.state, last.step) == ("failed", 20)
    assert last.error is not None and last.error.type == "RuntimeError"
    assert ended[-1] == FarewellSnapshot(code=1)


@pytest.mark.parametrize("code", [None, 0, 3, 259, -1, "words", ()])
def test_the_exit_code_is_that_which_python_makes(code: object) -> None:
    source = f"import sys; sys.exit({code!r})"
    plain = subprocess.run([sys.executable, "-S", "-c", source], stderr=subprocess.DEVNULL)
    assert running_module._code_of(SystemExit(code)) == plain.returncode


def test_a_found_model_has_its_name_between_steps(
    sockets: Path, run: Callable[..., Script]
) -> None:
    """A second window is told it when it comes, though no variable of the module has it."""
    running = run(TRAINER.replace("range(20)", "range(10**9)"))
    running.address()
    window = running.attach()
    window.until(LoopSnapshot, lambda loop: loop.step)
    second = running.attach("watch")
    names = {variable.name for variable in second.until(VariablesSnapshot).variables}
    assert {"net", "adam", "trainer"} <= names
    running.kill()


@pytest.fixture
def run(tmp_path: Path, sockets: Path) -> Iterator[Callable[[str], Script]]:
    """`run(source)` starts the script by `tensorlab run --wait`."""
    started: list[Script] = []

    def start(source: str) -> Script:
        started.append(Script(tmp_path / "train.py", source, program=(*PROGRAM, "--wait")))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def test_what_is_found_for_an_optimizer() -> None:
    class Holder:
        def __init__(self) -> None:
            self.inner = nn.Linear(2, 2)

    holder, other = Holder(), nn.Linear(2, 2)
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    layer = model[0]
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    assert found_for(sgd) == {"model": model, "sgd": sgd}
    assert layer is model[0] and other is not None  # neither is told: inside the model, not trained
    own = torch.optim.SGD(holder.inner.parameters(), lr=0.1)
    assert found_for(own) == {"inner": holder.inner, "own": own}
    assert list(found_for(torch.optim.SGD(other.parameters(), lr=0.1))) == ["other", "optimizer"]


class Slots:
    __slots__ = ("net",)


def in_a_dict() -> object:
    return {"model": nn.Linear(2, 2)}


def two_levels_deep() -> object:
    return SimpleNamespace(inner=SimpleNamespace(net=nn.Linear(2, 2)))


def in_a_list() -> object:
    return [nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2))]


def in_slots() -> object:
    slots = Slots()
    slots.net = nn.Linear(2, 2)
    return slots


@pytest.mark.parametrize("make", [in_a_dict, two_levels_deep, in_a_list, in_slots])
def test_a_model_that_no_variable_names_is_found(make: Callable[[], object]) -> None:
    """It is called after its class; a name that the user's code has is not given to it."""
    match kept := make():
        case dict():
            modules = [*kept.values()]
        case list():
            modules = kept
        case SimpleNamespace():
            modules = [kept.inner.net]
        case Slots():
            modules = [kept.net]
        case _:
            raise AssertionError
    sgd = torch.optim.SGD([p for module in modules for p in module.parameters()], lr=0.1)
    seen = [id(module) for module in modules]
    del modules
    linear = "a name that is taken"
    found = found_for(sgd, {"linear_2": None})
    assert found.pop("sgd") is sgd
    assert linear and sorted(found) == ["linear_3", "sequential"][: len(found)]
    assert sorted(map(id, found.values())) == sorted(seen)


def test_a_wrapper_is_called_after_the_model_in_it() -> None:
    class GPT(nn.Linear):
        pass

    kept = {"net": torch.compile(GPT(2, 2), backend="eager")}
    found = found_for(torch.optim.SGD(kept["net"].parameters(), lr=0.1))
    assert found["gpt"] is kept["net"]
    assert list(found) == ["gpt", "optimizer"]


def test_nothing_is_asked_of_objects_that_raise_or_warn() -> None:
    variables: dict[str, Any] = {"find": found_for}
    exec(compile(f"{RAISING}{TRAINING}", "/home/train.py", "exec"), variables)
    find = compile("found = find(sgd)", "/home/train.py", "exec")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(find, variables)
    assert variables["found"] == {"net": variables["net"], "sgd": variables["sgd"]}


def test_no_window_without_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.attached import opening

    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "RANK"):
        monkeypatch.delenv(name, raising=False)
    assert not opening.has_display()
    monkeypatch.setenv("DISPLAY", ":1")
    assert opening.has_display()
    monkeypatch.setenv("RANK", "1")
    assert not opening.has_display()


def test_the_window_that_is_opened_attaches_to_this_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from engine.attached import opening

    started: list[list[str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **options: started.append(command))
    opening.open_window(os.getpid())
    assert started == [[sys.executable, str(ROOT / "tensorlab.py"), "attach", str(os.getpid())]]
