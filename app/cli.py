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
from typing import TYPE_CHECKING, TypeVar

from app.commands.failures import BAD_ARGUMENTS, FAILED, CommandFailure

if TYPE_CHECKING:
    from app.commands.export import ExportOptions
    from app.commands.projects import TrainOptions
    from app.commands.sweep import SweepOptions
    from app.commands.target import Target
    from engine.connecting.dialing import Call

Options = TypeVar("Options", "ExportOptions", "SweepOptions", "TrainOptions")
COMMANDS = {
    "attach": "open the window on a script that runs and says `tensorlab.watch(model)`",
    "train": "train a project or a module of your code, and write its weights",
    "sweep": "train a project or a module of your code with other settings, and compare",
    "runs": "list runs with their settings and last figures",
    "export": "write a project or your code in a file format: weights, or a program",
    "inspect": "print what a file, a project or your code holds: tensors, modules, graph",
    "diff": "compare two files of tensors key by key",
    "exec": "run a Python file in the engine and report on its tensors",
    "serve": "run an engine that windows attach to and leave, here or through ssh",
    "relay": "pass standard input and output on to a process that listens, for ssh",
    "run": "run a script as Python does, watched, so that a window can attach to it",
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
    """The options of a command, if the first argument is the name of one, else those of the
    window. A project file called `train` can be given as ./train."""
    if arguments and arguments[0] == "tour":
        raise CommandFailure(
            "tour: there is no such command any more; `make run` in the source does this where"
            " there is no display.",
            BAD_ARGUMENTS,
        )
    if arguments and arguments[0] in COMMANDS:
        from app.commands.parser import command_parser

        return command_parser(COMMANDS, _RUNS).parse_args(arguments)
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
        help="project (.tlab), Python file, or file or folder of tensors or of a program to open in"
        " the window; none: the start page",
    )  # fmt: skip
    parser.set_defaults(run=_window)
    return parser


class _Version(argparse.Action):
    """Looks for the version only when it is asked for: that takes as long as showing a page."""

    def __call__(self, parser: argparse.ArgumentParser, *_arguments: object) -> None:
        from engine.system.program import version

        print(f"{parser.prog} {version()}")
        parser.exit()


def _window(options: argparse.Namespace) -> int:
    if options.file is not None and not options.file.exists():
        names = ", ".join(COMMANDS)
        raise CommandFailure(
            f"{options.file}: there is no such file, and no such command (commands: {names}).",
            BAD_ARGUMENTS,
        )
    return _open_window(str(options.file) if options.file else "")


def _open_window(path: str, attached: tuple[Call, Callable[[], Call]] | None = None) -> int:
    import gc

    gc.disable()  # `run` collects, in the window's thread, after the first picture
    from app.python_imports import import_plainly

    import_plainly()
    from app.run import run

    return run(path, attached)


def _attach(options: argparse.Namespace) -> int:
    from app.commands.attaching.attach import call, list_processes

    if options.list or options.json is not None:
        list_processes(options.json, options.ssh, options.python)
        return 0
    role = "watch" if options.watch else "steer"
    called = call(options.address, options.key, role, options.ssh, options.python)
    return _open_window("", called)


def _train(options: argparse.Namespace) -> None:
    from app.commands.as_rank import follow, own_rank, processes_here
    from app.commands.projects import TrainOptions, train
    from app.commands.runs import require_new, target_of_run

    rank = own_rank()
    if rank is not None:
        options.nproc_per_node = processes_here(options.nproc_per_node)
    is_resumed = options.begin_from == "checkpoint"
    if options.run_folder is not None and not (is_resumed or rank):
        require_new(options.run_folder)
    if options.subject is not None:
        target = _target_of(options)
    elif options.run_folder is not None and is_resumed:
        of_code = options.data, options.validation, options.dataset, options.settings
        of_code += options.hold_out, options.loss
        target = target_of_run(options.run_folder, options.run_cells, *of_code)
    else:
        raise CommandFailure(
            "train: which SUBJECT? Only --run DIR --resume has one.", BAD_ARGUMENTS
        )
    chosen = _given(TrainOptions, options)
    if rank:
        follow(target, chosen)
    else:
        train(target, chosen, options.json)


def _given(kind: type[Options], options: argparse.Namespace) -> Options:
    """The options that a command takes, each under the name of its field."""
    from dataclasses import fields

    return kind(**{field.name: getattr(options, field.name) for field in fields(kind)})


def _target_of(options: argparse.Namespace) -> Target:
    from app.commands.objective import with_objective
    from app.commands.target import target_of

    target = target_of(
        options.subject,
        data=options.data,
        validation=options.validation,
        settings=getattr(options, "settings", None),
        dataset=options.dataset,
        run_cells=options.run_cells,
    )
    hold_out, loss = (getattr(options, name, None) for name in ("hold_out", "loss"))
    return with_objective(target, hold_out, loss)


def _sweep(options: argparse.Namespace) -> None:
    from app.commands.sweep import SweepOptions, sweep

    sweep(_target_of(options), _given(SweepOptions, options), options.json)


def _runs(options: argparse.Namespace) -> None:
    from app.commands.runs import list_runs

    list_runs(options.place, options.json, options.tensorboard)


def _export(options: argparse.Namespace) -> None:
    from app.commands.export import ExportOptions, export

    export(_target_of(options), _given(ExportOptions, options), options.json)


def _inspect(options: argparse.Namespace) -> None:
    from app.commands.inspect import inspect
    from app.commands.inspect_file import inspect_file
    from app.commands.target import is_file_to_read

    if is_file_to_read(options.subject, options.data or options.dataset):
        inspect_file(Path(options.subject), options.json)
    else:
        inspect(_target_of(options), options.json)


def _diff(options: argparse.Namespace) -> None:
    from app.commands.inspect_file import diff

    diff(options.first, options.second, options.json)


def _exec(options: argparse.Namespace) -> None:
    from app.commands.exec_file import exec_file

    exec_file(options.file, options.json)


def _serve(options: argparse.Namespace) -> None:
    from app.commands.attaching.serving import serve

    serve(options.name, options.host, options.port)


def _relay(options: argparse.Namespace) -> None:
    from app.commands.attaching.serving import relay_to

    relay_to(options.address, options.start)


def _run(options: argparse.Namespace) -> int:
    from app.commands.attaching.run_script import run_script

    return run_script(options.script, options.arguments, options.window, options.wait)


def _doctor(options: argparse.Namespace) -> None:
    from app.commands.doctor import doctor

    doctor(options.json)


_RUNS = {
    "attach": _attach,
    "train": _train,
    "sweep": _sweep,
    "runs": _runs,
    "export": _export,
    "inspect": _inspect,
    "diff": _diff,
    "exec": _exec,
    "serve": _serve,
    "relay": _relay,
    "run": _run,
    "doctor": _doctor,
}
