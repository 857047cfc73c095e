"""The options of each command: their defaults, what they are read as, and who is given them."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from app import cli
from app.commands.export import ExportOptions
from app.commands.parser import _COMMANDS, command_parser
from app.commands.projects import TrainOptions
from app.commands.sweep import SweepOptions
from engine.project.limits import MAX_EPOCHS, MAX_PROCESSES, MAX_SEED, MAX_TRIALS
from engine.system.program import version

OF_DATA: dict[str, Any] = {"data": None, "validation": None, "dataset": None}
OF_CODE: dict[str, Any] = {**OF_DATA, "hold_out": None, "loss": None, "run_cells": False}
DATA_OPTIONS = "--data d.py:x --validation v --dataset csv:a.csv --run-cells"
DATA_READ: dict[str, Any] = {
    "data": "d.py:x", "validation": "v", "dataset": "csv:a.csv", "run_cells": True,
}  # fmt: skip
LEAST: dict[str, dict[str, Any]] = {
    "attach": {"address": "", "key": "", "ssh": "", "python": "", "watch": False, "list": False,
               "json": None},
    "train": {**OF_CODE, "subject": None, "settings": None, "run_folder": None, "epochs": None,
              "device": None, "seed": None, "out": None, "script": None, "nproc_per_node": None,
              "begin_from": "weights", "json": None},
    "sweep net.py:N --set a=1": {
        **OF_CODE, "subject": "net.py:N", "choices": ["a=1"], "trials": 20,
        "metric": "validation loss", "sampler_seed": 0, "prune": True,
        "runs_folder": None, "epochs": None, "device": None, "json": None},
    "runs r": {"place": Path("r"), "tensorboard": None, "json": None},
    "export a.tlab --out o.pt": {
        **OF_DATA, "run_cells": False, "subject": "a.tlab", "weights": None, "format": None,
        "out": Path("o.pt"), "dtype": "", "opset": 0, "json": None},
    "inspect a.pt": {**OF_DATA, "run_cells": False, "subject": "a.pt", "json": None},
    "diff a b": {"first": Path("a"), "second": Path("b"), "json": None},
    "exec f.py": {"file": Path("f.py"), "json": None},
    "serve": {"name": "engine", "host": "", "port": 0},
    "relay box": {"address": "box", "start": False},
    "run f.py": {"window": False, "wait": False, "script": Path("f.py"), "arguments": []},
    "doctor": {"json": False},
}  # fmt: skip
MOST: dict[str, dict[str, Any]] = {
    "attach 7 --key k --ssh h --python p --watch --list --json": {
        "address": "7", "key": "k", "ssh": "h", "python": "p", "watch": True, "list": True,
        "json": "-"},
    f"train net.py:N {DATA_OPTIONS} --hold-out 0.25 --loss MSELoss --settings s.tlab --run r"
    " --epochs 2 --device cpu --seed 0 --out w.pt --script f.py --nproc-per-node 1 --fresh"
    " --json j": {
        **DATA_READ, "hold_out": 0.25, "loss": "MSELoss", "subject": "net.py:N",
        "settings": Path("s.tlab"), "run_folder": Path("r"), "epochs": 2, "device": "cpu",
        "seed": 0, "out": Path("w.pt"), "script": Path("f.py"), "nproc_per_node": 1,
        "begin_from": "fresh", "json": "j"},
    f"sweep a.tlab {DATA_OPTIONS} --hold-out 0.5 --loss L1Loss --set a=1 --set b=2,3 --trials 1"
    " --metric accuracy:max --sampler-seed 3 --no-prune --runs r --epochs 1"
    " --device mps --json": {
        **DATA_READ, "hold_out": 0.5, "loss": "L1Loss", "subject": "a.tlab",
        "choices": ["a=1", "b=2,3"], "trials": 1, "metric": "accuracy:max", "sampler_seed": 3,
        "prune": False, "runs_folder": Path("r"), "epochs": 1, "device": "mps",
        "json": "-"},
    "runs r --tensorboard t --json j": {"place": Path("r"), "tensorboard": Path("t"), "json": "j"},
    f"export a.tlab {DATA_OPTIONS} --weights w.pt --format onnx --out o --dtype float16"
    " --opset 18 --json": {
        **DATA_READ, "subject": "a.tlab", "weights": Path("w.pt"), "format": "onnx",
        "out": Path("o"), "dtype": "float16", "opset": 18, "json": "-"},
    f"inspect a.pt {DATA_OPTIONS} --json j": {**DATA_READ, "subject": "a.pt", "json": "j"},
    "diff a b --json": {"first": Path("a"), "second": Path("b"), "json": "-"},
    "exec f.py --json j": {"file": Path("f.py"), "json": Path("j")},
    "serve --name n --host 127.0.0.1 --port 65535": {
        "name": "n", "host": "127.0.0.1", "port": 65535},
    "relay box --start": {"address": "box", "start": True},
    "run --window --wait f.py --lr 3": {
        "window": True, "wait": True, "script": Path("f.py"), "arguments": ["--lr", "3"]},
    "doctor --json": {"json": True},
}  # fmt: skip


def parser() -> argparse.ArgumentParser:
    return command_parser(cli.COMMANDS, cli._RUNS)


@pytest.mark.parametrize("line", [*LEAST, *MOST], ids=lambda line: line[:40])
def test_a_line_is_read_as(line: str) -> None:
    read = vars(parser().parse_args(line.split()))
    assert read.pop("run") is cli._RUNS[line.split()[0]]
    assert read == (LEAST | MOST)[line]


def test_resume_and_fresh_are_two_beginnings() -> None:
    assert parser().parse_args(["train", "--resume"]).begin_from == "checkpoint"
    with pytest.raises(SystemExit):
        parser().parse_args(["train", "--resume", "--fresh"])


@pytest.mark.parametrize(
    ("line", "least", "most"),
    [
        ("train --seed", 0, MAX_SEED),
        ("train --epochs", 1, MAX_EPOCHS),
        ("train --nproc-per-node", 1, MAX_PROCESSES),
        ("sweep a --set b=1 --trials", 1, MAX_TRIALS),
        ("sweep a --set b=1 --sampler-seed", 0, MAX_SEED),
        ("export a --out b --opset", 18, 23),
        ("serve --port", 0, 65535),
    ],
)
def test_a_whole_number_has_bounds(line: str, least: int, most: int, capsys) -> None:
    for number in (least, most):
        assert number in vars(parser().parse_args([*line.split(), str(number)])).values()
    for text in (str(least - 1), str(most + 1), "many", "9" * 40, "9" * 41, "9" * 5000):
        with pytest.raises(SystemExit):
            parser().parse_args([*line.split(), text])
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        told = f"a whole number from {least} to {most} is expected, not “{shown}”"
        assert told in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("text", ["0", "1", "-0.5", "half", "nan", "1.5"])
def test_a_share_is_more_than_none_and_less_than_all(text: str, capsys) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["train", f"--hold-out={text}"])
    assert f"between 0 and 1 is expected, not “{text}”" in capsys.readouterr().err


def test_each_option_says_what_it_is_for_and_what_it_takes() -> None:
    for name, (add_options, _) in _COMMANDS.items():
        made = argparse.ArgumentParser(add_help=False)
        add_options(made)
        for action in made._actions:
            takes = not isinstance(action.nargs, int) or action.nargs > 0
            named = action.metavar or action.choices or action.dest == "device"
            assert action.help and (not takes or named), (name, action.dest)
            required = action.dest in ("out", "choices") and name in ("sweep", "export")
            if action.option_strings:
                assert action.required is required, (name, action.dest)


def test_a_command_is_described_by_its_summary_and_more(capsys) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["doctor", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "usage: tensorlab doctor" in told
    assert "this machine has and lacks. Exits with 1 when something needed is missing." in told
    with pytest.raises(SystemExit):
        parser().parse_args(["--help"])
    told = capsys.readouterr().out
    assert "usage: tensorlab [-h] COMMAND ..." in told
    for summary in cli.COMMANDS.values():
        assert " ".join(summary.split()) in " ".join(told.split())
    with pytest.raises(SystemExit):
        parser().parse_args([])


TARGET = object()
GIVEN: dict[str, tuple[str, str, tuple[Any, ...]]] = {
    "export a --weights w.pt --format onnx --out o --dtype float16 --opset 18 --json": (
        "export", "export",
        (TARGET, ExportOptions(out=Path("o"), format="onnx", weights=Path("w.pt"), dtype="float16",
                               opset=18), "-"),
    ),
    "sweep a --set b=1 --trials 7 --sampler-seed 3 --metric m --no-prune --runs r"
    " --epochs 5 --device cpu --json": (
        "sweep", "sweep",
        (TARGET, SweepOptions(choices=["b=1"], trials=7, sampler_seed=3, metric="m", prune=False,
                              runs_folder=Path("r"), epochs=5, device="cpu"), "-"),
    ),
    "train a --epochs 5 --device cpu --seed 3 --out w.pt --resume --script s.py --run r"
    " --nproc-per-node 2 --json": (
        "projects", "train",
        (TARGET, TrainOptions(epochs=5, device="cpu", seed=3, out=Path("w.pt"),
                              begin_from="checkpoint", script=Path("s.py"),
                              run_folder=Path("r"), nproc_per_node=2),
         "-"),
    ),
    "train a": (
        "projects", "train",
        (TARGET, TrainOptions(begin_from="weights"), None),
    ),
    "runs r --tensorboard t --json j": ("runs", "list_runs", (Path("r"), "j", Path("t"))),
    "diff a b --json j": ("inspect_file", "diff", (Path("a"), Path("b"), "j")),
    "exec f.py --json j": ("exec_file", "exec_file", (Path("f.py"), Path("j"))),
    "serve --name n --host h --port 5": ("attaching.serving", "serve", ("n", "h", 5)),
    "relay box": ("attaching.serving", "relay_to", ("box", False)),
    "relay box --start": ("attaching.serving", "relay_to", ("box", True)),
    "run --wait f.py a": (
        "attaching.run_script", "run_script", (Path("f.py"), ["a"], False, True)
    ),
    "run --window f.py": ("attaching.run_script", "run_script", (Path("f.py"), [], True, False)),
    "doctor --json": ("doctor", "doctor", (True,)),
    "inspect a.tlab --json j": ("inspect", "inspect", (TARGET, "j")),
    "attach --json --ssh h --python p": ("attaching.attach", "list_processes", ("-", "h", "p")),
    "attach --list": ("attaching.attach", "list_processes", (None, "", "")),
}  # fmt: skip


@pytest.mark.parametrize("line", GIVEN, ids=lambda line: line[:30])
def test_a_command_gives_its_options_on(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, function, expected = GIVEN[line]
    found: list[tuple[Any, ...]] = []
    monkeypatch.setattr(cli, "_target_of", lambda options: TARGET)
    module = importlib.import_module(f"app.commands.{module}")
    monkeypatch.setattr(module, function, lambda *given: found.append(given))
    assert cli.main(line.split()) == 0
    assert found == [expected]


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("train s --data d --validation v --dataset c --run-cells --settings t.tlab",
         {"data": "d", "validation": "v", "settings": Path("t.tlab"), "dataset": "c",
          "run_cells": True}),
        ("inspect s --data d", {"data": "d", "validation": None, "settings": None, "dataset": None,
                                "run_cells": False}),
    ],
)  # fmt: skip
def test_a_target_has_the_objective_that_is_asked_for(
    line: str, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.commands import objective, target

    found: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(target, "target_of", lambda text, **asked: found.append((text, asked)))
    monkeypatch.setattr(objective, "with_objective", lambda _, *asked: asked)
    options = parser().parse_args(line.split())
    assert cli._target_of(options) == (None, None) and found == [("s", given)]
    if "train" in line:
        options = parser().parse_args([*line.split(), "--hold-out", "0.5", "--loss", "L"])
        assert cli._target_of(options) == (0.5, "L")


def test_attach_calls_and_opens_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    from app.commands.attaching import attach

    monkeypatch.setattr(attach, "call", lambda *given: given)
    monkeypatch.setattr(cli, "_open_window", lambda *given: given)
    options = parser().parse_args(["attach", "a", "--key", "k", "--ssh", "h", "--python", "p"])
    assert cli._attach(options) == ("", ("a", "k", "steer", "h", "p"))
    options.watch = True
    assert cli._attach(options) == ("", ("a", "k", "watch", "h", "p"))  # pyright: ignore


def test_a_run_that_goes_on_has_its_target_and_nothing_else_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    from app.commands import projects, runs

    found: list[Any] = []
    monkeypatch.setattr(projects, "train", lambda *given: found.append(given))
    monkeypatch.setattr(runs, "target_of_run", lambda *given: given)
    folder = str(tmp_path)
    assert cli.main(["train", "--run", folder, "--resume", "--loss", "L", "--data", "d"]) == 0
    (target, options, json_out) = found.pop()
    assert target == (tmp_path, False, "d", None, None, None, None, "L")
    assert (options.begin_from, options.run_folder, json_out) == ("checkpoint", tmp_path, None)
    for line in (["train"], ["train", "--resume"], ["train", "--run", f"{folder}/new"]):
        assert cli.main(line) == 2
        assert "Only --run DIR --resume has one." in capsys.readouterr().err
    assert found == []


def test_the_window_has_a_help_of_its_own(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["another-name"])
    monkeypatch.setenv("COLUMNS", "100")
    assert cli.main(["--help"]) == 0
    told = capsys.readouterr().out
    usage = "usage: tensorlab [-h] [--version] [FILE]\n       tensorlab COMMAND ...\n\n"
    assert told.startswith(f"{usage}A desktop laboratory for PyTorch tensors")
    assert "say which version this is" in told and "the start page" in " ".join(told.split())
    lines = told[told.index("commands (each has its own --help):\n") :].splitlines()
    assert lines[1:] == [f"  {name:10}{summary}" for name, summary in cli.COMMANDS.items()]
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"tensorlab {version()}\n"
    options = cli._options(["--", "-a.tlab"])
    assert (options.file, options.run) == (Path("-a.tlab"), cli._window)
    for arguments, file in (([], None), (["a.tlab"], Path("a.tlab"))):
        options = cli._options(arguments)
        assert (options.file, options.run) == (file, cli._window)
