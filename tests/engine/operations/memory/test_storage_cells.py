"""What a window of a storage shows, through the session, against torch."""

from __future__ import annotations

import pytest
import torch

from engine.operations.memory.locating import MAX_READERS, locate
from engine.operations.memory.storage import MAX_CELLS, read_window
from engine.protocol import (
    MAX_SNAPSHOT_BYTES,
    CellSnapshot,
    ErrorSnapshot,
    LocateCommand,
    LocationSnapshot,
    ReadStorageCommand,
    RunCellCommand,
    StorageSnapshot,
    encode_snapshot,
)
from engine.server.session import Session
from engine.tensors.reach import Reached


@pytest.fixture
def sent():
    return []


@pytest.fixture
def session(sent):
    session = Session(sent.append)
    yield session
    session.close()


def run(session: Session, sent: list, source: str) -> None:
    session.handle(RunCellCommand(source=source))
    ended = sent[-1]
    assert isinstance(ended, CellSnapshot) and ended.ok, ended
    sent.clear()


def ask(session: Session, sent: list, command):
    session.handle(command)
    (answer,) = sent
    sent.clear()
    encode_snapshot(answer)
    return answer


def flat(t: torch.Tensor) -> list:
    return torch.empty(0, dtype=t.dtype).set_(t.untyped_storage()).tolist()


@pytest.mark.parametrize(
    "t",
    [
        torch.arange(12).view(3, 4),
        torch.arange(12).view(3, 4).T,
        torch.arange(3).unsqueeze(1).expand(3, 4),
        torch.arange(48).view(6, 8)[1::2, 2:7:2],
        torch.arange(9).unfold(0, 3, 2),
        torch.arange(60).view(1, 3, 4, 5).contiguous(memory_format=torch.channels_last),
        torch.arange(20).as_strided((3, 3), (1, 2), 4),
        torch.tensor(7),
        torch.zeros(0, 3, dtype=torch.int64),
    ],
    ids=["rows", "transposed", "expanded", "sliced", "unfolded", "channels_last", "strided",
         "scalar", "empty"],
)  # fmt: skip
def test_each_cell_tells_who_reads_it(t) -> None:
    shown = read_window("t", t, 0, MAX_CELLS)
    assert shown.cells is not None
    assert shown.cells == t.untyped_storage().nbytes() // t.element_size()
    assert shown.values == tuple(str(value) for value in flat(t))
    ground = torch.arange(max(shown.cells, 1)).as_strided(t.shape, t.stride(), t.storage_offset())
    in_cells = ground.reshape(-1).tolist()  # the cell of each element, row by row
    for cell in range(shown.cells):
        assert shown.readers[cell] == in_cells.count(cell)
        position = shown.positions[cell]
        assert position == -1 if cell not in in_cells else in_cells[position] == cell


DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16,
    torch.uint32, torch.float16, torch.bfloat16, torch.float32, torch.float64,
    torch.float8_e4m3fn, torch.float8_e5m2, torch.complex64, torch.complex128,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_shows_its_numbers(dtype) -> None:
    t = torch.tensor([0, 1, 1, 0]).to(dtype)
    shown = read_window("t", t, None, 8)
    if dtype.is_complex:
        expected = ("0+0j", "1+0j", "1+0j", "0+0j")
    elif dtype == torch.bool:
        expected = ("False", "True", "True", "False")
    else:
        expected = ("0", "1", "1", "0")
    assert shown.values == expected
    assert shown.element_bytes == t.element_size()
    assert shown.dtype == str(dtype).removeprefix("torch.")


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
def test_quantised_conjugate_and_meta_say_what_the_cells_hold() -> None:
    q = torch.quantize_per_tensor(torch.tensor([0.5, 1.0]), 0.5, 3, torch.quint8)
    shown = read_window("q", q, 0, 8)
    assert shown.values == ("4", "5") and "zero_point" in shown.note
    z = torch.tensor([1 + 2j]).conj()
    assert read_window("z", z, 0, 8).values == ("1+2j",)
    assert "conjugated" in read_window("z", z, 0, 8).note
    meta = read_window("m", torch.empty(2, 3, device="meta"), 0, 8)
    assert meta.strides == (3, 1) and meta.cells == 6 and set(meta.values) == {""}


