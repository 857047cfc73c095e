"""The command line: `tensorlab [FILE]` opens the window; the commands work without one.

Exit codes: 0 done, 1 failed, 2 bad arguments. Messages go to stderr and name the file, and the
field or the option at fault. Each command imports its modules when it is called, so that training
needs no Qt, and the window can say first how they are imported. Torch is imported only in the
engine's process.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from app.commands.failures import BAD_ARGUMENTS, FAILED, CommandFailure

COMMANDS = {
    "tour": "drive the real window offscreen through the main job, and leave its pictures",
    "train": "train a project or a module of your code, and write its weights",
    "sweep": "train a project or a module of your code with other settings, and compare",
    "runs": "list runs with their settings and last figures",
    "export": "write a project or your code in a file format: weights, or a program",
    "inspect": "print what a file, a project or your code holds: tensors, modules, graph",
    "diff": "compare two files of tensors key by key",
    "exec": "run a Python file in the engine and report on its tensors",
    "doctor": "say what this machine has and lacks",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `arguments` (those of the process by default) and return the exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the terminal's encoding may lack some characters
            stream.reconfigure(errors="backslashreplace")
    try:
        options = _options(arguments)
        return options.run(options) or 0
    except CommandFailure as failure:
        print(f"tensorlab: {failure}", file=sys.stderr)
        return failure.exit_code
    except BrokenPipeError:  # the reader of the output has ended, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return FAILED
    except SystemExit as exit_:  # argparse has printed the reason
        return exit_.code if isinstance(exit_.code, int) else BAD_ARGUMENTS


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    """Those of a command, if the first argument is the name of one, else those of the window. A
    project file called `train` can be given as ./train."""
    if arguments and arguments[0] in COMMANDS:
        return _command_parser().parse_args(arguments)
    if len(arguments) <= 1 and not "".join(arguments).startswith("-"):
        # A parser looks for translations of its words: the window shows sooner without.
        file = Path(arguments[0]) if arguments else None
        return argparse.Namespace(run=_window, file=file)
    return _window_parser().parse_args(arguments)


def _window_parser() -> argparse.ArgumentParser:
    commands = "\n".join(f"  {name:10}{summary}" for name, summary in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="tensorlab",
        usage="%(prog)s [-h] [--version] [FILE]\n       %(prog)s COMMAND ...",
        description="A desktop laboratory for PyTorch tensors and computation graphs.",
        epilog=f"commands (each has its own --help):\n{commands}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="say which version this is")
    parser.add_argument(
        "file", metavar="FILE", type=Path, nargs="?",
        help="project (.tlab) or Python file to open in the window; none: the start page",
    )  # fmt: skip
    parser.set_defaults(run=_window)
    return parser


def _command_parser() -> argparse.ArgumentParser:
    from engine.project.limits import MAX_EPOCHS, MAX_PROCESSES, MAX_SEED, MAX_TRIALS
    from engine.protocol.exporting.formats import CASTING, DTYPES, FORMATS, OPSETS

    parser = argparse.ArgumentParser(prog="tensorlab")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[argparse.Namespace], int | None], more: str = ""):
        summary = COMMANDS[name]
        sub = subparsers.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}. {more}".strip()
        )
        sub.set_defaults(run=run)
        return sub

    tour = command("tour", _tour, "Exits with 1 when any stage of it failed.")
    tour.add_argument(
        "--out", metavar="DIR", type=Path, required=True,
        help="folder for pictures, model.py, model.pt, model.safetensors and report.json",
    )  # fmt: skip
    tour.add_argument("--json", action="store_true", help="also print the report to stdout")

    train = command(
        "train", _train, "Ctrl+C stops at the next step and keeps what was learnt by then."
    )
    _add_subject(train, optional="; none: the one of --run DIR, with --resume")
    _add_data(train)
    train.add_argument(
        "--run", metavar="DIR", type=Path, dest="run_folder",
        help="folder for the run, a new one: settings, figures in SQLite, checkpoints (default:"
        " one in the data folder); with --resume, the folder of the run that goes on",
    )  # fmt: skip
    train.add_argument(
        "--epochs",
        metavar="N",
        type=_between(1, MAX_EPOCHS),
        help="passes over the data (default: project's)",
    )
    train.add_argument("--device", help="cpu, cuda:0, mps, ... (default: project's)")
    train.add_argument(
        "--seed", metavar="N", type=_between(0, MAX_SEED), help="random seed (default: project's)"
    )
    train.add_argument(
        "--out", metavar="WEIGHTS", type=Path,
        help="write the trained state_dict here: a name that ends in .pt or .safetensors",
    )  # fmt: skip
    train.add_argument(
        "--script", metavar="FILE.py", type=Path,
        help="also write this training as a plain script; `python FILE.py --out WEIGHTS` gives the"
        " same weights",
    )  # fmt: skip
    train.add_argument(
        "--nproc-per-node", metavar="N", type=_between(1, MAX_PROCESSES),
        help="train by N processes of this machine: each has its rows of every batch, on cuda a GPU"
        " of its own; as one process, but for dropout and BatchNorm (default: project's)",
    )  # fmt: skip
    begins = train.add_mutually_exclusive_group()
    begins.add_argument(
        "--fresh", dest="begin_from", action="store_const", const="fresh",
        help="begin with fresh weights (default: those saved beside the project, if any)",
    )  # fmt: skip
    begins.add_argument(
        "--resume", dest="begin_from", action="store_const", const="checkpoint",
        help="go on from the last checkpoint of --run DIR, or of this model and set-up",
    )  # fmt: skip
    _add_json(train)

    sweep = command(
        "sweep", _sweep,
        "Each trial is a run with values drawn by Optuna. Ctrl+C stops; the trials so far stay.",
    )  # fmt: skip
    _add_subject(sweep)
    _add_data(sweep)
    sweep.add_argument(
        "--set", metavar="NAME=VALUES", action="append", required=True, dest="choices",
        help="a setting to vary: learning_rate=1e-4..1e-1:log, batch_size=16,32,64,"
        " optimizer=Adam,SGD, optimizer_params.momentum=0..0.99, blocks.dropout1.p=0..0.5; may be"
        " given several times",
    )  # fmt: skip
    sweep.add_argument(
        "--trials", metavar="N", type=_between(1, MAX_TRIALS), default=20,
        help="how many runs (default: 20)",
    )  # fmt: skip
    sweep.add_argument(
        "--metric", metavar="NAME[:min|:max]", default="validation loss",
        help="figure of the last epoch by which trials are compared: validation_loss (default),"
        " validation_accuracy, train_loss, or one that your step names",
    )  # fmt: skip
    sweep.add_argument(
        "--sampler-seed", metavar="N", type=_between(0, MAX_SEED), default=0, dest="sampler_seed",
        help="seed of the sampler: the same sweep with the same seed has the same trials"
        " (default: 0)",
    )  # fmt: skip
    sweep.add_argument(
        "--no-prune", dest="prune", action="store_false",
        help="train each trial to its end, also one that is worse than the median",
    )  # fmt: skip
    sweep.add_argument(
        "--runs", metavar="DIR", type=Path, dest="runs_folder",
        help="folder for the runs (default: NAME.runs beside the project)",
    )  # fmt: skip
    sweep.add_argument(
        "--epochs", metavar="N", type=_between(1, MAX_EPOCHS),
        help="passes over the data (default: project's)",
    )  # fmt: skip
    sweep.add_argument("--device", help="cpu, cuda:0, mps, ... (default: project's)")
    _add_json(sweep)

    runs = command("runs", _runs)
    runs.add_argument(
        "place", metavar="DIR", type=Path,
        help="folder of runs (NAME.runs), of one run, or a project (NAME.tlab)",
    )  # fmt: skip
    runs.add_argument(
        "--tensorboard", metavar="OUT", type=Path,
        help="also write the runs as TensorBoard's event files, each into a folder in OUT:"
        " `tensorboard --logdir OUT` shows them",
    )  # fmt: skip
    _add_json(runs)

    export = command(
        "export", _export,
        "A fresh process reads the file back and compares it with its source; exits with 1 if it"
        " differs. A program of code (onnx, pt2, ...) is written from a run on --data.",
    )  # fmt: skip
    _add_subject(export)
    export.add_argument(
        "--weights", metavar="FILE", type=Path,
        help="state_dict (.pt or .safetensors) to export; without it, the weights saved beside"
             " the project, else its initial weights",
    )  # fmt: skip
    export.add_argument(
        "--format", choices=tuple(FORMATS), metavar="FORMAT",
        help=f"{', '.join(FORMATS)}; default: the suffix of --out",
    )  # fmt: skip
    export.add_argument(
        "--out", metavar="PATH", type=Path, required=True,
        help="file to write; for dcp and hf, a new folder",
    )  # fmt: skip
    export.add_argument(
        "--dtype", choices=DTYPES, default="",
        help=f"cast numbers with a fraction ({', '.join(CASTING)})",
    )  # fmt: skip
    export.add_argument(
        "--opset", metavar="N", type=_between(OPSETS[0], OPSETS[-1]), default=0,
        help=f"version of ONNX's operators, {OPSETS[0]} to {OPSETS[-1]} (default: torch's own)",
    )  # fmt: skip
    _add_data(export)
    _add_json(export)

    inspect = command(
        "inspect", _inspect,
        "A FILE is only read, nothing of it runs: .pt, .pth, .safetensors, .pt2, TorchScript,"
        " .onnx, .npy, .npz, and folders of Hugging Face, of torch.distributed.checkpoint and of"
        " runs. Its JSON has kind, file, bytes, metadata, tensors (key, shape, dtype, bytes,"
        " offset), values and totals; of a program also inputs, outputs, modules and nodes. Of a"
        " project or a module of your code, modules, parameters and buffers are told; with data"
        " one step runs, and each module's input and output shapes are told. Exits with 1 for a"
        " file that cannot be read or that asks for more, with 2 for one that is not there.",
    )  # fmt: skip
    _add_subject(inspect, file=True)
    _add_data(inspect)
    _add_json(inspect)

    diff = command(
        "diff", _diff,
        "Each key is equal, different (with the largest absolute and relative difference), of"
        " another shape or dtype, or only in a or b. JSON has a, b, equal, keys (key, verdict, a,"
        " b, max_absolute, max_relative) and totals. Exits with 0 whether they differ or not, with"
        " 1 for a file that cannot be read, with 2 for one that is not there.",
    )  # fmt: skip
    diff.add_argument("first", metavar="A", type=Path, help="file or folder that inspect reads")
    diff.add_argument("second", metavar="B", type=Path, help="the one to compare it with")
    _add_json(diff)

    exec_ = command(
        "exec", _exec,
        "torch, nn, F (torch.nn.functional) and np are imported. Exits with 1 if the code raised.",
    )  # fmt: skip
    exec_.add_argument("file", metavar="FILE.py", type=Path, help="Python file to run")
    exec_.add_argument(
        "--json", metavar="OUT", type=Path,
        help="write a report (ok, stdout, error, tensors) here, whether the code raised or not",
    )  # fmt: skip

    doctor = command("doctor", _doctor, "Exits with 1 when something needed is missing.")
    doctor.add_argument("--json", action="store_true", help="print the report as JSON")
    return parser


class _Version(argparse.Action):
    """Looks for the version only when it is asked for: that takes as long as showing a page."""

    def __call__(self, parser: argparse.ArgumentParser, *_arguments: object) -> None:
        print(f"{parser.prog} {version()}")
        parser.exit()


def version() -> str:
    """The installed version; in a checkout that is not installed, the version in pyproject.toml."""
    from importlib import metadata

    try:
        return metadata.version("tensorlab")
    except metadata.PackageNotFoundError:
        import tomllib

        project = Path(__file__).parents[1] / "pyproject.toml"
        return tomllib.loads(project.read_text())["project"]["version"]


def _add_subject(parser: argparse.ArgumentParser, optional: str = "", file: bool = False) -> None:
    also = "file or folder of tensors or of a program, " if file else ""
    parser.add_argument(
        "subject", metavar="FILE" if file else "SUBJECT", nargs="?" if optional else None,
        help=f"{also}project file (.tlab), an nn.Module of code (net.py:Net(10)), or a file of a"
        f" whole model (.pt2, .pt){optional}",
    )  # fmt: skip


def _add_data(parser: argparse.ArgumentParser) -> None:
    what = "a Dataset, DataLoader or tensors"
    parser.add_argument(
        "--data", metavar="DATA", help=f"for code: {what}, FILE.py:NAME or a NAME of its own file"
    )
    parser.add_argument("--validation", metavar="DATA", help="for code: data to validate on")


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", metavar="OUT", nargs="?", const="-",
        help="report as JSON, to stdout or into the file OUT",
    )  # fmt: skip


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


def _window(options: argparse.Namespace) -> int:
    if options.file is not None and not options.file.is_file():
        names = ", ".join(COMMANDS)
        raise CommandFailure(
            f"{options.file}: there is no such file, and no such command (commands: {names}).",
            BAD_ARGUMENTS,
        )
    import gc

    gc.disable()  # what is made until the first picture stays: `run` turns it on after that
    from app.python_imports import import_plainly

    import_plainly()
    from app.application import run

    return run(str(options.file) if options.file else "")


def _tour(options: argparse.Namespace) -> int:
    from app.tour import run

    return run(options.out, options.json)


def _train(options: argparse.Namespace) -> None:
    from app.commands.as_rank import follow, own_rank, processes_here
    from app.commands.projects import TrainOptions, train
    from app.commands.runs import require_new, target_of_run
    from app.commands.target import target_of

    rank = own_rank()
    chosen = TrainOptions(
        options.epochs,
        options.device,
        options.seed,
        options.out,
        options.begin_from or "weights",
        options.script,
        options.run_folder,
        options.nproc_per_node if rank is None else processes_here(options.nproc_per_node),
    )
    is_resumed = options.begin_from == "checkpoint"
    if options.run_folder is not None and not (is_resumed or rank):
        require_new(options.run_folder)
    if options.subject is not None:
        target = target_of(options.subject, options.data, options.validation)
    elif options.run_folder is not None and is_resumed:
        target = target_of_run(options.run_folder, options.data, options.validation)
    else:
        raise CommandFailure(
            "train: which SUBJECT? Only --run DIR --resume has one.", BAD_ARGUMENTS
        )
    if rank:
        follow(target, chosen)
    else:
        train(target, chosen, options.json)


def _sweep(options: argparse.Namespace) -> None:
    from app.commands.sweep import SweepOptions, sweep
    from app.commands.target import target_of

    chosen = SweepOptions(
        tuple(options.choices),
        options.trials,
        options.sampler_seed,
        options.metric,
        options.prune,
        options.runs_folder,
        options.epochs,
        options.device,
    )
    sweep(target_of(options.subject, options.data, options.validation), chosen, options.json)


def _runs(options: argparse.Namespace) -> None:
    from app.commands.runs import list_runs

    list_runs(options.place, options.json, options.tensorboard)


def _export(options: argparse.Namespace) -> None:
    from app.commands.export import ExportOptions, export
    from app.commands.target import target_of

    chosen = ExportOptions(
        options.out, options.format, options.weights, options.dtype, options.opset
    )
    export(target_of(options.subject, options.data, options.validation), chosen, options.json)


def _inspect(options: argparse.Namespace) -> None:
    from app.commands.inspect import inspect
    from app.commands.inspect_file import inspect_file
    from app.commands.target import is_file_to_read, target_of

    if is_file_to_read(options.subject, options.data):
        inspect_file(Path(options.subject), options.json)
    else:
        inspect(target_of(options.subject, options.data, options.validation), options.json)


def _diff(options: argparse.Namespace) -> None:
    from app.commands.inspect_file import diff

    diff(options.first, options.second, options.json)


def _exec(options: argparse.Namespace) -> None:
    from app.commands.exec_file import exec_file

    exec_file(options.file, options.json)


def _doctor(options: argparse.Namespace) -> None:
    from app.commands.doctor import doctor

    doctor(options.json)
