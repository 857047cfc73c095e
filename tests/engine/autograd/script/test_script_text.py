"""What a script says and leaves out: cells that it needs, random numbers, losses, layout."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from engine.autograd.script.text import WIDTH, identifier, is_expression, joined, with_statement
from engine.console.output import Output
from engine.errors import LabError
from engine.lab import Lab
from engine.models.forward import ForwardPass
from engine.models.live import LiveModel
from engine.project.document import Block, Model, Wire
from engine.protocol import (
    Breakpoint,
    EditGradientCommand,
    MoveBackwardCommand,
    SetBreakpointsCommand,
    StartBackwardCommand,
    ZeroGradientsCommand,
)
from engine.session import handler_of
from engine.training.components.losses import make_loss
from tests.engine.autograd.backward.test_roots import ask, console, run
from tests.engine.autograd.script.script_runs import exported, run_here, same

RESTORED = "# Random numbers as they were in the lab."
X = "x = torch.ones(3, requires_grad=True)"


@pytest.fixture(autouse=True)
def random_states_that_no_cell_leaves() -> None:
    torch.manual_seed(12_345)
    np.random.seed(12_345)
    random.seed(12_345)


def send(lab: Lab, command: Any) -> Any:
    return ask(handler_of(type(command))(lab, command))[-1]


def begun(*cells: str, root: str = "y", **options: Any) -> Lab:
    lab = console(*cells)
    send(lab, StartBackwardCommand(root=root, **options))
    return lab


def move(lab: Lab, *moves: Any) -> None:
    for each in moves:
        send(lab, MoveBackwardCommand(move=each))


def edit(lab: Lab, name: str, expression: str) -> None:
    node = next(n for n in lab.backward.under_way.stepper.plan if n.name == name)
    send(lab, EditGradientCommand(node=node.id, expression=expression))


def checked(lab: Lab, folder: Path, *expressions: str) -> str:
    """The script leaves the same in these as the session has, and is returned."""
    text = exported(lab, folder / "backward.py").text
    found = run_here(text, folder / "backward.py")
    for expression in expressions:
        here = eval(expression, lab.console.namespace.variables)
        assert same(eval(expression, found), here), f"{expression}\n{text}"
    return text


def of_cells(*cells: str, root: str = "y") -> str:
    """The script of a pass that ran to its end."""
    lab = begun(*cells, root=root)
    move(lab, "end")
    return exported(lab).text


def test_a_pass_in_its_midst_is_written_to_its_end_and_says_where_it_stood() -> None:
    lab = begun(X, "y = x.sin().sum()")
    stood = "# In the lab it stood at node"
    assert stood not in exported(lab).text
    move(lab, "step")
    assert f"# Backward from y.\n{stood} 1 of 3.\n" in exported(lab).text
    move(lab, "step")
    assert f"{stood} 2 of 3." in exported(lab).text
    move(lab, "step")
    assert stood not in exported(lab).text


def test_the_gradient_of_a_gradient_that_grad_gave(tmp_path: Path) -> None:
    lab = begun(X, "y = (x**3).sum()", inputs=("x",), create_graph=True)
    move(lab, "end")
    send(lab, StartBackwardCommand(of="x", gradient="torch.arange(3.0)"))
    move(lab, "end")
    text = checked(lab, tmp_path, "x.grad")
    assert "(gradient_of_x,) = torch.autograd.grad(y, [x], create_graph=True)" in text
    assert "gradient_of_x.backward(gradient, retain_graph=True)" in text
    assert torch.equal(lab.console.namespace.variables["x"].grad, 6 * torch.arange(3.0))


@pytest.mark.parametrize("length", [29, 30])
def test_an_edit_names_its_node_by_a_label_unless_that_is_long(length: int) -> None:
    name = "h" * length
    lab = begun(X, f"{name} = x.sin()\ny = {name}.sum()")
    edit(lab, "SinBackward0", "g * 2")
    move(lab, "end")
    shown = "SinBackward0 (" + name + ")" if length < 30 else "SinBackward0"
    assert f'"""Changes what comes in at {shown}."""' in exported(lab).text


def test_an_edit_that_draws_random_numbers_draws_the_same_in_the_script(tmp_path: Path) -> None:
    lab = begun(X, "y = x.sin().sum()")
    edit(lab, "SinBackward0", "g + torch.randn_like(g)")
    move(lab, "end")
    text = checked(lab, tmp_path, "x.grad")
    assert "    with torch.random.fork_rng():\n        torch.manual_seed(" in text
    assert "        g = g + torch.randn_like(g)\n    return (g,)" in text


def test_an_edit_of_one_of_several_outputs_leaves_the_others(tmp_path: Path) -> None:
    lab = begun(X, "a, b, c = (x * 2).unbind()\ny = a + 3 * b + 5 * c")
    node = next(n for n in lab.backward.under_way.stepper.plan if n.name == "UnbindBackward0")
    for output, expression in ((0, "g * 10"), (1, "g * 100"), (2, "g * 1000")):
        command = EditGradientCommand(node=node.id, expression=expression, output=output)
        send(lab, command)
    move(lab, "end")
    text = checked(lab, tmp_path, "x.grad")
    assert "    return (g * 10, *grads[1 :])" in text or "    return (g * 10, *grads[1:])" in text
    assert "g = grads[1]" in text and "g = grads[2]" in text
    assert lab.console.namespace.variables["x"].grad.tolist() == [20, 600, 10_000]


# -- random numbers


def test_a_cell_in_the_midst_of_a_pass_draws_the_same_in_the_script(tmp_path: Path) -> None:
    lab = begun(X, "y = x.sin().sum()")
    move(lab, "step")
    run(lab, "k = torch.rand(())\nx.register_hook(lambda g: g * k)")
    move(lab, "end")
    assert RESTORED in checked(lab, tmp_path, "x.grad", "k")


@pytest.mark.parametrize(("cell", "restored"), [
    ("x = torch.rand(3, requires_grad=True)", True),
    ("torch.manual_seed(3)\nx = torch.rand(3, requires_grad=True)", False),
    ("'''Seeded.'''\nimport math\nfrom math import pi\ndef f():\n    return 1\n"
     "torch.manual_seed(3)\nx = torch.rand(3, requires_grad=True)", False),
    ("k = 1\ntorch.manual_seed(3)\nx = torch.rand(3, requires_grad=True)", True),
    ("print(1)\ntorch.manual_seed(3)\nx = torch.rand(3, requires_grad=True)", True),
    ("torch.manual_seed(1 + 2)\nx = torch.rand(3, requires_grad=True)", True),
    ("np.random.seed(3)\nx = torch.rand(3, requires_grad=True)", True),
    ("np.random.seed(3)\nx = torch.tensor(np.random.rand(3)).requires_grad_()", False),
    ("torch.manual_seed(3)\nx = torch.tensor(np.random.rand(3)).requires_grad_()", True),
    ("import random\nrandom.seed(3)\nx = torch.tensor([random.random()]).requires_grad_()", False),
    ("import random\nx = torch.tensor([random.random()]).requires_grad_()", True),
])  # fmt: skip
def test_random_states_are_restored_unless_a_cell_seeds_first(
    cell: str, restored: bool, tmp_path: Path
) -> None:
    lab = begun(cell, "y = x.sin().sum()")
    move(lab, "end")
    assert (RESTORED in checked(lab, tmp_path, "x", "x.grad")) is restored


def test_a_state_that_the_script_has_reached_by_itself_is_not_restored_again(
    tmp_path: Path,
) -> None:
    cells = ("r = torch.rand(3)", "s = torch.rand(3)\ny = x @ (r + s)")
    for first, count in ((X, 1), (f"torch.manual_seed(1)\n{X}", 0)):
        lab = begun(first, *cells)
        move(lab, "end")
        assert checked(lab, tmp_path, "r", "s", "x.grad").count(RESTORED) == count


# -- the cells that are needed


@pytest.mark.parametrize(("cell", "kept"), [
    ("k = 3", False),
    ("def helper():\n    return x", True),
    ("x2 = x", True),
    ("import math", False),
    ("class x2:\n    y = 1", True),  # it may not change y, but it names it
    ("torch.set_printoptions(profile='default')", True),
    ("torch.get_default_dtype()", True),  # without any name: nothing tells what it does
    ("k = torch.get_default_dtype()", False),
    ("k = torch.backends.cpu.get_cpu_capability()", True),
    ("exec('k = 1')", True),
    ("k = globals()", True),
    ("from math import *", True),
    ("import math as y", True),
    ("k = torch.rand(1)", True),
])  # fmt: skip
def test_a_script_has_the_cells_on_which_the_pass_may_depend(cell: str, kept: bool) -> None:
    text = of_cells(X, cell, "y = x.sin().sum()")
    assert (cell in text) is kept


def test_what_needed_cells_need_is_needed_too() -> None:
    text = of_cells("a = 1", "b = a + 1", "c = b + 1", "other = 5", X + " * c", "y = x.sum()")
    for cell in ("a = 1", "b = a + 1", "c = b + 1"):
        assert cell in text
    assert "other" not in text
    assert text.index("a = 1") < text.index("b = a + 1") < text.index("c = b + 1")


def test_the_numbers_of_cells_and_lines_of_the_future_are_at_the_head() -> None:
    text = of_cells(
        f"from __future__ import annotations\nfrom __future__ import (\n    division,\n)\n{X}",
        "k = x * 2",
        "y = k.sum()",
    )
    assert text.count("from __future__ import annotations") == 1
    assert text.count("from __future__ import division") == 1
    assert text.index("division") < text.index("import torch")
    assert f"# Cell 1\n{X}\n" in text


@pytest.mark.parametrize("quotes", ["''", '""', "'''", '"""', "'''\"\"\""])
def test_a_cell_that_failed_is_repeated_to_where_it_did(quotes: str, tmp_path: Path) -> None:
    lab = console(X, "y = (x * 2).sum()")
    source = f"k = 3  # {quotes}\nx.register_hook(lambda g: g * k)\nmissing"
    lab.console.namespace.run(source, "<cell>", Output(lambda *_: None), lab.control)
    send(lab, StartBackwardCommand(root="y"))
    move(lab, "end")
    text = checked(lab, tmp_path, "x.grad")
    assert "except (Exception, SystemExit):  # NameError" in text
    assert "import traceback" in text


