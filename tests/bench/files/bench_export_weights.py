"""Writing a state_dict of 1 GB in each format of weights, and comparing what is read back: time,
and how much memory grows at its peak, pages of mapped files left out.

    python -m tests.bench.files.bench_export_weights
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

_MEASURED = """
import sys, threading, time
from pathlib import Path
import torch
from engine.exporting.weight_folders import save_distributed, save_hugging_face
from engine.exporting.weights import save_state
from engine.verifier.values import entry
from engine.verifier.weights_readers import read

def own_mib():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024

format, path = sys.argv[1], Path(sys.argv[2]) / f"w.{sys.argv[1]}"
state = {f"layers.{n}.weight": torch.randn(2048, 4096) for n in range(32)}
peak, ended = [own_mib()], threading.Event()
before = peak[0]

def watch():
    while not ended.wait(0.002):
        peak[0] = max(peak[0], own_mib())

thread = threading.Thread(target=watch)
thread.start()
begun = time.perf_counter()
if format == "dcp":
    save_distributed(state, path)
elif format == "hf":
    save_hugging_face(state, "Model", path)
else:
    save_state(state, path, format)
wrote, of_writing = time.perf_counter() - begun, peak[0] - before
peak[0] = before
begun = time.perf_counter()
loaded = dict(read(format, str(path)))
assert {name: entry(t) for name, t in loaded.items()}.keys() == state.keys()
took = time.perf_counter() - begun
ended.set()
thread.join()
print(f"{format:12} write {wrote:5.1f} s, +{of_writing:6.0f} MiB; "
      f"read {took:5.1f} s, +{peak[0] - before:6.0f} MiB")
"""


def main() -> None:
    for format in ("pt", "safetensors", "hf", "dcp"):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-c", _MEASURED, format, folder], check=True)


if __name__ == "__main__":
    main()
