"""What the README and the guides say holds: each example runs, each name is one of the program's.

`UPDATE_PICTURES=1` writes the tables of commands and options anew, from what `--help` is made of.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from app import cli, templates
from app.actions import MENUS, SPECS, ActionSpec
from app.commands.parser import command_parser
from engine.project import files
from engine.project.document import Project, replace
from engine.protocol import CellSnapshot, OutputSnapshot, RunCellCommand
from engine.server.session import Session
from widgets.guide.headings import headings_of

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
GUIDES = {path.stem: path for path in sorted((ROOT / "assets" / "guide").iterdir())}
TEXTS = {"README": README, **GUIDES}
COMMAND_LINE = GUIDES["command-line"]
TABLES = "## All commands\n"
"""The heading in COMMAND_LINE from which on it is written by the test."""

RUN_HERE = {"train", "sweep", "runs", "export", "inspect", "diff", "exec", "doctor"}
"""The commands whose examples run. Others open a window, listen, or call another machine: their
examples are only read as the program reads them. `run` becomes the process of its script."""
SAYS = {"train.py": "Tensor Lab: tensorlab attach", "stepping.py": "PowBackward0"}
"""What the scripts of the guides say, in any of their lines."""


class Example(NamedTuple):
    """A block of a guide. `expected` is the block of text after it, which is what it prints."""

    language: str
    code: str
    expected: str | None

    @property
    def file(self) -> str:
        """The name of the file that the block shows; empty for a cell."""
        named = re.match(r"# (\S+\.py)\n", self.code)
        return named[1] if named else ""


def text_of(name: str) -> str:
    return TEXTS[name].read_text(encoding="utf-8")


def examples(name: str) -> Iterator[Example]:
    block = r"```(\w+)\n(.*?)```\n(?:\n```text\n(.*?)```\n)?"
    for language, code, expected in re.findall(block, text_of(name), re.DOTALL):
        yield Example(language, code, expected or None)


def cells(name: str) -> list[Example]:
    return [each for each in examples(name) if each.language == "python" and not each.file]


def command_lines(name: str) -> list[list[str]]:
    blocks = [each.code.splitlines() for each in examples(name) if each.language == "sh"]
    return [shlex.split(line) for lines in blocks for line in lines]


@cache
def project() -> Project:
    """A small model of blocks, for the examples."""
    return templates.load_template("mlp")


# -- examples --------------------------------------------------------------------------------------


def test_there_are_examples_of_each_kind():
    assert {name: len(cells(name)) for name in GUIDES} == {
        "command-line": 0, "learner": 6, "practitioner": 1, "teacher": 3,
    }  # fmt: skip
    assert {each.language for name in TEXTS for each in examples(name)} == {"python", "sh"}
    named = {line[1] for line in command_lines("command-line") if len(line) > 1}
    assert named >= set(cli.COMMANDS)


def test_the_readme_shows_a_script_of_a_guide():
    (block,) = examples("README")
    assert f"# train.py\n{block.code}" in [each.code for each in examples("practitioner")]


@pytest.mark.parametrize("name", [name for name in GUIDES if cells(name)])
def test_its_cells_print_what_it_says(name):
    sent: list = []
    session = Session(sent.append)
    try:
        for example in cells(name):
            sent.clear()
            setup = project()
            session.handle(
                RunCellCommand(source=example.code, model=setup.model, training=setup.training)
            )
            (end,) = (each for each in sent if isinstance(each, CellSnapshot))
            assert end.ok, end.error
            printed = "".join(each.text for each in sent if isinstance(each, OutputSnapshot))
            assert printed == (example.expected or "")
    finally:
        session.close()


@pytest.mark.parametrize("name", [name for name in GUIDES if command_lines(name)])
def test_its_command_lines_run(name, forked_processes, sockets, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    for example in (each for guide in GUIDES for each in examples(guide) if each.file):
        Path(example.file).write_text(example.code)
    files.save(replace(project(), name="mine"), "mine.tlab")
    for line in command_lines(name):
        program, *words = line
        capfd.readouterr()
        if program == "python" or words[:1] == ["run"]:
            started = words if program == "python" else ["-m", "tensorlab", *words]
            done = subprocess.run(
                [sys.executable, *started], capture_output=True, text=True, timeout=120
            )
            assert done.returncode == 0, done.stderr
            script = next((word for word in words if word in SAYS), "")
            assert SAYS.get(script, "") in done.stdout + done.stderr
            continue
        assert program == "tensorlab", line
        if (words[:1] and words[0] in RUN_HERE) or words == ["attach", "--list"]:
            assert cli.main(words) == 0, capfd.readouterr().err
        else:
            assert cli._options(words).run is not None


# -- tables ----------------------------------------------------------------------------------------


def parsers() -> dict[str, argparse.ArgumentParser]:
    parser = command_parser(cli.COMMANDS, cli._RUNS)
    (commands,) = (e.choices for e in parser._actions if isinstance(e.choices, dict))
    return commands


def options_of(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """(how it is written, what it is for) of each that the help lists."""
    for action in parser._actions:
        if action.help is argparse.SUPPRESS or action.dest == "help":
            continue
        formatter = parser._get_formatter()
        told = formatter._format_action_invocation(action), formatter._expand_help(action)
        written, what = (text.replace("|", "\\|") for text in told)
        yield written, what


def tables() -> str:
    parts = ["The same words as `tensorlab COMMAND --help`.\n"]
    for name, parser in parsers().items():
        rows = [f"| `{written}` | {told} |" for written, told in options_of(parser)]
        head = f"### tensorlab {name}\n\n{parser.description}\n"
        table = ["| option | what it says |", "|---|---|", *rows]
        parts.append("\n".join([head, *table, ""]))
    return "\n".join(parts)


def test_its_tables_are_those_of_the_help():
    before, heading, kept = text_of("command-line").partition(TABLES)
    assert heading
    if os.environ.get("UPDATE_PICTURES"):
        COMMAND_LINE.write_text(f"{before}{heading}\n{tables()}", encoding="utf-8")
        return
    assert kept.splitlines() == ["", *tables().splitlines()]


# -- names -----------------------------------------------------------------------------------------


def prose(name: str) -> str:
    """A text without its blocks of code and generated tables, in one line."""
    text = re.sub(r"```.*?```", " ", text_of(name).partition(TABLES)[0], flags=re.DOTALL)
    return " ".join(text.split())


@pytest.mark.parametrize("name", TEXTS)
def test_the_menus_have_what_it_names(name):
    """With its keys in parentheses, or without; the others have no keys."""
    menus = {
        title.replace("&", ""): [row for row in rows if isinstance(row, ActionSpec)]
        for title, rows in MENUS.items()
    }
    for found in re.finditer(rf"\b({'|'.join(menus)}) > ", prose(name)):
        rest = found.string[found.end() :]
        matching = [row for row in menus[found[1]] if rest.startswith(row.text.replace("&", ""))]
        assert matching, f"{found[0]}{rest[:30]}"
        row = max(matching, key=lambda row: len(row.text))
        after = rest[len(row.text.replace("&", "")) :]
        keys = re.match(r" \(`(.+?)`\)", after)
        assert keys is None or keys[1] == row.shortcut, f"{found[0]}{rest[:30]}"


KEYS = r"`((?:(?:Ctrl|Alt|Shift)\+)+\S+|F\d+)`"


@pytest.mark.parametrize("name", TEXTS)
def test_each_key_that_it_names_does_something(name):
    known = {spec.shortcut for spec in SPECS}
    assert {keys for keys in re.findall(KEYS, prose(name)) if keys not in known} == set()


@pytest.mark.parametrize("name", TEXTS)
def test_the_commands_and_options_that_it_names_are_there(name):
    known = {command: set(parser._option_string_actions) for command, parser in parsers().items()}
    for span in re.findall(r"`([^`]+)`", prose(name)):
        named = re.findall(r"(?<!\S)--[a-z][a-z-]*", span)
        command = re.search(r"tensorlab (\w+)", span)
        if command:
            assert command[1] in known, span
            assert set(named) <= known[command[1]], span
        else:
            assert set(named) <= set().union(*known.values(), {"--help"}), span


@pytest.mark.parametrize("name", TEXTS)
def test_its_links_lead_somewhere(name):
    for target in re.findall(r"\]\(([^)]+)\)", text_of(name)):
        if re.match(r"https?://", target):
            continue
        path, _, heading = target.partition("#")
        file = (TEXTS[name].parent / path) if path else TEXTS[name]
        assert file.is_file(), target
        if heading:
            titles = headings_of(file.read_text(encoding="utf-8"))
            assert heading in [each.anchor for each in titles], target


# -- the README ------------------------------------------------------------------------------------


def test_the_readme_is_one_page():
    text = text_of("README")
    assert len(text.splitlines()) <= 80
    assert len(re.findall(r"!\[.+?\]\(assets/screenshots/\w+\.png\)", text)) == 2
    assert {f"(assets/guide/{path.name})" for path in GUIDES.values()} <= set(
        re.findall(r"\(assets/guide/[^)]+\)", text)
    )


def test_make_has_the_targets_that_the_readme_names():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"^ +make ([a-z]+)", text_of("README"), re.MULTILINE))
    assert {"run", "test"} <= named <= targets
