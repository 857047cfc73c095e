"""The list of variables, the numbers of their memory, names resolved, names completed."""

from __future__ import annotations

import gc
import random
import signal

import numpy as np
import pytest
import torch
from torch import nn

from engine.console.variables import describe
from engine.protocol import (
    CellSnapshot,
    CompleteCommand,
    CompletionsSnapshot,
    ReadVariablesCommand,
    RunCellCommand,
    Variable,
    VariablesSnapshot,
    encode_snapshot,
)
from engine.server.session import Session
from engine.system.errors import LabError
from tests.work import work_of


class Console:
    """A session and the variables it told of last, by name."""

    def __init__(self) -> None:
        self.sent: list = []
        self.session = Session(self.sent.append)

    def run(self, source: str) -> dict[str, Variable]:
        self.sent.clear()
        self.session.handle(RunCellCommand(id=1, source=source))
        assert isinstance(self.sent[-1], CellSnapshot)
        return self.variables()

    def variables(self) -> dict[str, Variable]:
        (snapshot,) = [s for s in self.sent if isinstance(s, VariablesSnapshot)]
        return {variable.name: variable for variable in snapshot.variables}

    @property
    def namespace(self):
        return self.session.lab.console.namespace

    def complete(self, source: str, cursor: int | None = None) -> CompletionsSnapshot:
        self.sent.clear()
        at = len(source) if cursor is None else cursor
        self.session.handle(CompleteCommand(id=2, source=source, cursor=at))
        (snapshot,) = self.sent
        assert isinstance(snapshot, CompletionsSnapshot), snapshot
        return snapshot

    def names(self, source: str) -> list[str]:
        return [completion.text for completion in self.complete(source).completions]


@pytest.fixture
def console():
    return Console()


# -- the list ------------------------------------------------------------------------------------


def test_a_tensor_is_listed_as_torch_reports_it(console):
    found = console.run(
        "x = torch.arange(6, dtype=torch.float64, requires_grad=True)\ny = (x * 2).view(2, 3)\n"
        "z = torch.zeros(2, 3, dtype=torch.int8); z += 1; z[0] = 5"
    )
    x, y, z = found["x"], found["y"], found["z"]
    assert (x.kind, x.type, x.shape, x.dtype, x.device) == (
        "tensor", "Tensor", (6,), "float64", "cpu",
    )  # fmt: skip
    assert (x.requires_grad, x.is_leaf, x.grad_fn, x.size_bytes) == (True, True, None, 48)
    assert (y.shape, y.is_leaf, y.grad_fn, y.size_bytes) == ((2, 3), False, "ViewBackward0", 48)
    own = console.namespace.variables["z"]
    assert (z.version, z.size_bytes) == (own._version, own.nbytes) == (2, 6)


def test_modules_optimizers_numbers_and_others_are_listed(console):
    found = console.run(
        "m = nn.Linear(3, 2); o = torch.optim.Adam(m.parameters(), lr=0.01); k = 3; s = 'word'\n"
        "def f(): pass\nclass C: pass\nl = [1, 2]; b = True; a = np.ones((2, 2)); import math"
    )
    kinds = {name: variable.kind for name, variable in found.items()}
    assert kinds == {
        "m": "module", "o": "optimizer", "k": "number", "s": "other", "f": "other", "C": "other",
        "l": "other", "b": "number", "a": "other", "math": "other",
    }  # fmt: skip
    m = nn.Linear(3, 2)
    assert found["m"].size_bytes == sum(p.nbytes for p in m.parameters()) == 32
    assert found["m"].text == "8 parameters"
    assert found["o"].text == "lr 0.01, 2 parameter tensors"
    assert (found["k"].text, found["s"].text, found["l"].text) == ("3", "'word'", "2 items: 1, 2")
    assert (found["a"].shape, found["a"].dtype, found["a"].size_bytes) == ((2, 2), "float64", 32)


