"""The plots that runs have: their series, scales and words; and the plots of named figures."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel

from engine.protocol import GROUP_RATE, WATCHED_FIGURES, WHOLE_SUBJECT
from widgets.training.plots.figure_plots import (
    RATES,
    figure_plot,
    is_watched,
    place_of,
    rate_series,
    watched_module,
)
from widgets.training.plots.plots import LivePlot
from widgets.training.plots.ranges import nearest_step, whole, with_room, zoomed
from widgets.training.plots.series import Track
from widgets.training.plots.standard_plots import standard_plots

MEAN, STD, ZEROS, NORM, GRADIENT, PARAMETERS = WATCHED_FIGURES

Lines = list[tuple[str, str, int, bool]]


def lines_of(plot: LivePlot) -> Lines:
    """Key, title, colour and whether it has dots, of each series."""
    return [(line.key, line.title, line.color, line.points) for line in plot.series]


EPOCHS = ("train epoch", 1, True), ("validation", 2, True)
STANDARD: dict[str, tuple[str, str, Lines]] = {
    "loss": ("Loss", "", [
        ("loss", "train step", 0, False), ("train_loss", *EPOCHS[0]),
        ("validation_loss", *EPOCHS[1]),
    ]),
    "accuracy": ("Accuracy", "%", [
        ("accuracy", "train step", 0, False), ("train_accuracy", *EPOCHS[0]),
        ("validation_accuracy", *EPOCHS[1]),
    ]),
    "gradient_norm": ("Gradient norm", "", [("gradient_norm", "2-norm", 3, False)]),
    "learning_rate": ("Learning rate", "", [("learning_rate", "lr", 4, False)]),
    "step_ms": ("Step time", "ms", [("step_ms", "step", 5, False)]),
    "samples_per_second": ("Throughput", "samples/s", [
        ("samples_per_second", "samples", 6, False)
    ]),
    "memory": ("Memory", "MiB", [
        ("rss_bytes", "process", 0, False), ("cuda_allocated_bytes", "CUDA allocated", 1, False),
        ("cuda_reserved_bytes", "CUDA reserved", 2, False),
    ]),
    "gpu_percent": ("GPU use", "%", [("gpu_percent", "busy", 7, False)]),
}  # fmt: skip
TEXTS = {
    "accuracy": (97.25, "97.2 %"), "step_ms": (1234.5, "1,234 ms"), "memory": (1.5, "1.5 MiB"),
    "samples_per_second": (1234.5, "1,234/s"), "gpu_percent": (50.0, "50.0 %"),
    "loss": (0.12345678, "0.1235"),
}  # fmt: skip


@pytest.fixture
def plots(qtbot) -> dict[str, LivePlot]:
    plots = standard_plots()
    for plot in plots.values():
        qtbot.addWidget(plot)
    return plots


def test_the_standard_plots_and_their_series(plots) -> None:
    assert list(plots) == list(STANDARD)
    for name, (title, unit, lines) in STANDARD.items():
        assert (plots[name].title, lines_of(plots[name])) == (title, lines)
        assert all(line.tip for line in plots[name].series)
        assert unit in [label.text() for label in plots[name].findChildren(QLabel)]


def test_numbers_of_the_standard_plots_have_their_units(plots) -> None:
    for name, (value, text) in TEXTS.items():
        assert plots[name]._legend._text(value) == text


@pytest.mark.parametrize(
    ("figure", "place"),
    [
        ("f1", ("f1", "step")),
        (f"{GROUP_RATE}head", (RATES, f"{GROUP_RATE}head")),
        (f"head: {MEAN}", ("head: output", MEAN)), (f"head: {STD}", ("head: output", STD)),
        (f"head: {NORM}", ("head: norms", NORM)), (f"head: {GRADIENT}", ("head: norms", GRADIENT)),
        (f"head: {PARAMETERS}", ("head: norms", PARAMETERS)),
        (f"head: {ZEROS}", ("head: zeros", ZEROS)),
        (f"a: b: {ZEROS}", ("a: b: zeros", ZEROS)),
        (MEAN, (MEAN, "step")), ("head: f1", ("head: f1", "step")),
    ],
)  # fmt: skip
def test_where_a_figure_is_drawn(figure, place) -> None:
    assert place_of(figure) == place


def test_plots_of_a_watched_module(qtbot) -> None:
    assert [is_watched(name) for name in ("head: norms", "head: f1", "norms", ": norms")] == [
        True, False, False, False,
    ]  # fmt: skip
    assert watched_module("head: output") == "head"
    assert watched_module(f"{WHOLE_SUBJECT}: zeros") == ""
    assert watched_module("f1") is None
    wanted = {
        "output": ([(MEAN, "mean", 0, False), (STD, "std", 1, False)], False),
        "norms": ([(NORM, "output", 3, False), (GRADIENT, "gradient", 4, False),
                   (PARAMETERS, "parameters", 5, False)], True),
        "zeros": ([(ZEROS, "share", 2, False)], False),
    }  # fmt: skip
    for name, (lines, is_log) in wanted.items():
        plot = figure_plot(f"head: {name}")
        qtbot.addWidget(plot)
        assert (lines_of(plot), plot.log, plot.title) == (lines, is_log, f"head: {name}")


def test_the_plot_of_a_figure_that_the_code_names(qtbot) -> None:
    plot = figure_plot("f1")
    qtbot.addWidget(plot)
    assert lines_of(plot) == [
        ("step", "train step", 0, False), ("train", *EPOCHS[0]), ("validation", *EPOCHS[1]),
    ]  # fmt: skip
    assert plot.smoothing and not plot.log
    rate = rate_series(f"{GROUP_RATE}head", 3)
    assert (rate.key, rate.title, rate.color) == (f"{GROUP_RATE}head", "head", 3)
    assert rate_series(GROUP_RATE, 3).title == "other parameters"


def track(*steps: float) -> Track:
    found = Track()
    found.extend(list(steps), [1.0] * len(steps))
    return found


@pytest.mark.parametrize(
    ("all_steps", "shown", "notches", "at", "found"),
    [
        ((0, 100), (0, 100), 1, 50, (10, 90)), ((0, 100), (0, 100), 1, 0, (0, 80)),
        ((0, 100), (0, 100), 1, 100, (20, 100)), ((0, 100), (0, 100), -1, 50, None),
        ((0, 100), (10, 90), -1, 50, None), ((0, 100), (20, 60), -1, 20, (20, 70)),
        ((0, 100), (0, 20), -1, 20, (0, 25)), ((0, 100), (40, 44), 3, 42, (40, 44)),
        ((0, 100), (40, 60), 1, 90, (74, 90)), ((0, 100), (40, 60), 1, 0, (0, 16)),
        ((0, 3), (0, 3), 5, 1, None),
    ],
)  # fmt: skip
def test_the_wheel_keeps_the_step_under_the_pointer(all_steps, shown, notches, at, found) -> None:
    told = zoomed(all_steps, shown, notches, at, False)
    assert told == (found if found is None else pytest.approx(found))


def test_the_wheel_on_a_logarithmic_scale() -> None:
    assert zoomed((1, 10_000), (1, 10_000), 1, 1, True) == pytest.approx((1, 10**3.2))
    assert zoomed((1, 10_000), (1, 10_000), -1, 1, True) is None
    first, last = zoomed((1, 10_000), (1, 10_000), 90, 100, True) or (0, 0)
    assert last / first == pytest.approx(1.04) and first < 100 < last


def test_lines_that_are_flat_have_room_of_a_tenth() -> None:
    assert with_room(1.0, 3.0) == pytest.approx((0.88, 3.12))
    assert with_room(-4.0, -4.0) == pytest.approx((-4.4, -3.6))
    assert with_room(5.0, 5.0 + 1e-9) == pytest.approx((4.5, 5.5))
    assert with_room(0.0, 0.0) == (-1e-12, 1e-12)


def test_steps_of_several_lines() -> None:
    tracks = [track(5, 12), track(), track(2, 20)]
    assert whole(tracks, False) == pytest.approx((2, 20))
    assert whole([track(3, 104)], False) == pytest.approx((3, 113))
    assert whole([track(0, 50)], True) == pytest.approx((1, 50))
    assert whole([track(0)], True) == (0.5, 1.5)
    assert whole([track()], False) == (0.0, 1.0)
    assert [nearest_step(tracks, step) for step in (0, 4, 9, 16.5)] == [2, 5, 12, 20]
    assert nearest_step([track()], 3) is None