def test_the_file_or_folder_of_an_own_module_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "my_package"
    package.mkdir()
    (package / "__init__.py").write_text("two = 2\n")
    (package / "deep.py").write_text("three = 3\n")
    (tmp_path / "my_file.py").write_text("four = 4\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    text = of_cells(
        "import my_package.deep\nfrom my_file import four\nimport math\nimport numpy\n" + X,
        "y = (x * four * my_package.two * math.pi).sum()",
    )
    assert "Put beside it what it imports of yours: my_file.py, my_package/." in text


# -- the model


BLOCKS = (
    Block("i", "Input", "x", {"shape": (4,)}),
    Block("l", "nn.Linear", "linear1", {"in_features": 4, "out_features": 3}),
    Block("o", "Output", "output"),
)
WIRES = (Wire("i", "x", "l", "input"), Wire("l", "output", "o", "x"))


def of_model(loss: Any) -> Lab:
    lab = Lab(emit=lambda snapshot: None)
    x = torch.arange(8.0).reshape(2, 4) / 8
    live = LiveModel(Model(blocks=BLOCKS, wires=WIRES), seed=0)
    lab.models.forward = ForwardPass(live, x, torch.tensor([0, 1]), loss, seed=0)
    while not lab.models.forward.done:
        lab.models.forward.step()
    send(lab, StartBackwardCommand())
    move(lab, "end")
    return lab


