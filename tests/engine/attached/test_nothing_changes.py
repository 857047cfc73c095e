"""What the user's script computes, keeps alive and prints, while windows attach, ask and vanish, is
what it is without them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from engine.protocol import (
    ContinueTrainingCommand,
    DoneSnapshot,
    HeldSnapshot,
    HelloCommand,
    LoopSnapshot,
    ReadVariablesCommand,
    ReadySnapshot,
    VariablesSnapshot,
)
from tests.engine.attaching import ROOT, Script, Window
from tests.engine.processes import WAIT_S

pytestmark = pytest.mark.usefixtures("forked_processes")

BEGIN = """
import gc, sys, weakref
import torch
from torch import nn
import tensorlab as lab

torch.manual_seed(0)
x = torch.randn(64, 5)
y = x.sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.5), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
"""
STEP = """
def step():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    with lab.backward(loss):
        pass
    lab.hold(when=lambda: holds)
    optimizer.step()
    lab.log(loss_again=loss)
"""
END = """
print(torch.cat([p.flatten() for p in model.parameters()]).tolist())
print(torch.rand(3).tolist(), torch.get_default_dtype())
"""


def without_lab(source: str) -> str:
    """The same script, in which no line calls the lab."""
    source = source.replace("with lab.backward(loss):\n        pass", "loss.backward()")
    lines = [line for line in source.splitlines() if "lab." not in line and "tensorlab" not in line]
    return "\n".join(lines)


def plain(source: str) -> str:
    """What the script prints without the lab, in a process of its own."""
    run = [sys.executable, "-c", without_lab(source)]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout


def attached(running: Script) -> Window:
    running.address()
    return running.attach()


VANISHING = """
import os, signal, sys
from engine.connecting.dialing import dial
from engine.protocol import *
from engine.system.program import version

wanted, count = sys.argv[2], int(sys.argv[3])
connection = dial(sys.argv[1], version()).connection
if "pause" in wanted:
    connection.send_bytes(encode_command(PauseSignal()))
if "backward" in wanted:
    connection.send_bytes(encode_command(StepBackwardSignal(on=True)))
if "ask" in wanted:
    for number in range(1, 30):
        connection.send_bytes(encode_command(ReadVariablesCommand(id=number)))
for _ in range(count):
    if not connection.poll(1):  # the script is held: it tells no more
        break
    connection.recv_bytes()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_windows_that_are_killed_at_any_moment_change_nothing(
    script: Callable[..., Script],
) -> None:
    rounds = 12
    source = f"""{BEGIN}{STEP}
for turn in range({rounds}):
    lab.watch(model, optimizer, wait=True)
    for number in range(30):
        holds = number == 20
        step()
{END}"""
    running = script(source)
    running.address()
    chance = random.Random(0)
    ways = [wanted for _ in range(rounds) for wanted in ("", "pause", "backward ask", "pause ask")]
    for wanted in ways:
        if running.process.poll() is not None:
            break
        count = str(chance.randrange(12))
        window = [sys.executable, "-c", VANISHING, str(running.process.pid), wanted, count]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(window, env=environment, capture_output=True, text=True)
        assert done.returncode in (-signal.SIGKILL, 1), done.stderr
    assert running.end() == plain(source)


def test_questions_in_the_middle_of_a_long_step_change_no_random_number(
    script: Callable[..., Script], tmp_path: Path
) -> None:
    enough = tmp_path / "enough"
    running = script(f"""{BEGIN}
import os
lab.watch(model, wait=True)
torch.set_default_dtype(torch.float64)
count = 0
while not os.path.exists({str(enough)!r}):
    assert torch.rand(1).dtype == torch.float64
    count += 1
print(count, torch.rand(3).tolist())
""")
    window = attached(running)
    for _ in range(5):
        asked = window.send(ReadVariablesCommand())
        names = window.until(VariablesSnapshot, lambda s, asked=asked: s.reply_to == asked)
        assert "count" in {variable.name for variable in names.variables}
    enough.touch()
    window.to_end()
    printed = running.end()
    names = {"torch": torch, "nn": torch.nn}
    with torch.random.fork_rng():
        exec(BEGIN.replace("import tensorlab as lab", ""), names)
        for _ in range(int(printed.split()[0])):
            torch.rand(1, dtype=torch.float64)
        expected = torch.rand(3, dtype=torch.float64).tolist()
    assert printed.partition(" ")[2] == f"{expected}\n"


def test_a_window_that_comes_in_the_middle_of_a_step_sees_the_right_step(
    script: Callable[..., Script],
) -> None:
    running = script(f"""{BEGIN}
lab.watch(model, optimizer)
def closure(wait=False):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    if wait:
        lab.watch(wait=True)
    return loss
for number in range(1, 10):
    optimizer.step(lambda: closure(number == 5))
""")
    window = attached(running)
    loops = [s for s in window.to_end() if isinstance(s, LoopSnapshot)]
    assert loops[-1].step == 9
    running.end()


