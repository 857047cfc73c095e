"""The plots that runs have, beside those of named figures."""

from __future__ import annotations

from widgets.text import format_bytes, format_number, format_percent
from widgets.training.plots.plots import LivePlot
from widgets.training.plots.series import Series

MIB = 2**20
MAY_BE_UNKNOWN = {"accuracy", "learning_rate", "step_ms", "samples_per_second", "gpu_percent"}
"""Plots in which NaN means that there is no such figure. In others it is a number gone wrong."""
SCALES: dict[str, float] = {"accuracy": 100.0, "memory": 1 / MIB}
"""By plot, the factor from the protocol's unit to the plot's: fractions to percent, bytes to
MiB."""


def standard_plots() -> dict[str, LivePlot]:
    """The plots by name. The key of a series is the name of the column that it shows."""
    return {
        "loss": LivePlot(
            "Loss",
            "",
            (
                Series("loss", "train step", 0, tip="train step: of one batch"),
                Series("train_loss", "train epoch", 1, True, "train epoch: mean over one epoch"),
                Series("validation_loss", "validation", 2, True, "validation: on data held out"),
            ),
            tip="What training minimises. If validation rises while train falls, the model"
            " overfits.",
        ),
        "accuracy": LivePlot(
            "Accuracy",
            "%",
            (
                Series("accuracy", "train step", 0, tip="train step: of one batch"),
                Series("train_accuracy", "train epoch", 1, True, "train epoch: over one epoch"),
                Series(
                    "validation_accuracy", "validation", 2, True, "validation: on data held out"
                ),
            ),
            text=lambda percent: format_percent(percent / 100),
            tip="Share of samples whose class the model gets right.",
        ),
        "gradient_norm": LivePlot(
            "Gradient norm",
            "",
            (Series("gradient_norm", "2-norm", 3, tip="2-norm over all parameters"),),
            tip="The norm of the gradient of all parameters. It keeps growing: the learning"
            " rate is too high. It is near zero: the model does not learn.",
        ),
        "learning_rate": LivePlot(
            "Learning rate",
            "",
            (Series("learning_rate", "lr", 4, tip="lr of the first parameter group"),),
            tip="How far each step goes along the gradient.",
        ),
        "step_ms": LivePlot(
            "Step time",
            "ms",
            (Series("step_ms", "step", 5, tip="wall clock of one optimizer step"),),
            text=lambda ms: f"{format_number(ms, 3)} ms",
            tip="Wall clock of one step: forward, backward, update; the device synchronised.",
        ),
        "samples_per_second": LivePlot(
            "Throughput",
            "samples/s",
            (Series("samples_per_second", "samples", 6, tip="samples trained on in a second"),),
            text=lambda speed: f"{format_number(speed, 3)}/s",
            tip="Samples per second of wall clock over the last three seconds. Loading of data and"
            " validation count, pauses do not.",
        ),
        "memory": LivePlot(
            "Memory",
            "MiB",
            (
                Series("rss_bytes", "process", 0, tip="process: resident memory of the engine"),
                Series("cuda_allocated_bytes", "CUDA allocated", 1, tip="held by live tensors"),
                Series("cuda_reserved_bytes", "CUDA reserved", 2, tip="taken from the driver"),
            ),
            text=lambda mib: format_bytes(mib * MIB),
            tip="Memory of the engine's process, and on CUDA of torch's allocator.",
        ),
        "gpu_percent": LivePlot(
            "GPU use",
            "%",
            (Series("gpu_percent", "busy", 7, tip="busy: a kernel of any program runs"),),
            text=lambda percent: format_percent(percent / 100),
            tip="Share of time in which the GPU runs a kernel, by its driver. Low: the GPU waits,"
            " for data or for Python.",
        ),
    }