@pytest.mark.parametrize(("loss", "written"), [
    (nn.CrossEntropyLoss(), "return F.cross_entropy(model(x), y)"),
    (nn.CrossEntropyLoss(reduction="sum", label_smoothing=0.25),
     'return F.cross_entropy(model(x), y, reduction="sum", label_smoothing=0.25)'),
    (nn.CrossEntropyLoss(ignore_index=1), "return F.cross_entropy(model(x), y, ignore_index=1)"),
    (make_loss("nn.MSELoss", {}), "return nn.MSELoss()(prediction, target)"),
    (make_loss("nn.SoftMarginLoss", {"reduction": "sum"}),
     "return nn.SoftMarginLoss(reduction='sum')(prediction, target)"),
    (nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 4.0])),
     "return nn.CrossEntropyLoss(weight=torch.tensor((1.0, 2.0, 4.0), device=prediction.device))"
     "(prediction, target)"),
    (nn.MultiMarginLoss(p=2), "return nn.MultiMarginLoss(p=2)(prediction, target)"),
    (F.cross_entropy, "return F.cross_entropy(model(x), y)"),
])  # fmt: skip
def test_a_loss_is_written_as_it_is_called(loss: Any, written: str, tmp_path: Path) -> None:
    lab = of_model(loss)
    text = exported(lab, tmp_path / "backward.py").text
    assert f"    {written}\n" in text
    model = run_here(text, tmp_path / "backward.py")["model"]
    for name, parameter in lab.models.forward.module.named_parameters():
        assert same(model.get_parameter(name).grad, parameter.grad), name


