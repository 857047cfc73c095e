"""Long output: its head and newest lines are sent, all of it is in a file; bounds for any loop."""

from __future__ import annotations

import os
import random
import sys
import threading
from pathlib import Path

import pytest

from engine.console import output_file, process_output
from engine.console.long_output import (
    HEAD_CHARACTERS,
    HEAD_LINES,
    TAIL_CHARACTERS,
    TAIL_LINES,
    LongOutput,
    Returns,
)
from engine.console.output import FULL_CHARACTERS, Output
from engine.console.output_file import OutputFile
from engine.console.process_output import ProcessOutput
from engine.protocol import (
    MAX_SNAPSHOT_BYTES,
    OutputSnapshot,
    OutputTailSnapshot,
    RunCellCommand,
    Snapshot,
    encode_snapshot,
)
from engine.server.session import Session


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TENSORLAB_DATA_DIR", str(tmp_path))
    return tmp_path


def head(sent: list) -> str:
    return "".join(each.text for each in sent if isinstance(each, OutputSnapshot))


def tail(sent: list) -> OutputTailSnapshot:
    return next(each for each in reversed(sent) if isinstance(each, OutputTailSnapshot))


def text(told: OutputTailSnapshot) -> str:
    return "".join(piece.text for piece in told.pieces)


def run(source: str) -> list[Snapshot]:
    sent: list[Snapshot] = []
    Session(sent.append).handle(RunCellCommand(id=1, source=source))
    return sent


def check_bounds(sent: list) -> None:
    printed = head(sent)
    assert len(printed) <= HEAD_CHARACTERS
    assert printed.count("\n") <= HEAD_LINES
    for each in sent:
        assert len(encode_snapshot(each)) <= MAX_SNAPSHOT_BYTES
        if isinstance(each, OutputTailSnapshot):
            assert len(text(each)) <= TAIL_CHARACTERS
            assert text(each).count("\n") <= TAIL_LINES


LOOPS = {
    "lines": ("print('x' * 20)", "x" * 20 + "\n", 60_000),
    "long lines": ("print('x' * 3000)", "x" * 3000 + "\n", 2000),
    "no lines": ("print('x', end='')", "x", 300_000),
    "errors": ("sys.stderr.write('e' * 40 + '\\n')", "e" * 40 + "\n", 40_000),
    "large": ("print('x' * 1_000_000)", "x" * 1_000_000 + "\n", 5),
}


@pytest.mark.parametrize(("body", "piece", "times"), LOOPS.values(), ids=LOOPS)
def test_of_a_print_loop_head_and_tail_are_sent_and_the_file_holds_all(body, piece, times):
    sent = run(f"import sys\nfor i in range({times}): _ = {body}")
    check_bounds(sent)
    whole, told = piece * times, tail(sent)
    assert whole.startswith(head(sent)) and whole.endswith(text(told))
    assert len(head(sent)) + told.left_out_characters + len(text(told)) == len(whole)
    lines = head(sent).count("\n") + told.left_out_lines + text(told).count("\n")
    assert lines == whole.count("\n")
    assert Path(told.path).read_text() == whole
    assert told.is_whole and not told.fault


def test_an_output_that_fits_has_no_tail_and_no_file(data_folder):
    sent = run(f"print('line\\n' * {HEAD_LINES - 1}, end='')")
    assert head(sent) == "line\n" * (HEAD_LINES - 1)
    assert not any(isinstance(each, OutputTailSnapshot) for each in sent)
    assert not (data_folder / "outputs").exists()


def test_streams_keep_their_order_in_the_tail_and_in_the_file():
    loop = "for i in range(3000): print(i); print(-i, file=sys.stderr)"
    sent = run(f"import sys\n{loop}\n'the result'")
    whole = "".join(f"{i}\n{-i}\n" for i in range(3000)) + "'the result'\n"
    told = tail(sent)
    assert Path(told.path).read_text() == whole
    assert whole.endswith(text(told))
    assert [(p.stream, p.text) for p in told.pieces[-3:]] == [
        ("stdout", "2999\n"),
        ("stderr", "-2999\n"),
        ("result", "'the result'\n"),
    ]


def test_a_progress_bar_of_any_length_leaves_only_its_last_state(data_folder):
    loop = "for i in range(100_000): print(f'\\r{i:60}', end='', file=sys.stderr)"
    sent = run(f"import sys\nprint('begins')\n{loop}\nprint()")
    shown = ""
    for each in sent:
        if isinstance(each, OutputSnapshot):
            assert "\r" not in each.text[1:]
            if each.text.startswith("\r"):
                shown = shown[: shown.rfind("\n") + 1]
            shown += each.text.removeprefix("\r")
    assert shown == f"begins\n{99_999:60}\n"
    assert not (data_folder / "outputs").exists()


def test_a_progress_bar_in_a_long_output_is_one_line_of_the_file():
    sent = run(
        "for i in range(3000): print('line')\n"
        "for i in range(50_000): print(f'step {i}', end='\\r')\nprint('done')"
    )
    whole = "line\n" * 3000 + "done\n"
    assert Path(tail(sent).path).read_text() == whole
    assert whole.endswith(text(tail(sent)))


def terminal(printed: str) -> str:
    """What is left on screen, where a return takes back its whole line."""
    lines = printed.replace("\r\n", "\n").split("\n")
    ends = [line.rstrip("\r").rpartition("\r")[2] for line in lines]
    return "\n".join(ends)


