"""Opening a state_dict of 2 GB, and the first numbers of one of its tensors: time, and memory at
its peak. Beside it torch.load with mmap, and safetensors' own safe_open. Each in a fresh process,
after its imports.

    python -m tests.bench.files.bench_open_file
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

_WRITTEN = """
import json, sys
import torch

state = {f"layers.{n}.weight": torch.empty(2048, 4096, device="meta") for n in range(64)}
if sys.argv[1].endswith(".pt"):
    with torch.serialization.skip_data():
        state = {name: torch.empty_like(t, device="cpu") for name, t in state.items()}
        torch.save(state, sys.argv[1])
else:
    size = 2048 * 4096 * 4
    told = {
        name: {"dtype": "F32", "shape": [2048, 4096], "data_offsets": [n * size, (n + 1) * size]}
        for n, name in enumerate(state)
    }
    text = json.dumps(told).encode()
    with open(sys.argv[1], "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + 64 * size)
"""
"""The numbers of both files are holes, which read as zeros and take no room on a disk."""
_MEASURED = """
import resource, sys, time
import torch, safetensors
from pathlib import Path
from engine.artifacts.opening import open_artifact
from engine.tensors.values.window import cut_tensor, read_window

def ours(path):
    artifact = open_artifact(Path(path))
    cut = cut_tensor(artifact.tensor("layers.7.weight"), "")
    assert len(artifact.tensors) == 64 and read_window(cut, 0, 4, 0, 4)

def torchs(path):
    torch.load(path, weights_only=True, mmap=True)["layers.7.weight"][:4, :4].tolist()

def safe_open(path):
    with safetensors.safe_open(path, "pt") as file:
        file.get_slice("layers.7.weight")[:4, :4].tolist()

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.perf_counter()
globals()[sys.argv[1]](sys.argv[2])
took = time.perf_counter() - started
print(took, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def measured(reader: str, path: Path) -> tuple[float, float]:
    """Seconds, and MB by which the largest memory grew."""
    command = [sys.executable, "-c", _MEASURED, reader, str(path)]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return float(found[0]), float(found[1])


def main() -> None:
    # This process imports no torch: the memory of one that starts another counts as the other's.
    with tempfile.TemporaryDirectory() as folder:
        for suffix, other in (("pt", "torchs"), ("safetensors", "safe_open")):
            path = Path(folder) / f"state.{suffix}"
            subprocess.run([sys.executable, "-c", _WRITTEN, str(path)], check=True)
            assert path.stat().st_size > 2**31
            row: dict[str, object] = {"bench": "open_file", "file": f"2 GB .{suffix}"}
            took_s, grown_mb = measured("ours", path)
            other_s, other_mb = measured(other, path)
            row |= {"ours_s": took_s, "ours_grown_mb": grown_mb}
            row |= {f"{other}_s": other_s, f"{other}_grown_mb": other_mb}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
