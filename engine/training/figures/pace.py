"""Which steps of a run are measured, and how many steps there are in a second."""

from __future__ import annotations

from collections import deque
from time import perf_counter

import torch

SNAPSHOT_INTERVAL_S = 1 / 30
ALWAYS_MEASURED_STEPS = 1000
MEASURE_INTERVAL_S = 8e-3
"""Each of the first steps of a run gets a row of figures; later steps get at most one row per
interval, so that measuring costs little even if steps are short. Epoch means are over all steps."""
FREE_STEPS = 50
"""The first steps of a loop of the user's own that get a row each."""
MEASURED_SHARE = 0.002
SENT_SHARE = 0.002
LONGEST_WAIT_S = 0.2
"""The longest pause between two measured steps: a busy machine, on which measuring takes long, must
not leave a hole in the plots."""
LONGEST_SILENCE_S = 0.5
"""The longest pause between two snapshots of a loop. It leaves no hole in the plots: rows that come
late are drawn at their own steps."""
SPEED_WINDOW_S = 3.0


class Budget:
    """Says for each step, as it begins, whether it gets a row: each of the first `free_steps` does.
    Later, measuring takes at most MEASURED_SHARE of the time, and there is at most one row per
    `interval_s`."""

    def __init__(self, free_steps: int = FREE_STEPS, interval_s: float = 0.0) -> None:
        self.free_steps, self._interval_s = free_steps, interval_s
        self._spent_s = self.next_s = 0.0

    @classmethod
    def of_run(cls) -> Budget:
        """The budget of a run of Train."""
        return cls(ALWAYS_MEASURED_STEPS, MEASURE_INTERVAL_S)

    def takes(self, step: int) -> bool:
        """`step` is the number of steps done before."""
        now = perf_counter()
        takes = step < self.free_steps or now >= self.next_s
        if takes:
            self._spent_s, self.next_s = 0.0, now + self._interval_s
        return takes

    def spend(self, seconds: float) -> None:
        """Measuring the step has just taken this time."""
        self._spent_s += seconds
        wait_s = min(self._spent_s / MEASURED_SHARE, LONGEST_WAIT_S)
        self.next_s = max(self.next_s, perf_counter() + wait_s)


class Speed:
    """Optimizer steps per second of wall clock over the last few seconds, without pauses."""

    def __init__(self) -> None:
        self._window: deque[tuple[float, int]] = deque()

    def per_second(self, step: int, running: bool) -> float:
        """The speed after `step` steps; 0 if unknown. A run that is not `running` pauses here."""
        now, window = perf_counter(), self._window
        window.append((now, step))
        while now - window[0][0] > SPEED_WINDOW_S and len(window) > 2:
            window.popleft()
        then, earlier = window[0]
        if not running:
            window.clear()  # after a pause the speed is measured from the start
        return (step - earlier) / (now - then) if now > then else 0.0


def now_on(device: torch.device) -> float | torch.cuda.Event:
    """A point in time after the device's work so far.

    On CUDA it is an event on the stream: it needs no synchronisation, and the device measures
    the time between two events. On other devices it is the wall clock in seconds.
    """
    if device.type == "cuda":
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(device))
        return event
    if device.type == "mps":
        torch.mps.synchronize()
    return perf_counter()