@pytest.mark.parametrize(("expression", "has_cells"), [("g * k", True), ("g * 3", False)])
def test_a_script_of_the_model_has_the_cells_that_its_edits_use(
    expression: str, has_cells: bool, tmp_path: Path
) -> None:
    lab = of_model(F.cross_entropy)
    run(lab, "k = 3.0")
    send(lab, StartBackwardCommand())
    edit(lab, "AddmmBackward0", expression)
    move(lab, "end")
    text = exported(lab, tmp_path / "backward.py").text
    assert ("k = 3.0" in text) is has_cells
    model = run_here(text, tmp_path / "backward.py")["model"]
    for name, parameter in lab.models.forward.module.named_parameters():
        assert same(model.get_parameter(name).grad, parameter.grad), name


def test_a_loss_of_ones_own_is_refused() -> None:
    lab = of_model(lambda prediction, y: prediction.sum())
    with pytest.raises(LabError, match="loss cannot be written") as refused:
        exported(lab)
    assert "catalogue" in refused.value.hint


@pytest.mark.parametrize(("set_to_none", "call"), [
    (True, "model.zero_grad()"), (False, "model.zero_grad(set_to_none=False)"),
])  # fmt: skip
def test_all_gradients_of_a_model_are_cleared_by_one_call(
    set_to_none: bool, call: str, tmp_path: Path
) -> None:
    lab = of_model(nn.CrossEntropyLoss())
    send(lab, ZeroGradientsCommand(set_to_none=set_to_none))
    text = exported(lab, tmp_path / "backward.py").text
    assert f"# zero_grad()\n{call}\n" in text
    model = run_here(text, tmp_path / "backward.py")["model"]
    for parameter in model.parameters():
        assert parameter.grad is None if set_to_none else not parameter.grad.any()


# -- layout


@pytest.mark.parametrize(("text", "name"), [
    ("net[0].weight", "net_0_weight"), ("Loss", "loss"), ("", "_"), ("0x", "_0x"),
    ("lambda", "_lambda"), ("_hidden_", "hidden"), ("ä + b", "ä_b"),
    ("gradient of w", "gradient_of_w"),
    ("a" * 40, "a" * 24), ("a" * 23 + "_b", "a" * 23),
])  # fmt: skip
def test_a_name_is_made_of_any_text(text: str, name: str) -> None:
    assert identifier(text) == name and name.isidentifier()