def test_values_are_told_in_few_words(console):
    found = console.run(
        "def f(): pass\nclass C: pass\nimport math\nw = 'a' * 300; b = b'raw'; t = torch.float64\n"
        "d = torch.device('meta'); n = np.float32(1.5); k = {1: 2}; o = object(); z = 1 + 2j\n"
        "m = nn.BatchNorm1d(3, device='meta'); lines = 'a   b'"
    )
    assert {name: variable.text for name, variable in found.items()} == {
        "f": "function f", "C": "class", "math": "math", "w": f"'{'a' * 78}…", "b": "b'raw'",
        "t": "torch.float64", "d": "device(type='meta')", "n": repr(np.float32(1.5)),
        "k": "1 item", "o": "", "z": "(1+2j)", "m": "6 parameters", "lines": "'a b'",
    }  # fmt: skip
    assert found["m"].size_bytes == sum(t.nbytes for t in nn.BatchNorm1d(3).state_dict().values())
    assert (found["m"].device, found["k"].device, found["k"].size_bytes) == ("meta", "", None)
    assert (found["n"].kind, found["z"].kind, found["m"].kind) == ("number", "number", "module")


def test_what_a_value_holds_is_named_with_it(console):
    found = console.run(
        "import argparse, collections, dataclasses, enum\n"
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "w = {'weight': torch.ones(3, 2), 'bias': torch.ones(3), 'step': 7, '_own': 1}\n"
        "seq = [torch.ones(2, 3), np.ones(4), 'word', None, nn.ReLU(), [1]]\n"
        "long = list(range(1000)); text = ['a' * 100]; odd = {1: 2, 'a': 3}\n"
        "@dataclasses.dataclass\nclass Config:\n    lr: float = 0.1\n    net: object = None\n"
        "config = Config(net=nn.Linear(1, 1))\n"
        "Batch = collections.namedtuple('Batch', 'x y'); batch = Batch(torch.ones(8, 3), 5)\n"
        "arguments = argparse.Namespace(epochs=3, name='run')\n"
        "class Own:\n    def __init__(self): self.x, self._y = torch.ones(2), 1\n"
        "own = Own(); size = torch.Size([2, 3]); r = range(3); s = {4, 5}; e = ()\n"
        "class Color(enum.Enum): RED = 1\ncolor = Color.RED\n"
        "data = TensorDataset(torch.ones(100, 2)); one = TensorDataset(torch.ones(1, 2))\n"
        "loader = DataLoader(data, batch_size=30); nested = {'n': torch.nested.nested_tensor([])}"
    )
    texts = {name: variable.text for name, variable in found.items()}
    assert texts["w"] == "4 items: weight (3, 2), bias (3,), step 7"
    assert texts["seq"] == "6 items: (2, 3), (4,), 'word', None, ReLU, list"
    assert texts["long"] == "1,000 items: 0, 1, 2, 3, 4, 5, 6, 7"
    assert texts["text"] == f"1 item: '{'a' * 15}…'"
    assert texts["config"] == "lr 0.1, net Linear"
    assert texts["batch"] == "x (8, 3), y 5"
    assert texts["arguments"] == "epochs 3, name 'run'"
    assert texts["own"] == "x (2,)"
    assert (texts["size"], texts["r"]) == ("torch.Size([2, 3])", "range(0, 3)")
    assert (texts["s"], texts["e"], texts["odd"]) == ("2 items", "0 items", "2 items")
    assert texts["color"] == "<Color.RED: 1>"
    assert (texts["data"], texts["one"]) == ("100 samples", "1 sample")
    assert texts["loader"] == "4 batches of 30"
    assert texts["nested"].startswith("1 item: n ")


def test_a_data_frame_is_described_by_its_size_and_columns(console):
    """By the name of its class, since no data frame is installed with the program."""
    found = console.run(
        "class DataFrame:\n    __module__ = 'pandas.core.frame'\n    shape = (1500, 2)\n"
        "    columns = ['age', 'height']\nframe = DataFrame()"
    )
    assert found["frame"].text == "1,500 rows × 2 columns: age, height"


def test_a_tensor_that_a_value_holds_runs_no_code_of_its_class(console):
    found = console.run(
        "ran = []\nclass Loud(torch.Tensor):\n    @classmethod\n"
        "    def __torch_function__(cls, *given, **named):\n        ran.append(1)\n"
        "        return super().__torch_function__(*given, **named)\n"
        "held = [torch.ones(2).as_subclass(Loud)]; ran.clear()"
    )
    assert (found["held"].text, found["ran"].text) == ("1 item: (2,)", "0 items")


