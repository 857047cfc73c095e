"""Run every benchmark beside this file and print what it found: `make bench`.

Each `bench_*.py` prints one JSON object a line: `bench` names it; fields that end in `_us`,
`_ms`, `_s` or `_mb` are figures, those with `over` in their name ratios (ours over the other's,
below 1 is faster), all others say what was measured. `--json FILE` keeps all of it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def run_one(path: Path) -> list[dict]:
    """The objects that one benchmark printed; raises CalledProcessError when it failed."""
    environment = os.environ | {"QT_QPA_PLATFORM": "offscreen", "OMP_WAIT_POLICY": "PASSIVE"}
    done = subprocess.run(
        [sys.executable, "-m", ".".join(path.relative_to(ROOT).with_suffix("").parts)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def told(row: dict) -> str:
    """One line of words and figures."""
    parts = [row["bench"]]
    for name, value in row.items():
        if name == "bench":
            continue
        if not isinstance(value, float):
            parts.append(f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}")
            continue
        unit = name.rsplit("_", 1)[-1]
        if unit in ("us", "ms", "s", "mb") and "over" not in name:
            parts.append(f"{name.removesuffix('_' + unit)} {value:,.4g} {unit}")
        else:
            parts.append(f"{name} {value:.3f}")
    return "  |  ".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, usage="run.py [--json FILE] [NAME ...]")
    parser.add_argument("names", nargs="*", help="only these, e.g. training backward")
    parser.add_argument("--json", metavar="FILE", help="also write all figures to FILE")
    arguments = parser.parse_args()
    paths = sorted(HERE.rglob("bench_*.py"))
    if arguments.names:
        paths = [path for path in paths if path.stem.removeprefix("bench_") in arguments.names]
        if not paths:
            parser.error("no such benchmark: " + ", ".join(arguments.names))
    rows: list[dict] = []
    failed = False
    for path in paths:
        try:
            found = run_one(path)
        except subprocess.CalledProcessError as error:
            print(f"{path.stem} failed with exit code {error.returncode}", file=sys.stderr)
            failed = True
            continue
        rows += found
        for row in found:
            print(told(row), flush=True)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
