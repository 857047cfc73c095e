"""The options of the commands of `tensorlab`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from engine.project.limits import MAX_EPOCHS, MAX_PROCESSES, MAX_SEED, MAX_TRIALS
from engine.protocol.exporting.formats import CASTING, DTYPES, FORMATS, OPSETS

Run = Callable[[argparse.Namespace], int | None]


def command_parser(
    summaries: Mapping[str, str], run_of: Mapping[str, Run]
) -> argparse.ArgumentParser:
    """A parser with each command of `summaries`; `run` of what it has parsed is the one of
    `run_of`."""
    parser = argparse.ArgumentParser(prog="tensorlab")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (add_options, more) in _COMMANDS.items():
        summary = summaries[name]
        command = subparsers.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}. {more}".strip()
        )
        command.set_defaults(run=run_of[name])
        add_options(command)
    return parser


def _attach(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "address", metavar="ADDRESS", nargs="?", default="",
        help="PID or name of a process of yours on this machine, or HOST:PORT; none: the only one"
        " that listens",
    )  # fmt: skip
    parser.add_argument(
        "--key",
        metavar="KEY",
        default="",
        help="for HOST:PORT, the key that the process has printed",
    )
    parser.add_argument(
        "--ssh", metavar="HOST", default="",
        help="the process is on this machine, which ssh reaches; without ADDRESS, an engine there,"
        " which is started if need be and goes on without the window",
    )  # fmt: skip
    parser.add_argument(
        "--python", metavar="PYTHON", default="",
        help="with --ssh: the interpreter there that has Tensor Lab (default: its command"
        " `tensorlab`)",
    )  # fmt: skip
    parser.add_argument(
        "--watch", action="store_true",
        help="only watch: another window may steer the process (pause it, step it, edit)",
    )  # fmt: skip
    parser.add_argument(
        "--list", action="store_true",
        help="open no window: list the processes that listen, with --ssh those of that machine",
    )  # fmt: skip
    _add_json(parser)


def _train(parser: argparse.ArgumentParser) -> None:
    _add_subject(parser, optional="; none: the one of --run DIR, with --resume")
    _add_data(parser)
    _add_objective(parser)
    parser.add_argument(
        "--settings", metavar="PROJECT", type=Path,
        help="for code: train by the settings of this project file (default: those of a new one),"
        " by the step that was written there, if one was, and without --data by its data set,"
        " split and transforms",
    )  # fmt: skip
    parser.add_argument(
        "--run", metavar="DIR", type=Path, dest="run_folder",
        help="folder for the run, a new one: settings, figures in SQLite, checkpoints (default:"
        " one in NAME.runs beside the project; for code, in the data folder); with --resume, the"
        " folder of the run that goes on",
    )  # fmt: skip
    _add_length_and_device(parser)
    parser.add_argument(
        "--seed",
        metavar="N",
        type=_between(0, MAX_SEED),
        help="seed of torch's random numbers (default: project's); code that draws from NumPy or"
        " Python's random seeds them itself",
    )
    parser.add_argument(
        "--out", metavar="WEIGHTS", type=Path,
        help="write the trained state_dict here: a name that ends in .pt or .safetensors",
    )  # fmt: skip
    parser.add_argument(
        "--script", metavar="FILE.py", type=Path,
        help="also write this training as a plain script; `python FILE.py --out WEIGHTS` gives the"
        " same weights",
    )  # fmt: skip
    parser.add_argument(
        "--nproc-per-node", metavar="N", type=_between(1, MAX_PROCESSES),
        help="train by N processes of this machine: each has its rows of every batch, on cuda a GPU"
        " of its own; as one process, but for dropout and BatchNorm (default: project's)",
    )  # fmt: skip
    begins = parser.add_mutually_exclusive_group()
    begins.add_argument(
        "--fresh", dest="begin_from", action="store_const", const="fresh", default="weights",
        help="begin with fresh weights (default: those saved beside the project, if any)",
    )  # fmt: skip
    begins.add_argument(
        "--resume", dest="begin_from", action="store_const", const="checkpoint",
        help="go on from the last checkpoint of --run DIR, or of this model and set-up",
    )  # fmt: skip
    _add_json(parser)


def _sweep(parser: argparse.ArgumentParser) -> None:
    _add_subject(parser)
    _add_data(parser)
    _add_objective(parser)
    parser.add_argument(
        "--set", metavar="NAME=VALUES", action="append", required=True, dest="choices",
        help="a setting to vary: learning_rate=1e-4..1e-1:log, batch_size=16,32,64,"
        " optimizer=Adam,SGD, optimizer_params.momentum=0..0.99, blocks.dropout1.p=0..0.5; may be"
        " given several times",
    )  # fmt: skip
    parser.add_argument(
        "--trials", metavar="N", type=_between(1, MAX_TRIALS), default=20,
        help="how many runs (default: 20)",
    )  # fmt: skip
    parser.add_argument(
        "--metric", metavar="NAME[:WHICH]", default="validation loss",
        help="figure of the last epoch by which trials are compared: validation_loss (default),"
        " validation_accuracy, train_loss, or one that your step names; WHICH is best, min or max",
    )  # fmt: skip
    parser.add_argument(
        "--sampler-seed", metavar="N", type=_between(0, MAX_SEED), default=0, dest="sampler_seed",
        help="seed of the sampler: the same sweep with the same seed has the same trials"
        " (default: 0)",
    )  # fmt: skip
    parser.add_argument(
        "--no-prune", dest="prune", action="store_false",
        help="train each trial to its end, also one that is worse than the median",
    )  # fmt: skip
    _add_gone(parser, "--jobs", "trials run one after the other")
    parser.add_argument(
        "--runs", metavar="DIR", type=Path, dest="runs_folder",
        help="folder for the runs (default: NAME.runs beside the project)",
    )  # fmt: skip
    _add_length_and_device(parser)
    _add_json(parser)


def _runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "place", metavar="DIR", type=Path,
        help="folder of runs (NAME.runs), of one run, or a project (NAME.tlab)",
    )  # fmt: skip
    parser.add_argument(
        "--tensorboard", metavar="OUT", type=Path,
        help="also write the runs as TensorBoard's event files, each into a folder in OUT:"
        " `tensorboard --logdir OUT` shows them",
    )  # fmt: skip
    _add_json(parser)


def _export(parser: argparse.ArgumentParser) -> None:
    _add_subject(parser)
    parser.add_argument(
        "--weights", metavar="FILE", type=Path,
        help="state_dict (.pt or .safetensors) to export; without it, the weights saved beside"
             " the project, else its initial weights",
    )  # fmt: skip
    parser.add_argument(
        "--format", choices=tuple(FORMATS), metavar="FORMAT",
        help=f"{', '.join(FORMATS)}; default: the suffix of --out",
    )  # fmt: skip
    parser.add_argument(
        "--out", metavar="PATH", type=Path, required=True,
        help="file to write; for dcp and hf, a new folder",
    )  # fmt: skip
    parser.add_argument(
        "--dtype", choices=DTYPES, default="",
        help=f"cast numbers with a fraction ({', '.join(CASTING)})",
    )  # fmt: skip
    parser.add_argument(
        "--opset", metavar="N", type=_between(OPSETS[0], OPSETS[-1]), default=0,
        help=f"version of ONNX's operators, {OPSETS[0]} to {OPSETS[-1]} (default: torch's own)",
    )  # fmt: skip
    _add_data(parser)
    _add_json(parser)


def _inspect(parser: argparse.ArgumentParser) -> None:
    _add_subject(parser, file=True)
    _add_data(parser)
    _add_json(parser)


def _diff(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="A", type=Path, help="file or folder that inspect reads")
    parser.add_argument("second", metavar="B", type=Path, help="the one to compare it with")
    _add_json(parser)


def _exec(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.py", type=Path, help="Python file to run")
    parser.add_argument(
        "--json", metavar="OUT", type=Path,
        help="write a report (ok, stdout, error, tensors) here, whether the code raised or not",
    )  # fmt: skip


def _serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--name", metavar="NAME", default="engine", help="what windows call it (default: engine)"
    )
    parser.add_argument(
        "--host", metavar="HOST", default="",
        help="listen on TCP, on this address of this machine's own (127.0.0.1); it asks for the key"
        " that it prints",
    )  # fmt: skip
    parser.add_argument(
        "--port", metavar="N", type=_between(0, 65535), default=0, help="with --host (default: any)"
    )


def _relay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("address", metavar="ADDRESS", help="PID or name of the process")
    parser.add_argument(
        "--start", action="store_true",
        help="start an engine of that name if none listens; it stays when the connection ends",
    )  # fmt: skip
    _add_gone(
        parser, "--anew", "a signal or Ctrl+C ends an engine, and --start then starts a new one"
    )


def _run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--window", action="store_true", help="open a window that is attached")
    parser.add_argument(
        "--wait", action="store_true", help="begin the script when a window has attached"
    )
    parser.add_argument("script", metavar="SCRIPT.py", type=Path, help="script to run")
    parser.add_argument(
        "arguments", metavar="...", nargs=argparse.REMAINDER, help="the script's own arguments"
    )


def _doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def _add_subject(parser: argparse.ArgumentParser, optional: str = "", file: bool = False) -> None:
    also = "file or folder of tensors or of a program, " if file else ""
    parser.add_argument(
        "subject", metavar="FILE" if file else "SUBJECT", nargs="?" if optional else None,
        help=f"{also}project file (.tlab), an nn.Module of code (net.py:Net(10)), or a file of a"
        f" whole model (.pt2, .pt){optional}",
    )  # fmt: skip
    parser.add_argument(
        "--run-cells", action="store_true",
        help="for a project, its settings or a run: agree to the Python in it. First the cells of"
        " its console run, each of which is shown; then what it names of code is used",
    )  # fmt: skip


def _add_data(parser: argparse.ArgumentParser) -> None:
    what = "a Dataset, DataLoader or tensors"
    parser.add_argument(
        "--data", metavar="DATA", help=f"for code: {what}, FILE.py:NAME or a NAME of its own file"
    )
    parser.add_argument("--validation", metavar="DATA", help="for code: data to validate on")
    parser.add_argument(
        "--dataset", metavar="KIND[:PATH]",
        help="for code, instead of --data: a data set of Train (digits, iris, ...) or a file or"
        " folder (csv:PATH, images:PATH, ...), a part of it to validate on",
    )  # fmt: skip


def _add_objective(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--hold-out", metavar="SHARE", type=_share,
        help="for code: validate on this share of the samples, 0.2 say, and train on the others;"
        " --data is then a Dataset or tensors",
    )  # fmt: skip
    parser.add_argument(
        "--loss", metavar="LOSS",
        help="for code: write its step with this loss of torch.nn, MSELoss or"
        " 'HuberLoss(delta=0.5)' (default: its own step, or one that fits the first batch)",
    )  # fmt: skip


def _add_length_and_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--epochs", metavar="N", type=_between(1, MAX_EPOCHS),
        help="passes over the data (default: project's)",
    )  # fmt: skip
    parser.add_argument("--device", help="cpu, cuda:0, mps, ... (default: project's)")


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", metavar="OUT", nargs="?", const="-",
        help="report as JSON, to stdout or into the file OUT",
    )  # fmt: skip


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"a number between 0 and 1 is expected, not “{text}”")
    return value


def _between(minimum: int, maximum: int) -> Callable[[str], int]:
    def integer(text: str) -> int:
        try:
            value = int(text)
        except ValueError:  # also of more digits than Python converts
            value = minimum - 1
        if not minimum <= value <= maximum:
            shown = text if len(text) <= 40 else f"{text[:40]}…"
            raise argparse.ArgumentTypeError(
                f"a whole number from {minimum} to {maximum} is expected, not “{shown}”"
            )
        return value

    return integer


_COMMANDS: dict[str, tuple[Callable[[argparse.ArgumentParser], None], str]] = {
    "attach": (
        _attach,
        "The script trains on, with the window and without. Its numbers stay its own.",
    ),
    "train": (_train, "Ctrl+C stops at the next step and keeps what was learnt by then."),
    "sweep": (
        _sweep,
        "Each trial is a run with values drawn by Optuna. Ctrl+C stops; the trials so far stay.",
    ),
    "runs": (_runs, ""),
    "export": (
        _export,
        "A fresh process reads the file back and compares it with its source; exits with 1 if it"
        " differs. A program of code (onnx, pt2, ...) is written from a run on --data.",
    ),
    "inspect": (
        _inspect,
        "A FILE is only read, nothing of it runs: .pt, .pth, .safetensors, .pt2, TorchScript,"
        " .onnx, .npy, .npz, and folders of Hugging Face, of torch.distributed.checkpoint and of"
        " runs. Its JSON has kind, file, bytes, metadata, tensors (key, shape, dtype, bytes,"
        " offset), values and totals; of a program also inputs, outputs, modules and nodes. Of a"
        " project or a module of your code, modules, parameters and buffers are told; with data"
        " one step runs, and each module's input and output shapes are told. Exits with 1 for a"
        " file that cannot be read or that asks for more, with 2 for one that is not there.",
    ),
    "diff": (
        _diff,
        "Each key is equal, different (with the largest absolute and relative difference), of"
        " another shape or dtype, or only in a or b. JSON has a, b, equal, keys (key, verdict, a,"
        " b, max_absolute, max_relative) and totals. Exits with 0 whether they differ or not, with"
        " 1 for a file that cannot be read, with 2 for one that is not there.",
    ),
    "exec": (
        _exec,
        "torch, nn, F (torch.nn.functional) and np are imported. Exits with 1 if the code raised.",
    ),
    "serve": (
        _serve,
        "What it runs goes on while no window is there; the next one is shown the run so far."
        " Ctrl+C ends it.",
    ),
    "relay": (
        _relay,
        "`ssh HOST tensorlab relay NAME` connects a window to a process of another machine.",
    ),
    "run": (
        _run,
        "Its output, signals and exit code are its own. The model and the optimizer are found at"
        " the first optimizer step; `tensorlab attach` shows them.",
    ),
    "doctor": (_doctor, "Exits with 1 when something needed is missing."),
}
"""By the name of a command: the function that adds its options, and what its help says besides the
summary."""


class _Gone(argparse.Action):
    """An option that is no longer there: it ends the command, and `const` says why."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.error(f"{self.option_strings[0]} is gone: {self.const}. Leave it out.")


def _add_gone(parser: argparse.ArgumentParser, option: str, why: str) -> None:
    """Answer an option of earlier versions in words. The help does not list it."""
    parser.add_argument(
        option, action=_Gone, const=why, nargs="?", metavar="VALUE", help=argparse.SUPPRESS,
        default=argparse.SUPPRESS,
    )  # fmt: skip