@pytest.mark.filterwarnings("ignore:Sparse CSR:UserWarning", "ignore:The PyTorch API of nested")
@pytest.mark.parametrize(
    ("make", "shape", "words"),
    [
        (lambda: torch.eye(3).to_sparse(), (3, 3), "_values()"),
        (lambda: torch.eye(3).to_sparse_csr(), (3, 3), "crow_indices()"),
        (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), (), "unbind()"),
        (torch.nn.parameter.UninitializedParameter, (), "not initialised"),
    ],
    ids=["coo", "csr", "nested", "lazy"],
)
def test_what_has_no_storage_says_so(make, shape, words) -> None:
    shown = read_window("x", make(), None, 8)
    assert shown.cells is None and shown.shape == shape
    assert words in shown.note


@pytest.mark.parametrize(
    ("count", "shown"), [(-3, 1), (0, 1), (1, 1), (2, 2), (MAX_CELLS + 9, MAX_CELLS)]
)
def test_a_window_has_at_least_one_cell_and_no_more_than_the_most(count: int, shown: int) -> None:
    found = read_window("t", torch.arange(2 * MAX_CELLS), 3, count)
    assert len(found.values) == shown


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 3, 1, 2), (0, 2, 1, 3), (3, 2, 1, 0)])
def test_channels_last_is_said_where_torch_says_so(order) -> None:
    t = torch.arange(120).view(2, 3, 4, 5).permute(order)
    told = read_window("t", t, 0, 8).contiguity
    is_last = t.is_contiguous(memory_format=torch.channels_last)
    assert told is not None and told.is_contiguous is t.is_contiguous()
    assert told.channels_last is is_last and ("channels_last" in told.text) is is_last


def test_a_storage_that_was_released_is_not_read() -> None:
    t = torch.ones(4)
    t.untyped_storage().resize_(0)
    shown = read_window("t", t, None, 8)
    assert shown.cells == 0 and "released" in shown.note
    t.untyped_storage().resize_(8)
    shown = read_window("t", t, None, 8)
    assert shown.values == ("", "") and "shrunk" in shown.note


def test_what_has_no_storage_reads_no_cell() -> None:
    t = torch.ones(3)
    found = locate("t", t, Reached({"s": torch.eye(3).to_sparse(), "t": t}), cell=1)
    assert [reader.expression for reader in found.readers] == ["t"]


def test_reading_leaves_graph_version_and_random_numbers_alone() -> None:
    w = torch.ones(3, 4, requires_grad=True)
    y = (w * 2).T
    state, before = torch.get_rng_state(), (y.grad_fn, y._version, w._version)
    read_window("y", y, None, 100)
    locate("y", y, Reached({"y": y, "w": w}), index=(0, 0))
    assert (y.grad_fn, y._version, w._version) == before
    assert torch.equal(torch.get_rng_state(), state)


def test_a_window_of_a_large_storage_is_small_and_starts_where_the_tensor_does() -> None:
    t = torch.zeros(30_000_000, dtype=torch.int8)[20_000_100:]
    shown = read_window("t", t, None, 10**6)
    assert shown.first <= 20_000_100 < shown.first + len(shown.values) <= shown.first + MAX_CELLS
    assert shown.cells == 30_000_000
    assert len(encode_snapshot(shown)) < MAX_SNAPSHOT_BYTES / 2
    last = read_window("t", t, 29_999_990, 100)
    assert last.first == 29_999_990 and len(last.values) == 10
    assert last.positions[-1] == t.numel() - 1
    far = torch.arange(1000)[200:]
    assert read_window("t", far, None, 40).first == 192  # rows of 64 cells
    assert read_window("t", far, None, 401).first == 192
    assert read_window("t", far, None, 402).first == 0  # the start is near: it is shown as well


# -- who else reads a cell -------------------------------------------------------------------------


