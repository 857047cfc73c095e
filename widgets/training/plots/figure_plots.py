"""The plots of named figures: those that the user's code names, and those of watched modules."""

from __future__ import annotations

from engine.protocol import GROUP_RATE, LOSS_PART, WATCHED_FIGURES, WHOLE_SUBJECT
from widgets.training.plots.plots import LivePlot
from widgets.training.plots.series import Series

LOSS, RATES = "loss", "learning_rate"
"""The names of the plots of losses and of learning rates, which each run has."""
_MEAN, _STD, _ZEROS, _NORM, _GRADIENT, _PARAMETERS = WATCHED_FIGURES
_WATCHED = {
    "output": (
        Series(_MEAN, "mean", 0, tip="mean: of all elements of its output in the step"),
        Series(_STD, "std", 1, tip="std: the standard deviation of these elements"),
    ),
    "norms": (
        Series(_NORM, "output", 3, tip="output: the 2-norm of its output"),
        Series(_GRADIENT, "gradient", 4, tip="gradient: the 2-norm of the gradient of its output"),
        Series(
            _PARAMETERS,
            "parameters",
            5,
            tip="parameters: the 2-norm of the gradients of its parameters",
        ),
    ),
    "zeros": (Series(_ZEROS, "share", 2, tip="share: of the elements of its output that are 0"),),
}
"""The plots of a watched module, and their series by the names of the figures."""
_TIPS = {
    "output": "The output of the watched module in each step.",
    "norms": "A gradient norm near zero: little reaches the module. It keeps growing: the learning"
    " rate is too high.",
    "zeros": "The share of zeros in the output of the watched module. Near 1, its units are dead.",
}

_FITS = {
    "RMSE": "RMSE: the root of the mean squared error, in the target's own unit. So far a"
    " prediction is off, by and large.",
    "perplexity": "Perplexity: e to the power of the loss. The model is as unsure as if it chose"
    " among so many tokens.",
    "mean IoU": "Mean IoU: of each class, the pixels that prediction and target share over those"
    " that either has; the mean over the classes of a batch.",
    "top-5 accuracy": "The share of samples whose class is among the five with the highest scores.",
    "R2": "R2: the share of the targets' variance that the model explains. 1 is perfect; always"
    " guessing their mean has 0.",
}
"""The meaning of the figures that the usual steps give."""


def place_of(figure: str) -> tuple[str, str]:
    """(name of its plot, key of its series) of a figure in the steps of a run."""
    if figure.startswith(GROUP_RATE):
        return RATES, figure
    if figure.startswith(LOSS_PART):
        return LOSS, figure
    module, _, name = figure.rpartition(": ")
    for of, lines in _WATCHED.items():
        if module and any(line.key == name for line in lines):
            return f"{module}: {of}", name
    return figure, "step"


def is_watched(plot: str) -> bool:
    """Whether a plot of this name is that of a watched module."""
    module, _, of = plot.rpartition(": ")
    return bool(module) and of in _WATCHED


def watched_module(plot: str) -> str | None:
    """The path of the module that a plot of this name watches; None for any other plot."""
    if not is_watched(plot):
        return None
    module = plot.rpartition(": ")[0]
    return "" if module == WHOLE_SUBJECT else module


def figure_plot(name: str) -> LivePlot:
    """The plot of this name, without points."""
    if is_watched(name):
        of = name.rpartition(": ")[2]
        plot = LivePlot(name, "", _WATCHED[of], tip=_TIPS[of])
        plot.set_log(of == "norms")
        return plot
    plot = LivePlot(
        name,
        "",
        (
            Series("step", "train step", 0, tip="train step: of one batch"),
            Series("train", "train epoch", 1, True, "train epoch: mean over one epoch"),
            Series("validation", "validation", 2, True, "validation: on data held out"),
        ),
        tip=_FITS.get(name, f"The figure “{name}”, which the code names."),
    )
    plot.set_smoothing(True)
    return plot


def rate_series(key: str, color: int) -> Series:
    """The series of the learning rate of a module with options of its own."""
    module = key.removeprefix(GROUP_RATE) or "other parameters"
    return Series(key, module, color, tip=f"{module}: the learning rate of its parameters")