def test_what_stood_there_before_and_private_names_are_left_out(console):
    assert list(console.run("_x = 1; x = 2; del x; y = torch.ones(1)")) == ["y"]


@pytest.mark.parametrize(
    ("source", "shape"),
    [
        ("torch.eye(3).to_sparse()", (3, 3)),
        ("torch.eye(3).to_sparse_csr()", (3, 3)),
        ("torch.ones(2, device='meta')", (2,)),
        ("torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])", (2, -1)),
        ("torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)", (2,)),
        ("torch.ones(2, dtype=torch.complex64).conj()", (2,)),
        ("torch.empty(0, 4)", (0, 4)),
        ("torch.ones(3).to(torch.float8_e4m3fn)", (3,)),
        ("nn.LazyLinear(2).weight", ()),
        ("nn.Parameter(torch.ones(2, 2))", (2, 2)),
        ("torch.tensor(2.5)", ()),
    ],
)
@pytest.mark.filterwarnings("ignore")  # torch's own, of kinds still in development
def test_every_kind_of_tensor_is_listed(console, source, shape):
    found = console.run(f"x = {source}")
    assert (found["x"].kind, found["x"].shape) == ("tensor", shape)


def test_a_scalar_shows_its_value(console):
    assert console.run("x = torch.tensor(2.5); n = torch.tensor(7)")["x"].text == "2.5"
    assert console.variables()["n"].text == "7"


def test_objects_that_raise_are_listed_all_the_same(console):
    found = console.run(
        "class Bad:\n    def __len__(self): raise RuntimeError('no')\n"
        "    def __repr__(self): raise RuntimeError('no')\n"
        "    __class__ = property(lambda self: 1/0)\nbad = Bad()\n"
        "class T(torch.Tensor):\n    @property\n    def requires_grad(self): 1/0\n"
        "t = torch.ones(2).as_subclass(T)"
    )
    assert (found["bad"].kind, found["t"].kind, found["t"].type) == ("other", "tensor", "T")


def test_listing_changes_nothing(console):
    console.run("x = torch.ones(3, requires_grad=True); y = x * 2; torch.manual_seed(0)")
    y, state = console.namespace.variables["y"], torch.get_rng_state()
    version, next_node = y._version, (y * 1).grad_fn._sequence_nr()
    console.sent.clear()
    console.session.handle(ReadVariablesCommand(id=3))
    assert list(console.variables()) == ["x", "y"]
    assert (y._version, torch.equal(state, torch.get_rng_state())) == (version, True)
    assert (y * 1).grad_fn._sequence_nr() == next_node + 1


def test_thousands_of_variables_fit_in_a_snapshot(console):
    console.sent.clear()
    found = console.run("for i in range(5000): globals()[f'v{i}'] = 'long ' * 100")
    (snapshot,) = [s for s in console.sent if isinstance(s, VariablesSnapshot)]
    encode_snapshot(snapshot)
    assert len(found) + snapshot.left_out == 5001
    assert snapshot.left_out > 0


def test_cells_beside_many_tensors_do_work_in_proportion_to_them(console):
    work: list[list[int]] = []
    for count in (100, 400):
        console.run("".join(f"del t{i}\n" for i in range(100) if work))
        cells = (f"for i in range({count}): globals()[f't{{i}}'] = torch.zeros(2)", "new = t0 + 1")
        work.append([work_of(lambda cell=cell: console.run(cell)) for cell in cells])
    for few, many in zip(*work, strict=True):
        assert many < 4.4 * few  # quadratic work would be 16 times as much


# -- memory --------------------------------------------------------------------------------------


def test_equal_numbers_are_shared_memory(console):
    found = console.run(
        "x = torch.arange(6.); v = x.view(2, 3); s = x[1:]; d = x.detach(); c = x.clone()\n"
        "p = nn.Parameter(x)\na = np.zeros(4); t = torch.from_numpy(a); u = torch.from_numpy(a)\n"
        "half = torch.from_numpy(a[2:]); k = torch.tensor(a); back = c.numpy()"
    )
    numbers = {name: variable.storage for name, variable in found.items()}
    assert {numbers[n] for n in "xvsdp"} == {1}
    assert numbers["c"] == numbers["back"] != 1
    assert len({numbers[n] for n in ("a", "t", "u", "half")}) == 1
    assert len({numbers["x"], numbers["c"], numbers["a"], numbers["k"]}) == 4