def test_a_figure_that_comes_while_a_question_is_answered_belongs_to_no_question(
    script: Callable[..., Script], tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    running = script(f"""{BEGIN}
import os
for number in range(3000):
    globals()[f"variable_{{number}}"] = number
lab.watch(model, optimizer, wait=True)
nn.functional.mse_loss(model(x), y).backward()
while not os.path.exists({str(asked)!r}):
    pass
optimizer.step()
""")
    window = attached(running)
    for _ in range(20):
        window.send(ReadVariablesCommand())
    window.until(DoneSnapshot)  # the others are being answered
    asked.touch()
    assert {s.reply_to for s in window.to_end() if isinstance(s, LoopSnapshot)} == {0}
    running.end()


def test_nothing_is_kept_alive(script: Callable[..., Script]) -> None:
    source = f"""{BEGIN}{STEP}
kept = []

def big():
    tensor = torch.zeros(1000)
    kept.append(weakref.ref(tensor))
    return tensor

class Unfreed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.saved = big()
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2

def train(holds):
    data = big()
    own = nn.Linear(5, 1)
    kept.append(weakref.ref(own))
    optimizer = torch.optim.SGD(own.parameters(), lr=0.1)
    kept.append(weakref.ref(optimizer))
    lab.watch(own, optimizer, wait=holds)
    loss = Unfreed.apply(own(x)).mean()
    with lab.backward(loss):
        pass
    optimizer.step()
    lab.log(loss_again=loss, x=loss)
    lab.hold()
    del data, loss
    optimizer.zero_grad()
    del own, optimizer
    print(sum(ref() is not None for ref in kept))
    kept.clear()

train(False)
print("now", file=sys.stderr, flush=True)
train(True)
train(False)
"""
    running = script(source)
    running.address()
    assert running.process.stderr is not None
    assert "now\n" in running.process.stderr  # there was no window the first time
    window = running.attach()
    window.until(HeldSnapshot, lambda held: held.at == "backward")
    window.send(ContinueTrainingCommand())
    window.until(HeldSnapshot, lambda held: held.at == "line")
    window.close()
    assert running.end() == "0\n0\n0\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_only_the_thread_that_watches_is_held(script: Callable[..., Script]) -> None:
    running = script(f"""{BEGIN}
import os, threading
lab.watch(model, wait=True)
child = os.fork()
if child == 0:
    lab.hold()
    lab.log(x=1)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
thread = threading.Thread(target=lab.hold)
thread.start()
thread.join()
lab.hold()
print("on")
""")
    window = attached(running)
    assert "\nlab.hold()\n" in window.until(HeldSnapshot).source
    window.close()
    assert running.end() == "7\non\n"


def test_an_exception_that_ends_the_script_is_told(script: Callable[..., Script]) -> None:
    running = script(f"""{BEGIN}{STEP}
holds = False
lab.watch(model, optimizer, wait=True)
nn.functional.mse_loss(model(x), y).backward()
optimizer.step()
model(torch.ones(3))
""")
    window = attached(running)
    last = [s for s in window.to_end() if isinstance(s, LoopSnapshot)][-1]
    assert (last.state, last.step) == ("failed", 1)
    assert last.error is not None and last.error.type == "RuntimeError"
    running.process.communicate()
    assert running.process.returncode == 1


ODD = [
    "lab.log(1, x='words', y=None)",
    "lab.log(x=object())",
    "lab.log(**{'a b': torch.zeros(3, 3)})",
    "lab.log(x=torch.zeros((), dtype=torch.complex64))",
    "lab.log(x=float('nan'), y=10**400)",
    "lab.log(x=lab.image(torch.zeros(3)))",
    "lab.log(x=lab.histogram(object()))",
    "lab.log(x=lab.image(torch.zeros(2, 2, device='meta')), y=model)",
    "lab.log(**{f'name {number}': number for number in range(50)})",
    "lab.hold(when=lambda: 1 / 0)",
    "lab.hold(when=torch.ones(3))",
    "lab.watch(3)",
    "lab.watch(model, optimizer, host='192.0.2.1')",
]


@pytest.mark.parametrize("wait", [False, True], ids=["alone", "attached"])
def test_no_call_raises(script: Callable[..., Script], wait: bool) -> None:
    calls = "\n".join(ODD)
    running = script(f"""{BEGIN}
lab.watch(model, wait={wait})
{calls}
lab.hold()
nn.functional.mse_loss(model(x), y).backward()
torch.random.fork_rng = None  # a fault of ours
optimizer.step()
print("on")
""")
    running.address()
    if wait:
        window = running.attach()
        window.until(HeldSnapshot)
        window.send(HelloCommand())  # waits for the step
        window.send(ContinueTrainingCommand())
        window.to_end()
    assert running.end() == "on\n"


def test_what_is_not_answered_while_held_is_after_the_next_step(
    script: Callable[..., Script],
) -> None:
    running = script(f"""{BEGIN}{STEP}
lab.watch(model, optimizer, wait=True)
lab.hold()
optimizer.step()
lab.hold()
""")
    window = attached(running)
    window.until(HeldSnapshot, lambda held: held.at)
    asked = window.send(HelloCommand())
    window.send(ContinueTrainingCommand())
    said = len(window.seen)
    assert window.until(ReadySnapshot).reply_to == asked
    assert not [s for s in window.seen[said:] if isinstance(s, HeldSnapshot) and s.at]
    window.close()
    running.end()


def test_a_script_that_cannot_listen_goes_on(script: Callable[..., Script]) -> None:
    running = script("""
import os, resource, signal
import tensorlab as lab
os.environ["XDG_RUNTIME_DIR"] = "/dev/null/nowhere"
lab.watch()
os.environ["XDG_RUNTIME_DIR"] = os.path.dirname(__file__)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # as on a full disk
lab.watch()
lab.log(x=1)
lab.hold()
print("on")
""")
    out, err = running.process.communicate(timeout=WAIT_S)
    assert (out, running.process.returncode) == ("on\n", 0)
    assert err.count("tensorlab.watch: ") == 2 and "Traceback" not in err