def test_a_with_statement_is_laid_out_as_by_a_formatter() -> None:
    assert with_statement([], "a\nb") == "a\nb"
    assert with_statement(["f()"], "a\nb") == "with f():\n    a\n    b"
    fits = WIDTH - len("with , b:")
    assert with_statement(["a" * fits, "b"], "c") == f"with {'a' * fits}, b:\n    c"
    longer = "a" * (fits + 1)
    assert with_statement([longer, "b"], "c") == f"with (\n    {longer},\n    b,\n):\n    c"
    alone = "a" * 2 * WIDTH  # a formatter cannot break one item
    assert with_statement([alone], "c") == f"with {alone}:\n    c"


def test_definitions_have_two_blank_lines_around_them() -> None:
    define = "def f():\n    pass"
    assert joined(["a = 1", "", "b = 2"]) == "a = 1\n\nb = 2\n"
    assert joined(["a = 1", define, "b = 2"]) == f"a = 1\n\n\n{define}\n\n\nb = 2\n"
    assert joined([define, "# only a comment", "b"]) == f"{define}\n\n\n# only a comment\n\nb\n"
    assert joined([f"a = 1\n{define}", "b"]) == f"a = 1\n{define}\n\n\nb\n"
    assert joined([]) == "\n"


@pytest.mark.parametrize(("text", "is_one"), [
    ("net[0].weight", True), ("leaf 3", False), ("x = 1", False), ("", False), ("a\0", False),
])  # fmt: skip
def test_expressions_are_told_from_other_texts(text: str, is_one: bool) -> None:
    assert is_expression(text) is is_one


# -- what was done in a pass


@pytest.mark.parametrize(("point", "words", "hook"), [
    (Breakpoint(on="op", target="sin"), "before nodes of sin", True),
    (Breakpoint(on="node", target="1"), "before node 1", True),
    (Breakpoint(on="op", target="sin", enabled=False), "before nodes of sin (off)", True),
    (Breakpoint(on="op", target="cos"), "before nodes of cos", False),  # there is none
    (Breakpoint(on="op", target="sin", condition="norm_above", threshold=2), "", False),
    (Breakpoint(condition="not_finite"), "any node where NaN or inf comes in", False),
])  # fmt: skip
def test_a_breakpoint_is_a_comment_with_a_hook_where_its_node_is_known(
    point: Breakpoint, words: str, hook: bool
) -> None:
    lab = begun(X, "y = x.sin().sum()")
    send(lab, SetBreakpointsCommand(breakpoints=(point,)))
    move(lab, "end", "end")
    text = exported(lab).text
    assert f"# Breakpoint: {words}" in text
    line = '# find_node("SinBackward0", 1, y).register_prehook(lambda grads: breakpoint())'
    assert (line in text) is hook and (text.count("breakpoint()") == int(hook))


def test_going_back_over_a_retained_gradient_undoes_a_zero_grad_there(tmp_path: Path) -> None:
    lab = begun(X, "h = x.sin()\nh.retain_grad()\ny = h.sum()")
    move(lab, "end")
    send(lab, StartBackwardCommand(root="y"))
    move(lab, "step", "step")
    assert lab.console.namespace.variables["h"].grad.tolist() == [2, 2, 2]
    send(lab, ZeroGradientsCommand())
    assert lab.console.namespace.variables["h"].grad is None
    move(lab, "back", "back", "end")
    assert lab.console.namespace.variables["h"].grad.tolist() == [2, 2, 2]
    checked(lab, tmp_path, "h.grad", "x.grad")


def test_a_zero_grad_that_going_back_has_undone_is_not_in_the_script(tmp_path: Path) -> None:
    lab = begun(X, "y = x.sin().sum()")
    move(lab, "end")
    send(lab, ZeroGradientsCommand())
    move(lab, "reset", "end")
    assert "zero_grad" not in checked(lab, tmp_path, "x.grad")