def test_sharing_agrees_with_numpy_for_random_views(console):
    generator = random.Random(7)
    base = [np.zeros(32, np.float32) for _ in range(4)]
    tensors, arrays = [], []
    for _ in range(40):
        array = generator.choice(base)
        start = generator.randrange(0, 24)
        arrays.append(array)
        tensors.append(torch.from_numpy(array)[start : start + 8])
    console.run("")
    storages = console.namespace.storages
    for i in range(40):
        for j in range(40):
            same = storages.number(tensors[i]) == storages.number(tensors[j])
            assert same == np.shares_memory(arrays[i], arrays[j])


def test_a_number_stays_while_the_memory_lives_and_is_given_again_after(console):
    console.run("x = torch.ones(3); y = torch.ones(3)")
    found = console.run("v = y[1:]; z = torch.ones(2)")
    assert [found[n].storage for n in "xyvz"] == [1, 2, 2, 3]
    found = console.run("del x, y")
    assert [found[n].storage for n in "vz"] == [2, 3]
    gc.collect()
    assert console.run("w = torch.ones(5)")["w"].storage == 1


def test_numbering_keeps_no_memory_alive(console):
    storages_before = console.run("x = torch.ones(1000)")["x"].storage
    import weakref

    watch = weakref.ref(console.namespace.variables["x"].untyped_storage())
    assert watch() is not None and storages_before == 1
    console.run("del x")
    gc.collect()
    assert watch() is None


def test_empty_tensors_share_nothing(console):
    found = console.run("a = torch.empty(0); b = torch.empty(0); m = torch.ones(2, device='meta')")
    assert len({variable.storage for variable in found.values()}) == 3


# -- names ---------------------------------------------------------------------------------------


def test_expressions_name_what_python_says(console):
    console.run(
        "x = torch.arange(12.).view(3, 4); m = nn.Sequential(nn.Linear(2, 2)); d = {'k': [x]}\n"
        "w = torch.ones(2, requires_grad=True); (w * w).sum().backward()"
    )
    variables = console.namespace.variables
    for expression in (
        "x", " x ", "m[0].weight", "d['k'][0]", "x[1]", "x[-1, 2]", "x[1:, None, ..., ::2]",
        "w.grad", "m[0].weight.T", "x[[0, 2]]",
    ):  # fmt: skip
        value, expected = console.namespace.resolve(expression), eval(expression, variables)
        assert torch.equal(value, expected), expression
    assert console.namespace.tensor("m[0].weight") is variables["m"][0].weight


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("nope", "no variable named `nope`"),
        ("x.sum()", "computes something"),
        ("x + 1", "computes something"),
        ("x[k]", "not a constant index"),
        ("x[f(1)]", "not a constant index"),
        ("x[5]", "IndexError"),
        ("x.nope", "cannot be read"),
        ("", "not the name of a value"),
        ("x = 1", "not the name of a value"),
        ("y.grad", "gradient is not kept"),
        ("w.grad", "has no gradient yet"),
        ("x\0", "not the name of a value"),
    ],
)
def test_what_names_nothing_is_told_in_words(console, expression, words):
    console.run(
        "x = torch.ones(3); k = 0; w = torch.ones(1, requires_grad=True); y = w * 2\n"
        "def f(i): raise SystemExit"
    )
    with pytest.raises(LabError, match=words):
        console.namespace.resolve(expression)


def test_only_tensors_are_tensors(console):
    console.run("k = 3")
    with pytest.raises(LabError, match="`k` is an int, not a tensor"):
        console.namespace.tensor("k")


# -- completion ----------------------------------------------------------------------------------


