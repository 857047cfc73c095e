"""What was done in passes as a script: it runs by itself, and the same bits come into `.grad`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.console.output import Output
from engine.errors import LabError
from engine.lab import Lab
from engine.project.files import load
from engine.protocol import (
    Breakpoint,
    EditGradientCommand,
    MoveBackwardCommand,
    SetBreakpointsCommand,
    StartBackwardCommand,
    StartForwardCommand,
    ZeroGradientsCommand,
)
from engine.session import handler_of
from tests.engine.autograd import backward_cases as cases
from tests.engine.autograd.backward.test_roots import TEMPLATES as PATHS
from tests.engine.autograd.backward.test_roots import ask, console, run
from tests.engine.autograd.script.script_runs import exported, run_apart, run_here, same

TEMPLATES = {path.stem: path for path in PATHS}
LABS: list[Lab] = []
FOLDER = Path()


@pytest.fixture(autouse=True)
def no_engine_stays_held(tmp_path_factory: pytest.TempPathFactory) -> Any:
    global FOLDER
    FOLDER = tmp_path_factory.mktemp("script")
    yield
    while LABS:
        LABS.pop().close()


def made(*cells: str) -> Lab:
    LABS.append(console(*cells))
    return LABS[-1]


def lab_of(path: Path) -> Lab:
    """A lab that stands before a forward pass of a template."""
    project = load(path)
    LABS.append(Lab(emit=lambda snapshot: None))
    send(LABS[-1], StartForwardCommand(model=project.model, training=project.training))
    return LABS[-1]


def send(lab: Lab, command: Any) -> Any:
    return ask(handler_of(type(command))(lab, command))[-1]


def start(lab: Lab, **options: Any) -> Any:
    return send(lab, StartBackwardCommand(**options))


def move(lab: Lab, where: Any, target: int = -1) -> Any:
    return send(lab, MoveBackwardCommand(move=where, target=target))


def edit(lab: Lab, name: str, expression: str, output: int = 0) -> None:
    """Edit what comes in at the first node of that name."""
    node = next(n for n in lab.backward.under_way.stepper.plan if n.name == name or n.label == name)
    send(lab, EditGradientCommand(node=node.id, expression=expression, output=output))


def value(lab: Lab, expression: str) -> Any:
    return eval(expression, lab.console.namespace.variables)


def check(lab: Lab, *expressions: str) -> str:
    """The script leaves the same in these as the session has, and is returned."""
    path = FOLDER / "backward.py"
    text = exported(lab, path).text
    found = run_here(text, path)
    for expression in expressions:
        assert same(eval(expression, found), value(lab, expression)), f"{expression}\n{text}"
    return text


# -- graphs of all kinds ---------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*(Sparse invariant|sparse gradient).*:UserWarning")
@pytest.mark.parametrize("name", cases.CASES)
def test_a_script_repeats_two_passes_with_edits_over_any_graph(name: str) -> None:
    lab = made(
        "from tests.engine.autograd.backward_cases import CASES",
        f"roots, compared = CASES[{name!r}]()",
    )
    count = len(value(lab, "roots"))
    start(lab, root=", ".join(f"roots[{i}]" for i in range(count)))
    editable = [n for n in lab.backward.under_way.stepper.plan if len(n.outputs) == 1]
    for node in (editable[len(editable) // 2], editable[-1]):
        send(lab, EditGradientCommand(node=node.id, expression="g if g is None else g * 1.5"))
    move(lab, "end")
    move(lab, "again")
    move(lab, "end")
    compared = [f"compared[{i}].grad" for i in range(len(value(lab, "compared")))]
    check(lab, *compared)


# -- by itself -------------------------------------------------------------------------------------


def test_the_derivatives_of_a_cube_as_a_script() -> None:
    lab = made("x = torch.tensor(3.0, requires_grad=True)\ny = x**3")
    start(lab, root="y", create_graph=True)
    move(lab, "end")
    for create_graph in (True, False):
        start(lab, of="x", create_graph=create_graph)
        move(lab, "end")
    assert value(lab, "x.grad").item() == 6.0
    text = check(lab, "x.grad").replace(f"({torch.get_num_threads()})", "(N)")
    assert (
        text
        == '''"""Backward passes of Tensor Lab in plain PyTorch, to the last bit of each .grad."""

import torch

torch.set_num_threads(N)  # as in the lab: it decides the last bits of sums

# Cell 1
x = torch.tensor(3.0, requires_grad=True)
y = x**3

# Backward from y.
y.backward(create_graph=True)

# Backward through the gradient of x.
gradient_of_x = x.grad
x.grad = None
gradient_of_x.backward(create_graph=True)

# Backward through the gradient of x.
gradient_of_x_2 = x.grad
x.grad = None
gradient_of_x_2.backward(retain_graph=True)

print("x.grad:", x.grad)
'''
    )


def test_a_script_is_formatted_and_readable() -> None:
    lab = made(
        "x = torch.linspace(-1, 1, 6).requires_grad_()\nscale = 3.0",
        "unrelated = torch.ones(3)",
        "h = x.sin()\ny = h * x.exp()",
        "print(y)",
    )
    points = (Breakpoint(on="op", target="exp"), Breakpoint(condition="not_finite"))
    send(lab, StartBackwardCommand(root="y", gradient="torch.arange(6.0)"))
    send(lab, SetBreakpointsCommand(breakpoints=points))
    edit(lab, "SinBackward0", "g.clamp(0, 2) * scale")
    edit(lab, "x", "g.mul_(0.5)")
    move(lab, "end")
    send(lab, ZeroGradientsCommand(set_to_none=False))
    move(lab, "again")
    move(lab, "end")
    text = check(lab, "x.grad")
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "--diff", "-"],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "unrelated" not in text
    body = text[text.index("# Cell 3") :]
    assert (
        body
        == '''# Cell 3
h = x.sin()
y = h * x.exp()

# Cell 4
print(y)


def edit_sin(grads):
    """Changes what comes in at SinBackward0 (h)."""
    g = grads[0]
    return (g.clamp(0, 2) * scale,)


def edit_x(grads):
    """Changes what comes in at AccumulateGrad (x)."""
    grads = tuple(None if g is None else g.clone() for g in grads)
    g = grads[0]
    return (g.mul_(0.5),)


# Backward from y.
gradient = torch.arange(6.0)
sin_node = find_node("SinBackward0", 1, y)
x_node = find_node("torch::autograd::AccumulateGrad", 1, y)
with sin_node.register_prehook(edit_sin), x_node.register_prehook(edit_x):
    y.backward(gradient, retain_graph=True)

# zero_grad()
for leaf in [x]:
    if leaf.grad is not None:
        leaf.grad = leaf.grad.detach().zero_()

# Once more, from the same roots.
# Breakpoint: before nodes of exp.
# find_node("ExpBackward0", 1, y).register_prehook(lambda grads: breakpoint())
# Breakpoint: any node where NaN or inf comes in.
with sin_node.register_prehook(edit_sin), x_node.register_prehook(edit_x):
    y.backward(gradient, retain_graph=True)

print("x.grad:", x.grad)
'''
    )


EVERYTHING = (
    "import random\nx = torch.randn(6, 3, requires_grad=True)\n"
    "x0 = torch.tensor(np.random.randn(6, 3), dtype=torch.float32) * random.random()",
    "class Twice(torch.autograd.Function):\n"
    "    @staticmethod\n"
    "    def forward(ctx, t):\n"
    "        return t * 2\n\n"
    "    @staticmethod\n"
    "    def backward(ctx, g):\n"
    "        return g * 2 + torch.rand(())\n",
    "from torch.utils.checkpoint import checkpoint",
    "net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))",
    "rate = 0.1\n"
    "for p in net.parameters():\n"
    "    @p.register_post_accumulate_grad_hook\n"
    "    def step(t):\n"
    "        with torch.no_grad():\n"
    "            t -= rate * t.grad\n",
    "h = Twice.apply(net(x + x0))\nh.retain_grad()\nh.register_hook(lambda g: g.clamp(-1, 1))",
    "with torch.autocast('cpu', dtype=torch.bfloat16):\n"
    "    loss = (h @ h.t()).float().square().sum()\n"
    "loss = loss + checkpoint(torch.sin, h, use_reentrant=False).sum()",
    "raise RuntimeError('this cell fails')",
)


def test_a_script_of_the_console_runs_where_only_torch_is_known() -> None:
    lab = made(*EVERYTHING[:-1])
    lab.console.namespace.run(EVERYTHING[-1], "<cell>", Output(_nothing), lab.control)
    start(lab, root="loss")
    edit(lab, "AddmmBackward0", "g + 0.1 * torch.randn_like(g)")
    move(lab, "step")
    run(lab, "rate = 0.01")  # in the midst of the pass
    move(lab, "end")
    run(lab, "loss = net(x).square().sum()  # from other weights and statistics")
    start(lab, root="loss", real_engine=True)
    move(lab, "end")
    parameters = [f"net.get_parameter({n!r})" for n, _ in value(lab, "net").named_parameters()]
    wanted = ["x", "h", "net[1].running_mean", *parameters]
    wanted += ["x.grad", "h.grad", *(f"{p}.grad" for p in parameters)]
    text = exported(lab, FOLDER / "backward.py").text
    assert str(FOLDER) not in text and "tensorlab" not in text
    found = run_apart(FOLDER / "backward.py", *wanted)
    for expression in wanted:
        assert same(found[expression], value(lab, expression)), expression
    assert value(lab, "x.grad") is not None


def test_a_script_of_the_model_runs_where_only_torch_is_known() -> None:
    lab = lab_of(TEMPLATES["lenet"])
    start(lab, create_graph=True)
    edit(lab, "ReluBackward0", "g * 2.0")
    move(lab, "end")
    start(lab, accumulate=True, real_engine=True)
    move(lab, "end")
    start(lab, accumulate=True)  # the graph is gone: the batch runs forward again
    name = next(n for n, _ in lab.models.forward.module.named_parameters())
    edit(lab, name, "g.clamp(-0.1, 0.1)")
    move(lab, "end")
    exported(lab, FOLDER / "backward.py")
    names = [n for n, _ in lab.models.forward.module.named_parameters()]
    found = run_apart(FOLDER / "backward.py", *(f"model.get_parameter({n!r}).grad" for n in names))
    for name, gradient in zip(names, found.values(), strict=True):
        assert same(gradient, lab.models.forward.module.get_parameter(name).grad), name


def test_a_script_does_not_overwrite_itself() -> None:
    lab = lab_of(TEMPLATES["mlp"])
    start(lab)
    with pytest.raises(LabError, match=r"pass\.pt is what the script loads") as refused:
        exported(lab, FOLDER / "pass.pt")
    assert refused.value.hint == "Give it a name that ends with .py."
    assert not list(FOLDER.iterdir())


def test_a_script_goes_to_the_device_of_the_pass_and_to_the_cpu_without_it() -> None:
    lab = lab_of(TEMPLATES["mlp"])
    start(lab)
    move(lab, "end")
    assert "device" not in exported(lab).text
    lab.models.forward.x = _OnCuda(lab.models.forward.x)
    text = exported(lab, FOLDER / "backward.py").text
    assert (
        'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
        "model = Model().to(device)\n"
        'x = data["x"].to(device)\n'
        'y = data["y"].to(device)\n'
    ) in text
    loaded = torch.load(FOLDER / "backward.pt", weights_only=True)
    assert {t.device.type for t in (*loaded["weights"].values(), loaded["x"])} == {"cpu"}
    if not torch.cuda.is_available():
        model = run_here(text, FOLDER / "backward.py")["model"]
        for name, parameter in model.named_parameters():
            assert same(parameter.grad, lab.models.forward.module.get_parameter(name).grad)


class _OnCuda(torch.Tensor):
    """A tensor of the CPU that says it is on a GPU."""

    @property
    def device(self) -> torch.device:  # pyright: ignore[reportIncompatibleVariableOverride]
        return torch.device("cuda", 0)

    def cpu(self, *_: Any, **__: Any) -> torch.Tensor:
        return self.as_subclass(torch.Tensor)


# -- what is in it ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gradient", "written"),
    [
        ("2", "torch.full_like(y, 2)"),
        ("[1, 2, 3]", "torch.as_tensor([1, 2, 3], dtype=y.dtype, device=y.device)"),
        ("torch.ones(3, dtype=torch.float64)", "torch.as_tensor(torch.ones(3, dtype"),
        ("v", "y.backward(v, retain_graph=True)"),
    ],
)
def test_whatever_a_pass_starts_with_is_written(gradient: str, written: str) -> None:
    lab = made("x = torch.ones(3, requires_grad=True)\ny = x * 2\nv = torch.ones(3)")
    start(lab, root="y", gradient=gradient)
    move(lab, "end")
    assert written in check(lab, "x.grad")


def test_a_pass_that_was_left_in_its_midst_ends_there() -> None:
    lab = made("x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)")
    run(lab, "y = (x.sin() * w).sum()")
    start(lab, root="y")
    move(lab, "leaf")
    start(lab, root="y")
    move(lab, "step")
    send(lab, ZeroGradientsCommand())
    run(lab, "x.register_hook(lambda g: g * 10)")
    move(lab, "end")
    text = check(lab, "x.grad", "w.grad")
    assert "with suppress(Stop), " in text and "def zero_grad(*_):" in text


@pytest.mark.parametrize("real_engine", [False, True])
def test_edits_and_custom_functions_see_the_default_dtype_of_the_console(real_engine) -> None:
    lab = made(
        "torch.set_default_dtype(torch.float64)",
        "class Tenth(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, t):\n"
        "        return t.clone()\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        "        return g * torch.full((), 0.1)",
        "x = torch.ones(2, requires_grad=True)\ny = (Tenth.apply(x) * 2).sum()",
    )
    start(lab, root="y", real_engine=real_engine)
    edit(lab, "MulBackward0", "g * torch.full((), 0.3)")
    move(lab, "end")
    assert value(lab, "x.grad").tolist() == [0.3 * 2 * 0.1] * 2
    assert torch.get_default_dtype() == torch.float32
    check(lab, "x.grad")


def test_a_gradients_graph_is_run_in_the_same_order_whoever_made_it() -> None:
    """torch runs the nodes of a graph by their numbers, and counts them by thread."""
    lab = made(
        "x = torch.tensor([0.5, -1.5, 2.0], requires_grad=True)",
        "w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)",
        "h = x * w\na, b, c = (h * h).unbind()\ny = (h**3).sum() + a * b\nz = h.sin() * x",
    )
    start(lab, root="z, y", gradient="torch.ones(3), None", create_graph=True, real_engine=True)
    move(lab, "end")
    run(lab, "later = (x * x).sum()")
    assert value(lab, "later").grad_fn._sequence_nr() > value(lab, "x.grad").grad_fn._sequence_nr()
    start(lab, of="x")
    move(lab, "end")
    check(lab, "x.grad", "w.grad")


def test_names_that_are_bound_anew_are_kept() -> None:
    lab = made("x = torch.tensor(3.0, requires_grad=True)\nmade = x\ny = x**3")
    start(lab, root="y", create_graph=True)
    move(lab, "end")
    run(lab, "x = torch.ones(3)\ny = None")
    move(lab, "again")
    move(lab, "end")
    start(lab, of="x")
    move(lab, "end")
    text = check(lab, "made.grad")
    assert "x_before = x\nroot = y\nroot.backward(create_graph=True)" in text


def test_cells_are_replayed_whole_whatever_their_text() -> None:
    lab = made(
        "from __future__ import annotations\n\ntext = '''two\nlines of \"\"\"text\"\"\"'''\n"
        "def scaled(t: torch.Tensor) -> torch.Tensor:\n    return t * len(text)",
        "x = torch.ones(2, requires_grad=True)  # kept: this comment",
    )
    run_failing = "note = '''\n  'as it is'\n'''\ny = scaled(x).sin().sum()\nraise ValueError"
    lab.console.namespace.run(run_failing, "<cell>", Output(_nothing), lab.control)
    lab.console.namespace.run(
        "x = = 3", "<cell>", Output(_nothing), lab.control
    )  # nothing of it ran
    start(lab, root="y")
    move(lab, "step")
    run(lab, 'kept = """\n  "in the midst"\n"""\nx.register_hook(lambda g: g * len(kept))')
    move(lab, "end")
    text = check(lab, "x.grad")
    assert "# kept: this comment" in text and "x = = 3" not in text
    found = run_here(text)
    for name in ("text", "note", "kept"):
        assert found[name] == value(lab, name), name


def test_an_imported_file_of_the_users_own_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    (FOLDER / "my_helpers.py").write_text("def twice(t):\n    return t * 2\n")
    monkeypatch.syspath_prepend(str(FOLDER))
    lab = made("from my_helpers import twice\nx = torch.ones(2, requires_grad=True)")
    run(lab, "y = twice(x).sum()")
    start(lab, root="y")
    move(lab, "end")
    text = check(lab, "x.grad")
    assert "Put beside it what it imports of yours: my_helpers.py." in text
    assert str(FOLDER) not in text


# -- what no script can do -------------------------------------------------------------------------


def refused(lab: Lab, words: str) -> None:
    with pytest.raises(LabError, match=f"No script can.*{words}") as raised:
        exported(lab)
    assert raised.value.hint


def test_what_no_script_can_do_is_said() -> None:
    lab = made("x = torch.ones(2, requires_grad=True)\ny = (x * 2).sin().sum()")
    start(lab, root="y")
    move(lab, "step")
    run(lab, "x.register_hook(lambda g: g * 2)")
    exported(lab)
    move(lab, "back")
    refused(lab, "Cell 2 ran while the pass stood at node 1, and the pass has gone back")

    lab = made("x = torch.ones(2, requires_grad=True)\ny = (x * 2).sin().sum()")
    start(lab, root="y")
    move(lab, "step")
    run(lab, "y.backward(retain_graph=True)")
    move(lab, "end")
    refused(lab, "Cell 2 runs backward in the midst of a pass")

    lab = made(
        "x = torch.ones(2, requires_grad=True)\ny = x.sum()",
        "@x.register_post_accumulate_grad_hook\ndef sgd(t):\n"
        "    with torch.no_grad():\n        t -= t.grad",
    )
    start(lab, root="y")
    move(lab, "end")
    exported(lab)
    move(lab, "back")
    refused(lab, "hooks of your own have changed x, and the pass went back")

    lab = made("x = torch.ones(2, requires_grad=True)\ny = x.sum()")
    run(lab, "x.register_hook(lambda g: g + torch.rand(2))")
    start(lab, root="y")
    move(lab, "end")
    exported(lab)
    move(lab, "back")
    move(lab, "end")
    refused(lab, "the pass drew random numbers, and has gone back")


def test_a_stopped_cell_that_has_nothing_to_do_with_the_pass_is_left_out() -> None:
    lab = made("x = torch.ones(2, requires_grad=True)\ny = F.dropout(x).sum()")
    unrelated = "noise = torch.randn(3)\nraise KeyboardInterrupt"
    lab.console.namespace.run(unrelated, "<cell>", Output(_nothing), lab.control)
    run(lab, "y = y + F.dropout(x).sum()")
    start(lab, root="y")
    move(lab, "end")
    assert "noise" not in check(lab, "x.grad")


def test_a_cell_that_was_stopped_is_named() -> None:
    lab = made("x = torch.ones(2, requires_grad=True)\ny = x.sum()")
    source = "x.grad = torch.ones(2)\nraise KeyboardInterrupt"
    lab.console.namespace.run(source, "<cell>", Output(_nothing), lab.control)
    start(lab, root="y")
    move(lab, "end")
    refused(lab, "Cell 2: it was stopped while it ran")


def _nothing(*_: Any) -> None:
    pass


@pytest.mark.parametrize(
    "cell",
    [
        "stop = find_node = suppress = Stop = traceback = get_gradient_edge = 3",
        "def stop(): return 1\nclass Stop: pass\nfrom builtins import print as suppress\n"
        "import math as find_node, math as get_gradient_edge\nfor traceback in range(2): pass",
    ],
)
def test_variables_of_the_users_may_have_the_names_of_the_scripts_helpers(cell: str) -> None:
    leaves = "x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)"
    lab = made(f"{cell}\n{leaves}")
    run(lab, "y = (x.sin() * w).sum()")
    start(lab, root="y")
    move(lab, "leaf")
    start(lab, root="y")
    edit(lab, "SinBackward0", "g * 2")
    output = Output(lambda told: None)
    error, _ = lab.console.namespace.run("x.missing", "<cell>", output, lab.control)
    assert isinstance(error, AttributeError)
    move(lab, "step")
    send(lab, ZeroGradientsCommand())
    move(lab, "end")
    text = check(lab, "x.grad", "w.grad")
    assert "suppress_2(Stop_2)" in text and "hook(stop_2)" in text
    assert "= find_node_2(" in text and "traceback_2.print_exc()" in text


def test_imports_that_the_user_makes_too_keep_their_names() -> None:
    lab = made("x = torch.ones(2, requires_grad=True)\nfrom contextlib import suppress")
    run(lab, "y = x.sin().sum()\nwith suppress(ValueError): int('a')")
    start(lab, root="y")
    move(lab, "step")
    start(lab, root="y")
    move(lab, "end")
    text = check(lab, "x.grad")
    assert "suppress_2" not in text