def test_an_element_is_found_in_every_tensor_that_shares_its_byte(session, sent) -> None:
    run(session, sent, "x = torch.arange(12.).view(3, 4)\ny = x.T\nz = x[1]\nother = x.clone()")
    found = ask(session, sent, LocateCommand(expression="y", index=(2, 1)))
    assert isinstance(found, LocationSnapshot)
    assert found.cell == 6 and found.index == (2, 1)
    readers = {reader.expression: reader.elements for reader in found.readers}
    assert readers == {"y": ((2, 1),), "x": ((1, 2),), "z": ((2,),)}
    assert found.readers[0].expression == "y"
    by_cell = ask(session, sent, LocateCommand(expression="x", cell=6))
    assert by_cell.index == (1, 2) and by_cell.cell == 6


def test_a_gap_of_one_tensor_is_an_element_of_another(session, sent) -> None:
    run(session, sent, "x = torch.arange(8.)\nodd = x[1::2]")
    found = ask(session, sent, LocateCommand(expression="odd", cell=2))
    assert found.index is None
    assert [(r.expression, r.elements) for r in found.readers] == [("x", ((2,),))]


def test_other_element_sizes_and_numpys_memory_are_matched_by_bytes(session, sent) -> None:
    run(
        session,
        sent,
        "n = np.zeros(8, np.float32)\na = torch.from_numpy(n)\nb = torch.from_numpy(n[2:])\n"
        "c = torch.zeros(3, dtype=torch.complex64)\nr = torch.view_as_real(c)\n"
        "i = torch.zeros(2, dtype=torch.int32)\nh = i.view(torch.int16)\n"
        "bytes_ = i.view(torch.uint8)",
    )

    def readers(name: str, cell: int) -> dict:
        found = ask(session, sent, LocateCommand(expression=name, cell=cell))
        return {reader.expression: reader.elements for reader in found.readers}

    assert readers("a", 3) == {"a": ((3,),), "b": ((1,),), "n": ((3,),)}
    assert readers("a", 1) == {"a": ((1,),), "n": ((1,),)}
    assert readers("b", 0) == {"b": ((0,),), "a": ((2,),), "n": ((2,),)}
    assert readers("c", 1) == {"c": ((1,),), "r": ((1, 0), (1, 1))}
    assert readers("r", 3) == {"r": ((1, 1),), "c": ((1,),)}
    assert readers("i", 1) == {
        "i": ((1,),), "h": ((2,), (3,)), "bytes_": ((4,), (5,), (6,), (7,)),
    }  # fmt: skip
    assert readers("h", 1) == {"h": ((1,),), "i": ((0,),), "bytes_": ((2,), (3,))}
    assert readers("bytes_", 5) == {"bytes_": ((5,),), "i": ((1,),), "h": ((2,),)}


def test_many_readers_are_named_in_part() -> None:
    t = torch.zeros(1).expand(10**8)
    found = locate("t", t, Reached({"t": t}), cell=0)
    assert found.readers[0].elements[:3] == ((0,), (1,), (2,))
    assert found.readers[0].more


def test_arrays_are_matched_whatever_their_strides(session, sent) -> None:
    run(
        session,
        sent,
        "n = np.zeros((3, 4), np.float32)\nx = torch.from_numpy(n)\nback = n[::-1, ::2]\n"
        "raw = n.view(np.uint8)\npair = n.view([('a', 'f4'), ('b', 'f4')])['b']\n"
        "of_x = x.T.numpy()\nalone = n.copy()\nnone = n[:0]",
    )
    found = ask(session, sent, LocateCommand(expression="x", index=(2, 2)))
    assert {reader.expression: reader.kind for reader in found.readers} == {
        "x": "tensor", "n": "numpy", "back": "numpy", "raw": "numpy", "of_x": "numpy"}  # fmt: skip
    elements = {reader.expression: reader.elements for reader in found.readers}
    assert elements["back"] == ((0, 1),) and elements["of_x"] == ((2, 2),)
    assert elements["raw"] == ((2, 8), (2, 9), (2, 10), (2, 11))
    beside = ask(session, sent, LocateCommand(expression="x", index=(2, 3)))
    assert {reader.expression: reader.elements for reader in beside.readers}["pair"] == ((2, 1),)