def test_names_come_from_live_objects(console):
    console.run("tensor_one = torch.ones(2, 3); model = nn.Sequential(nn.Linear(2, 3)); l = [1]")
    assert console.names("y = tens") == ["tensor_one"]
    assert console.names("torch.zeros_l") == ["zeros_like"]
    assert console.names("model[0].wei") == ["weight"]
    assert "append" in console.names("l.")
    assert "print" in console.names("pri")
    assert "lambda" in console.names("lam")
    assert set(console.names("tensor_one.")) == {
        name for name in dir(torch.ones(1)) if not name.startswith("_")
    }
    (found,) = console.complete("tensor_one.view_a").completions
    assert (found.kind, found.text, found.detail) == ("function", "view_as", "(other) -> Tensor")
    assert console.complete("model[0].wei").completions[0].detail == "float32 (3, 2)"
    assert console.complete("a = 1\nb = tens + 1", 14).start == 10


@pytest.mark.parametrize(
    "source", ["# tens", "'tens", '"""a\ntens', "'a' 'tens", "1tens", "f().app", "nope.app", "1."]
)
def test_nothing_is_offered_where_no_name_can_be(console, source):
    console.run("tens = 1")
    assert console.names(source) == []


def test_after_a_closed_string_names_are_offered_again(console):
    console.run("tens = 1")
    assert console.names("print('#', tens") == ["tens"]
    assert console.names("'''a\nb''' + tens") == ["tens"]


def test_completing_runs_no_property(console):
    console.run("class C:\n    @property\n    def trap(self): raise SystemExit\nc = C()")
    assert console.names("c.tr") == ["trap"]


def test_thousands_of_names_fit_in_a_snapshot(console):
    console.run("for i in range(5000): globals()['n' * 50 + str(i)] = 1")
    encode_snapshot(console.complete("n"))
    encode_snapshot(console.complete("torch."))


def test_listing_reads_no_element_of_a_tensor_that_has_more_than_one(console, monkeypatch):
    def no_reading(t):
        raise AssertionError("this may copy all of it")

    found = console.run("x = torch.ones(2, dtype=torch.complex64).conj()")["x"]
    monkeypatch.setattr("engine.console.variables.readable", no_reading)
    namespace = console.namespace
    assert describe("x", namespace.variables["x"], namespace.storages) == found
    assert (found.shape, found.dtype, found.text) == ((2,), "complex64", "")


# -- objects that do not answer --------------------------------------------------------------------

HANGING = """
class Hanging(list):
    asked = 0
    def __len__(self):
        Hanging.asked += 1
        while True: pass
class Shouting(Exception):
    def __str__(self):
        while True: pass
class Naming:
    def __dir__(self):
        while True: pass
class Quick(list): pass
"""


@pytest.fixture
def interruptible_console(monkeypatch, interruptible):
    """A limit of a moment, and an interrupt as the engine's process gives it."""
    monkeypatch.setattr("engine.console.variables.ANSWER_S", 0.01)
    monkeypatch.setattr("engine.handlers.console.ANSWER_S", 0.01)
    console = Console()
    console.session.lab.control.interrupt = lambda: signal.raise_signal(signal.SIGINT)
    return console


def test_an_object_that_does_not_say_its_length_is_asked_once(interruptible_console):
    console = interruptible_console
    console.run(HANGING)
    found = console.run("h, q, other = Hanging(), Quick([1]), 3")
    assert found["h"].text == "does not answer: its methods take too long"
    assert (found["q"].text, found["other"].text) == ("1 item: 1", "3")
    found = console.run("g = Hanging(); asked = Hanging.asked")
    assert found["g"].text == found["h"].text
    assert found["asked"].text == "1"


def test_an_error_that_does_not_say_its_message_is_told(interruptible_console):
    console = interruptible_console
    console.run(HANGING)
    console.session.handle(RunCellCommand(id=1, source="x = 1\nraise Shouting"))
    error = console.sent[-1].error
    assert (error.type, error.line) == ("Shouting", 2)
    assert error.message == "<exception str() failed>"
    assert "raise Shouting" in error.traceback


def test_an_object_that_does_not_name_its_attributes_has_no_completions(interruptible_console):
    console = interruptible_console
    console.run(HANGING + "n = Naming()")
    console.session.handle(CompleteCommand(id=2, source="n.", cursor=2))
    assert console.sent[-1].error.message == "The object takes too long to name its attributes."
