"""How much of long names, texts and outputs is told: up to the bound all, beyond it a part."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

from engine.console import warning_places
from engine.console.call_context import MAX_LOOK_BACK, open_call
from engine.console.completion import MAX_COMPLETIONS, complete
from engine.console.long_output import LongOutput, Returns, _dropped, _fitting
from engine.console.output import MAX_CHARACTERS, MAX_LINES, PROMPT_LINES, Output
from engine.console.variables import describe
from engine.protocol import OutputSnapshot
from engine.tensors.storages import Storages

# -- variables -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "told"), [(78, 80), (79, 80), (1000, 80), (10, 12)])
def test_of_a_text_80_characters_are_told(length: int, told: int) -> None:
    text = describe("s", "x" * length, Storages()).text
    assert len(text) == told and text.endswith("'" if length <= 78 else "…")
    assert text.startswith("'xxxxxxxxxx")


def test_of_a_name_200_characters_are_told() -> None:
    for length in (200, 201):
        for value in (1, torch.ones(1), torch.ones(1).numpy()):
            assert describe("n" * length, value, Storages()).name == "n" * 200


def test_a_module_counts_its_buffers_in_bytes_and_not_as_parameters() -> None:
    norm = nn.BatchNorm1d(3)
    told = describe("norm", norm, Storages())
    assert told.text == "6 parameters" and told.device == "cpu"
    assert told.size_bytes == sum(t.nbytes for t in (*norm.parameters(), *norm.buffers())) == 56
    assert describe("f", nn.Flatten(), Storages()).device == ""


@pytest.mark.parametrize(
    ("t", "text", "size_bytes"),
    [
        (torch.ones(1, 1), "1.0", 4),
        (torch.ones(2), "", 8),
        (torch.ones(0), "", 0),
        (torch.tensor(1 + 2j), "(1+2j)", 8),
        (torch.tensor(True), "True", 1),
    ],
)
def test_only_a_tensor_of_one_element_tells_it(t: torch.Tensor, text: str, size_bytes: int) -> None:
    told = describe("t", t, Storages())
    assert (told.text, told.size_bytes) == (text, size_bytes)


# -- completion ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "told"), [(1199, 1199), (1200, 1200), (1201, 1200)])
def test_at_most_1200_completions_are_told_the_newest_variables_first(
    count: int, told: int
) -> None:
    names = {f"zz{number}": number for number in range(count)}
    found = complete("zz", 2, names).completions
    assert len(found) == told <= MAX_COMPLETIONS and found[0].text == f"zz{count - 1}"


def test_of_a_detail_80_characters_are_told() -> None:
    for length in (1, 66, 67, 68, 300):
        namespace: dict[str, object] = {}
        exec(f"def zz({'a' * length}=1234, *, b): pass", namespace)
        (found,) = complete("zz", 2, namespace).completions
        whole = f"({'a' * length}=1234, *, b)"
        expected = whole if len(whole) <= 80 else f"{whole[:79]}…"
        assert found.detail == expected


def test_attributes_of_a_call_are_told_only_if_it_gives_a_tensor() -> None:
    names = {"torch": torch, "x": torch.ones(2), "len": len}
    for source, is_told in (
        ("x.sum().", True), ("x.sum().exp().", True), ("len(x).sum().", False),
        ("len(x).", False), ("x.size().sum().", False),
    ):  # fmt: skip
        told = [c.text for c in complete(source, len(source), names).completions]
        assert ("requires_grad" in told) is is_told


def test_names_in_the_same_case_come_first_and_private_ones_only_when_asked_for() -> None:
    names = {"zAb": 1, "_zab": 1, "zab": 1, "ZAB": 1}
    assert [c.text for c in complete("zab", 3, names).completions] == ["zab", "ZAB", "zAb"]
    assert [c.text for c in complete("_z", 2, names).completions] == ["_zab"]


def test_an_open_call_is_looked_for_in_the_last_20_000_characters() -> None:
    for spaces, is_found in ((MAX_LOOK_BACK - 2, True), (MAX_LOOK_BACK, False)):
        assert (open_call("f(" + " " * spaces) is not None) is is_found
    call = open_call("f(")
    assert call is not None and (call.called, call.positional, call.at_start) == ("f", 0, True)
    assert open_call("f(a)") is None and open_call("") is None and open_call("x[") is None


# -- output ----------------------------------------------------------------------------------------


def test_the_first_1000_lines_are_sent_at_once() -> None:
    sent: list = []
    output = Output(sent.append, all_output=True)
    for number in range(PROMPT_LINES + 5):
        output.write("stdout", f"{number}\n")
    assert [each.text for each in sent] == [f"{number}\n" for number in range(1000)]
    output.flush()
    assert sent[-1].text == "".join(f"{number}\n" for number in range(1000, 1005))


def test_an_unfinished_line_waits_and_streams_are_joined_in_their_order() -> None:
    sent: list = []
    output = Output(sent.append, all_output=True)
    for stream, text in (("stdout", "a"), ("stdout", "b"), ("stderr", "c"), ("stdout", "d")):
        output.write(stream, text)  # pyright: ignore[reportArgumentType]
    assert sent == []
    output.write("stdout", "e\n")
    assert sent == [
        OutputSnapshot(stream="stdout", text="ab"), OutputSnapshot(stream="stderr", text="c"),
        OutputSnapshot(stream="stdout", text="de\n"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("length", "pieces"), [(MAX_CHARACTERS, [0]), (MAX_CHARACTERS + 1, [0, 1])]
)
def test_a_long_text_is_sent_in_pieces(length: int, pieces: list[int]) -> None:
    sent: list = []
    output = Output(sent.append, all_output=True)
    output.write("stdout", "x" * length)
    output.flush()
    assert [len(each.text) for each in sent] == [MAX_CHARACTERS, 1][: len(pieces)]


def test_a_text_of_many_lines_is_sent_in_pieces_of_whole_lines() -> None:
    sent: list = []
    output = Output(sent.append, all_output=True)
    line = "y" * 9 + "\n"
    output.write("stdout", line * (2 * MAX_LINES + 1) + "x" * MAX_CHARACTERS + "\n")
    output.flush()
    assert [each.text for each in sent] == [
        line * MAX_LINES, line * MAX_LINES, line + "x" * (MAX_CHARACTERS - len(line)),
        "x" * len(line) + "\n",
    ]  # fmt: skip


def test_what_a_finalizer_prints_while_text_is_sent_waits_for_no_lock() -> None:
    sent: list[str] = []

    def emit(snapshot: object) -> None:
        assert isinstance(snapshot, OutputSnapshot)
        sent.append(snapshot.text)
        if snapshot.text == "first\n":
            output.write("stdout", "inside\n")

    output = Output(emit, all_output=True)
    thread = threading.Thread(target=output.write, args=("stdout", "first\n"), daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive() and sent == ["first\n"]
    output.flush()
    assert sent == ["first\n", "inside\n"]


# -- the parts of a long output --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "room", "lines", "fits"),
    [
        ("ab\ncd\n", 6, 2, 6), ("ab\ncd\n", 5, 2, 3), ("ab\ncd\n", 6, 1, 3), ("ab\ncd", 9, 9, 5),
        ("abcdef", 4, 1, 4), ("abcdef", 4, 0, 0), ("ab\ncd\n", 6, 0, 0), ("", 5, 5, 0),
        ("ab\ncd", 4, 5, 3), ("ab\n", 3, 1, 3), ("ab\nc", 3, 1, 3),
    ],
)  # fmt: skip
def test_the_beginning_that_fits_ends_with_a_line(
    text: str, room: int, lines: int, fits: int
) -> None:
    assert _fitting(text, room, lines) == fits


@pytest.mark.parametrize(
    ("text", "lines", "characters", "dropped"),
    [
        ("ab\ncd\nef\n", 1, 0, 3), ("ab\ncd\nef\n", 2, 0, 6), ("ab\ncd\nef\n", 3, 0, 9),
        ("ab\ncd\nef\n", 4, 0, 9), ("ab\ncd\nef\n", 0, 1, 3), ("ab\ncd\nef\n", 0, 3, 3),
        ("ab\ncd\nef\n", 0, 4, 6), ("ab\ncd\nef\n", 1, 5, 6), ("abcdef", 0, 4, 4),
        ("abcdef", 0, 9, 6), ("ab\ncd", 0, 4, 4), ("ab\ncd", 0, 0, 0), ("ab\ncd", -1, -1, 0),
    ],
)  # fmt: skip
def test_what_is_dropped_from_a_tail_ends_with_a_line(
    text: str, lines: int, characters: int, dropped: int
) -> None:
    assert _dropped(text, lines, characters) == dropped


def test_a_return_takes_back_the_line_also_from_the_piece_before() -> None:
    returns = Returns()
    pieces = ["10%\r20%", "\r", "30%", "\r\nnext\r", "", "\r\n", "a\rb\rc\nd\r"]
    assert [returns.apply(each) for each in pieces] == [
        "\r20%", "", "\r30%", "\nnext", "", "\n", "\rc\nd",
    ]  # fmt: skip


def test_the_head_and_the_tail_of_an_output_and_the_size_of_what_is_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engine.console.long_output.HEAD_LINES", 3)
    monkeypatch.setattr("engine.console.long_output.TAIL_LINES", 2)
    output = LongOutput()
    assert output.add("stdout", "1\n2\n") == "1\n2\n" and output.take_tail() is None
    assert output.add("stderr", "3\n4\n5\n") == "3\n"
    tail = output.take_tail()
    assert tail is not None and output.take_tail() is None
    assert [(p.stream, p.text) for p in tail.pieces] == [("stderr", "4\n5\n")]
    assert (tail.left_out_lines, tail.left_out_characters) == (0, 0)
    assert output.add("stdout", "6\n7") == ""
    assert output.add("stdout", "\r8") == ""
    tail = output.take_tail()
    assert tail is not None
    assert [(p.stream, p.text) for p in tail.pieces] == [("stderr", "5\n"), ("stdout", "6\n8")]
    assert (tail.left_out_lines, tail.left_out_characters, tail.is_whole) == (1, 2, True)
    output.close()
    with open(tail.path, encoding="utf-8") as file:
        assert file.read() == "1\n2\n3\n4\n5\n6\n8"


# -- warnings --------------------------------------------------------------------------------------


def test_more_than_1000_shown_warnings_are_forgotten() -> None:
    for count, left in ((1000, 1000), (1001, 0)):
        names = {"__warningregistry__": {str(number): True for number in range(count)}}
        warning_places._forget_many(names)
        assert len(names["__warningregistry__"]) == left
    warning_places._forget_many({})