@pytest.mark.parametrize("seed", range(20))
def test_returns_work_across_pieces(seed):
    rng = random.Random(seed)
    printed = "".join(rng.choice(["a", "b", "\n", "\r", "\r\n", "cd"]) for _ in range(60))
    returns, shown, start = Returns(), "", 0
    while start < len(printed):
        end = start + rng.randint(1, 7)
        piece = returns.apply(printed[start:end])
        if piece.startswith("\r"):
            shown, piece = shown[: shown.rfind("\n") + 1], piece[1:]
        assert "\r" not in piece
        shown += piece
        start = end
    assert shown == terminal(printed)


@pytest.mark.parametrize("seed", range(10))
def test_pieces_of_any_size_add_up(seed):
    rng = random.Random(seed)
    long, whole, shown = LongOutput(), "", ""
    for _ in range(300):
        piece = "".join(
            rng.choice("abc") * rng.randint(0, 900) + rng.choice(["\n", "\n", ""])
            for _ in range(rng.randint(1, 40))
        )
        whole += piece
        shown += long.add(rng.choice(["stdout", "stderr"]), piece)
    told = long.take_tail()
    long.close()
    assert told is not None and long.take_tail() is None
    assert whole.startswith(shown) and whole.endswith(text(told))
    assert len(shown) + told.left_out_characters + len(text(told)) == len(whole)
    assert Path(told.path).read_text() == whole


def test_a_file_of_more_than_it_may_hold_says_so(monkeypatch):
    monkeypatch.setattr(output_file, "MAX_BYTES", 1_000_000)
    told = tail(run("for i in range(100_000): print('x' * 20)"))
    assert not told.is_whole and not told.fault
    assert Path(told.path).stat().st_size == 1_000_000


def test_a_folder_that_cannot_be_written_is_named_and_harms_nothing(data_folder):
    (data_folder / "outputs").write_text("no folder")
    sent = run("for i in range(5000): print(i)")
    assert tail(sent).fault == "File exists"
    assert (tail(sent).path, tail(sent).is_whole) == ("", False)
    assert text(tail(sent)).endswith("4999\n")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_only_its_owner_can_read_the_file():
    path = Path(tail(run("for i in range(5000): print(i)")).path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_old_files_make_room_for_new_ones(data_folder, monkeypatch):
    monkeypatch.setattr(output_file, "KEPT_BYTES", 5000)
    monkeypatch.setattr(output_file, "MAX_BYTES", 2000)
    for i in range(5):
        file = OutputFile()
        file.write("x" * 1500)
        file.close()
        os.utime(file.path, ns=(i, i))
    kept = sorted((data_folder / "outputs").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert [path.stat().st_mtime_ns for path in kept] == [2, 3, 4]


def test_code_waits_for_the_text_to_be_taken():
    """Someone who takes nothing holds the code up: it cannot fill the memory."""
    taking = threading.Event()

    def emit(told: object) -> None:
        taking.wait(60)

    output = Output(emit, all_output=True)
    waiting: list[int] = []
    with output.redirected():

        def flood() -> None:
            for _ in range(100):
                output.write("stdout", "x" * 50_000)
                waiting.append(output._characters)

        thread = threading.Thread(target=flood)
        thread.start()
        taking.set()
        thread.join()
    assert max(waiting) <= FULL_CHARACTERS + 50_000


def test_a_finalizer_that_prints_while_text_is_taken_does_not_wait_for_itself():
    sent = []

    def emit(told: object) -> None:
        output.write("stdout", "from inside\n")
        sent.append(told)

    output = Output(emit)
    with output.redirected():
        output.write("stdout", "a\n")
    assert sent[0].text == "a\n"


# -- the process's own standard output and error -------------------------------------------------


@pytest.fixture
def standard(tmp_path):
    out, err = tmp_path / "out", tmp_path / "err"
    opened = []
    for path in (out, err):
        path.write_bytes(b"before\n")
        opened.append(os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0)))
    yield out, err, opened
    for descriptor in opened:
        os.close(descriptor)


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_what_other_processes_write_is_read_from_the_cells_beginning_on(standard):
    out, err, opened = standard
    process = ProcessOutput(*opened)
    append(out, "ü".encode()[:1])
    assert list(process.read()) == [("stdout", "")]
    append(out, "ü".encode()[1:])
    append(err, b"oh\n")
    assert list(process.read()) == [("stdout", "ü"), ("stderr", "oh\n")]
    assert list(process.read()) == []


def test_a_file_that_grows_too_large_is_cut_off_and_reading_goes_on(standard, monkeypatch):
    out, _, opened = standard
    monkeypatch.setattr(process_output, "MAX_BYTES", 1000)
    process = ProcessOutput(*opened)
    append(out, b"x" * 2000)
    assert list(process.read()) == [("stdout", "x" * 2000)]
    assert out.stat().st_size == 0
    append(out, b"more")
    assert list(process.read()) == [("stdout", "more")]


def test_what_comes_too_fast_is_left_out_and_counted(standard, monkeypatch):
    out, _, opened = standard
    monkeypatch.setattr(process_output, "MAX_BEHIND_BYTES", 10)
    process = ProcessOutput(*opened)
    append(out, b"0123456789" + b"abcdefghij")
    told = "".join(piece for _, piece in process.read())
    assert "10 bytes" in told and told.endswith("\nabcdefghij")