def test_a_stretched_array_lists_its_elements_in_order(session, sent) -> None:
    run(session, sent, "x = torch.arange(3.)\nwide = np.broadcast_to(x.numpy(), (4, 3))")
    found = ask(session, sent, LocateCommand(expression="x", cell=1))
    elements = {reader.expression: reader.elements for reader in found.readers}
    assert elements["wide"] == ((0, 1), (1, 1), (2, 1), (3, 1))


def test_tensors_without_memory_share_cells_only_with_their_views(session, sent) -> None:
    run(
        session,
        sent,
        "x = torch.empty(3, device='meta')\nview = x[1:]\nother = torch.empty(3, device='meta')\n"
        "real = torch.zeros(3)\narray = np.zeros(3, np.float32)",
    )
    found = ask(session, sent, LocateCommand(expression="x", cell=1))
    assert {reader.expression: reader.elements for reader in found.readers} == {
        "x": ((1,),), "view": ((0,),)}  # fmt: skip
    found = ask(session, sent, LocateCommand(expression="real", cell=1))
    assert [reader.expression for reader in found.readers] == ["real"]


def test_what_is_inside_modules_lists_and_dicts_is_named(session, sent) -> None:
    run(
        session,
        sent,
        "model = nn.Sequential(nn.Linear(2, 3))\nw = model[0].weight\n"
        "xs = [torch.ones(2), (w.detach().T,)]\nstate = model.state_dict()\n"
        "flat = state['0.weight'].view(-1).numpy()\n"
        "model(torch.ones(1, 2)).sum().backward()\ng = w.grad[1]",
    )
    found = ask(session, sent, LocateCommand(expression="w", index=(2, 1)))
    assert {reader.expression: reader.elements for reader in found.readers} == {
        "w": ((2, 1),),
        "model[0].weight": ((2, 1),),
        "xs[1][0]": ((1, 2),),
        "state['0.weight']": ((2, 1),),
        "flat": ((5,),),
    }
    grads = ask(session, sent, LocateCommand(expression="g", cell=3))
    assert {reader.expression: reader.elements for reader in grads.readers} == {
        "g": ((1,),), "w.grad": ((1, 1),)}  # fmt: skip


def test_more_readers_than_are_listed_are_told(session, sent) -> None:
    run(session, sent, f"x = torch.zeros(1)\nviews = [x[:] for _ in range({MAX_READERS + 5})]")
    found = ask(session, sent, LocateCommand(expression="x", cell=0))
    assert len(found.readers) == MAX_READERS
    assert found.note == f"More than {MAX_READERS} tensors read it: these are the first."
    run(session, sent, "del views[60:]")
    found = ask(session, sent, LocateCommand(expression="x", cell=0))
    assert len(found.readers) == 61 and found.note == ""


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (ReadStorageCommand(expression="nothing"), "no variable named"),
        (ReadStorageCommand(expression="text"), "not a tensor"),
        (LocateCommand(expression="x", index=(9,)), "not an element"),
        (LocateCommand(expression="x", cell=4), "4 cells, not 4"),
        (LocateCommand(expression="s", cell=0), "no cells"),
    ],
)
def test_bad_questions_are_answered_in_words(session, sent, command, words) -> None:
    run(session, sent, "x = torch.zeros(4)\ntext = 'a'\ns = torch.eye(2).to_sparse()")
    answer = ask(session, sent, command)
    assert isinstance(answer, ErrorSnapshot)
    assert answer.error.type == "LabError" and words in answer.error.message


def test_the_handler_adds_number_version_and_writer(session, sent) -> None:
    run(session, sent, "x = torch.zeros(4)\ny = x.view(2, 2)")
    run(session, sent, "\ny[1] = 5.0")
    shown = ask(session, sent, ReadStorageCommand(expression="x"))
    assert isinstance(shown, StorageSnapshot)
    assert shown.values == ("0", "0", "5", "5")
    assert shown.version == 1 and shown.storage == 1
    assert shown.written_by is not None
    assert (shown.written_by.op, shown.written_by.line) == ("[1] =", 2)
