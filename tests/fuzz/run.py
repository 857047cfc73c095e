"""Feed the program broken input, seeded, and print what became of it: `make fuzz`.

Each kind of input has a process of its own, so that a crash is told with the input that made it. An
input that raises what it may not, or ends the process, is written to the folder `fuzz-failures`.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
COUNTS = {
    "projects": 10_000, "windows": 2_000, "weights": 2_000, "artifacts": 10_000, "runs": 2_000,
    "messages": 100_000, "canaries": 2_000,
}  # fmt: skip
_SHOWN = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    for kind, count in COUNTS.items():
        parser.add_argument(f"--{kind}", type=int, metavar="N", default=count)
    parser.add_argument("--child", nargs=2, metavar=("KIND", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    counts = {kind: getattr(options, kind) for kind in COUNTS}
    if options.child:
        kind, folder = options.child
        return feed(kind, counts[kind], options.seed, Path(folder))
    ok = True
    for kind, count in counts.items():
        if count:
            ok &= in_a_process(kind, count, options.seed)
    return 0 if ok else 1


def in_a_process(kind: str, count: int, seed: int) -> bool:
    """Feed `count` inputs of a kind in a process that may crash, with a home of its own."""
    with tempfile.TemporaryDirectory(prefix="tensorlab-fuzz-") as folder:
        homes = {f"XDG_{name}_HOME": folder for name in ("CONFIG", "CACHE", "DATA", "STATE")}
        own = {"QT_QPA_PLATFORM": "offscreen", "OMP_WAIT_POLICY": "PASSIVE", "HOME": folder}
        paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        done = subprocess.run(
            [
                *(sys.executable, __file__, "--seed", str(seed), f"--{kind}", str(count)),
                *("--child", kind, folder),
            ],
            cwd=folder,
            env=os.environ | homes | own | {"PYTHONPATH": paths},
        )
        if done.returncode < 0:
            keep(Path(folder, "input"), f"{kind}-crash-{seed}")
            print(f"{kind}: the process was ended by signal {-done.returncode}")
        return done.returncode == 0


def feed(kind: str, count: int, seed: int, folder: Path) -> int:
    """Feed the inputs in this process, and print one line of figures."""
    from tests.fuzz.mutate import CANARY

    faulthandler.enable()
    warnings.simplefilter("ignore")  # torch warns of strange files
    outcomes: Counter[str] = Counter()
    faults = 0
    slowest_s = 0.0
    started_s = time.perf_counter()
    with ExitStack() as stack:
        make, attempt = target(kind, random.Random(seed), folder, stack)
        for number in range(count):
            value = make()
            data = value.read_bytes() if isinstance(value, Path) else value
            (folder / "input").write_bytes(data)  # a crash leaves it
            begun_s = time.perf_counter()
            try:
                outcomes[attempt(value)] += 1
            except Exception:
                faults += 1
                keep(folder / "input", f"{kind}-{seed}-{number}")
                if faults <= _SHOWN:
                    traceback.print_exc()
            if number:  # the first one waits for torch's imports
                slowest_s = max(slowest_s, time.perf_counter() - begun_s)
            if isinstance(value, Path):
                value.unlink()
            if Path(CANARY).exists():
                faults += 1
                Path(CANARY).rmdir()
                keep(folder / "input", f"{kind}-executed-{seed}-{number}")
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{kind}: {count:,} inputs, {outcomes['refused']:,} refused in words, "
        f"{outcomes['opened']:,} opened, {faults:,} faults; slowest {slowest_s:.2f} s, "
        f"peak {peak_mb:,.0f} MB, {time.perf_counter() - started_s:,.0f} s in all",
        flush=True,
    )
    return 1 if faults else 0


def target(
    kind: str, random_: random.Random, folder: Path, stack: ExitStack
) -> tuple[Callable[[], Any], Callable[[Any], str]]:
    """The maker of inputs of a kind, and what tries one."""
    if kind == "projects":
        from tests.fuzz.projects import Projects

        projects = Projects(random_)
        return projects.make, projects.attempt
    if kind == "weights":
        from tests.fuzz.weights import Weights

        weights = Weights(random_, folder)
        return weights.make, weights.attempt
    if kind == "artifacts":
        from tests.fuzz.artifacts import Artifacts

        artifacts = Artifacts(random_, folder)
        return artifacts.make, artifacts.attempt
    if kind == "runs":
        from tests.fuzz.runs import Runs

        runs = Runs(random_, folder)
        return runs.make, runs.attempt
    if kind == "canaries":
        from tests.fuzz.canaries import Canaries

        canaries = Canaries(random_, folder, stack)
        return canaries.make, canaries.attempt
    if kind == "messages":
        from tests.fuzz.messages import Messages

        messages = Messages(random_)
        return messages.make, messages.attempt
    from tests.fuzz.windows import Windows

    windows = Windows(random_, folder)
    stack.callback(windows.close)
    return windows.make, windows.attempt


def keep(path: Path, name: str) -> None:
    kept = ROOT / "fuzz-failures"
    kept.mkdir(exist_ok=True)
    (kept / name).write_bytes(path.read_bytes())


if __name__ == "__main__":
    sys.exit(main())
