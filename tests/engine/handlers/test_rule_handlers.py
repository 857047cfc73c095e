"""The window's questions about a node's rule, on the templates and on the console's graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.handlers import rules as rule_handlers
from engine.project.files import load
from engine.protocol import (
    BackwardMove,
    CheckRuleCommand,
    Command,
    ErrorSnapshot,
    GraphSnapshot,
    MoveBackwardCommand,
    RuleCheckSnapshot,
    RuleCommand,
    RuleOpsCommand,
    RuleOpsSnapshot,
    RuleSnapshot,
    RunCellCommand,
    StartBackwardCommand,
    StartForwardCommand,
    StartTraceCommand,
    encode_snapshot,
    join_graph,
)
from engine.server.session import Session

TEMPLATES = sorted((Path(__file__).parents[3] / "assets" / "templates").glob("*.tlab"))
MLP = next(path for path in TEMPLATES if path.stem == "mlp")


class Asked:
    """A session, and what it answers."""

    def __init__(self) -> None:
        self.answers = []
        self.session = Session(self.answers.append)

    def ask(self, command: Command, kind=None):
        self.answers.clear()
        self.session.handle(command)
        for answer in self.answers:
            assert len(encode_snapshot(answer)) < 256 * 1024
        if kind is None:
            return list(self.answers)
        found = [answer for answer in self.answers if isinstance(answer, kind)]
        assert found, self.answers
        return found[-1]

    def model(self, path: Path, move: BackwardMove | None = "end"):
        project = load(path)
        self.ask(StartForwardCommand(model=project.model, training=project.training))
        return self.begin(StartBackwardCommand(), move)

    def begin(self, command, move: BackwardMove | None = "end"):
        parts = [a for a in self.ask(command) if isinstance(a, GraphSnapshot)]
        if move:
            self.ask(MoveBackwardCommand(move=move))
        return join_graph(parts)

    def console(self, source: str, move: BackwardMove | None = "end"):
        """The graph of `y` after these lines."""
        self.ask(RunCellCommand(source=f"import torch\n{source}"))
        return self.begin(StartBackwardCommand(root="y"), move)


@pytest.fixture
def asked():
    found = Asked()
    yield found
    found.session.close()


def node_named(graph, name):
    return next(node.id for node in graph.nodes if node.name == name)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda p: p.stem)
def test_every_node_of_every_template_tells_its_rule(asked, path):
    graph = asked.model(path)
    for node in graph.nodes:
        rule = asked.ask(RuleCommand(node=node.id), RuleSnapshot)
        assert rule.words and rule.formula
        assert not rule.general, node.name
        if rule.numbers is None:
            assert rule.note
        else:
            assert rule.numbers.value == pytest.approx(rule.numbers.engine, rel=2e-3, abs=1e-6)
        if rule.max_difference is not None and rule.outgoing is not None:
            size = max(abs(rule.outgoing.summary.maximum), abs(rule.outgoing.summary.minimum))
            assert rule.max_difference <= 1e-3 * size + 1e-7


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda p: p.stem)
def test_every_rule_of_every_template_stands_the_check(asked, path):
    graph = asked.model(path)
    checked = set()
    for node in graph.nodes:
        if node.kind == "leaf" or node.op in checked:
            continue
        check = asked.ask(CheckRuleCommand(node=node.id), RuleCheckSnapshot)
        if check.refused:
            assert "MkldnnRnnLayer" in node.name and "float64" in check.refused
            continue
        checked.add(node.op)
        assert check.passed, (node.name, check.elements[:3])
    assert len(checked) >= 3


def test_an_element_and_an_input_can_be_chosen(asked):
    graph = asked.model(MLP)
    node = node_named(graph, "AddmmBackward0")
    first = asked.ask(RuleCommand(node=node), RuleSnapshot)
    last = first.inputs[-1]
    element = tuple(size - 1 for size in last.shape)
    chosen = asked.ask(RuleCommand(node=node, input=last.number, element=element), RuleSnapshot)
    assert chosen.input == last.number and chosen.element == element
    assert chosen.numbers.lines[0].startswith(f"∂L/∂{last.label}[")
    assert chosen.outgoing.summary.shape == last.shape


def test_before_it_has_run_a_node_has_a_formula_and_no_numbers(asked):
    graph = asked.model(MLP, move=None)
    rule = asked.ask(RuleCommand(node=node_named(graph, "AddmmBackward0")), RuleSnapshot)
    assert rule.formula and rule.symbols and rule.numbers is None
    assert "has not run yet" in rule.note


def test_a_leaf_adds_to_its_grad(asked):
    graph = asked.model(MLP)
    leaf = next(node for node in graph.nodes if node.kind == "leaf")
    rule = asked.ask(RuleCommand(node=leaf.id), RuleSnapshot)
    assert rule.formula == f"{leaf.label}.grad ← {leaf.label}.grad + g"
    assert rule.numbers.lines[1].startswith("= nothing + ")
    assert rule.numbers.value == pytest.approx(rule.numbers.engine)


def test_the_ops_inside_are_listed_and_nothing_changes(asked):
    graph = asked.model(MLP)
    before = asked.ask(MoveBackwardCommand(move="end"))[-1].gradients
    ops = asked.ask(RuleOpsCommand(node=node_named(graph, "AddmmBackward0")), RuleOpsSnapshot)
    assert "aten::mm" in [op.name for op in ops.ops] and ops.note == ""
    leaf = next(node for node in graph.nodes if node.kind == "leaf")
    assert "leaf" in asked.ask(RuleOpsCommand(node=leaf.id), RuleOpsSnapshot).note
    assert asked.ask(MoveBackwardCommand(move="end"))[-1].gradients == before


def test_a_graph_of_the_console_has_rules_and_says_why_it_cannot_be_checked(asked):
    asked.ask(RunCellCommand(source="import torch\nx = torch.tensor([1., 3.], requires_grad=True)"))
    asked.ask(RunCellCommand(source="y = (x ** 3).sum()"))
    graph = asked.begin(StartBackwardCommand(root="y"))
    node = node_named(graph, "PowBackward0")
    rule = asked.ask(RuleCommand(node=node, element=(1,)), RuleSnapshot)
    assert rule.formula == "∂L/∂x = g · n · x^(n - 1)"
    assert rule.numbers.lines == (
        "∂L/∂x[1] = g[1] · n · x[1]^(n - 1)",
        "= 1 · 3 · 3^(3 - 1)",
        "= 27",
    )
    check = asked.ask(CheckRuleCommand(node=node), RuleCheckSnapshot)
    assert "not recorded" in check.refused and check.hint


def test_a_backward_that_hides_how_it_uses_the_gradient_has_no_numbers_rather_than_zero(asked):
    source = """\
import torch
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return g * 2
y = Double.apply(torch.ones(2, requires_grad=True)).sum()
"""
    asked.ask(RunCellCommand(source=source))
    graph = asked.begin(StartBackwardCommand(root="y"))
    node = node_named(graph, "DoubleBackward")
    rule = asked.ask(RuleCommand(node=node), RuleSnapshot)
    assert rule.numbers is None and "once_differentiable" in rule.note
    assert rule.outgoing.summary.maximum == 2


@pytest.mark.parametrize(
    "command",
    [
        RuleCommand(node=9999),
        RuleCommand(node=0, input=7),
        RuleCommand(node=1, element=(99, 99, 99)),
        CheckRuleCommand(node=9999),
        RuleOpsCommand(node=9999),
    ],
)
def test_bad_questions_get_an_error_with_a_hint(asked, command):
    asked.model(MLP)
    error = asked.ask(command, ErrorSnapshot).error
    assert error.message and error.hint


def test_without_a_pass_it_says_so(asked):
    assert "No backward pass" in asked.ask(RuleCommand(node=0), ErrorSnapshot).error.message


def test_a_node_that_has_not_run_has_nothing_to_check(asked):
    graph = asked.model(MLP, move=None)
    error = asked.ask(CheckRuleCommand(node=graph.nodes[0].id), ErrorSnapshot).error
    assert "not run yet" in error.message


def test_hooks_are_named_where_the_engines_figure_is_after_them(asked):
    source = "import torch\nx = torch.ones(2, requires_grad=True)\ny = (x * 3).sum()\n"
    hook = "y.grad_fn.next_functions[0][0].register_hook(lambda gi, go: (gi[0] * 2, gi[1]))\n"
    asked.ask(RunCellCommand(source=source + hook))
    graph = asked.begin(StartBackwardCommand(root="y"))
    rule = asked.ask(RuleCommand(node=node_named(graph, "MulBackward0")), RuleSnapshot)
    assert (rule.numbers.value, rule.numbers.engine) == (3.0, 6.0)
    assert rule.max_difference == 3.0 and "1 node hook" in rule.note


def test_traced_code_can_be_checked(asked):
    asked.ask(RunCellCommand(source="import torch\nx = torch.tensor([1., 3.], requires_grad=True)"))
    asked.ask(StartTraceCommand(source="y = (x ** 3).sum()"))
    graph = asked.begin(StartBackwardCommand(root="y"))
    check = asked.ask(CheckRuleCommand(node=node_named(graph, "PowBackward0")), RuleCheckSnapshot)
    assert check.passed and [e.analytic for e in check.elements] in ([3.0, 27.0], [27.0, 3.0])


def test_the_check_tells_of_how_many_elements_it_chose_some(asked):
    source = "import torch\nx = torch.ones(40, 50, requires_grad=True)\nw = torch.ones(50, 3)"
    asked.ask(RunCellCommand(source=f"{source}\nw.requires_grad_()"))
    asked.ask(StartTraceCommand(source="y = (x @ w).sum()"))
    graph = asked.begin(StartBackwardCommand(root="y"))
    check = asked.ask(CheckRuleCommand(node=node_named(graph, "MmBackward0")), RuleCheckSnapshot)
    assert check.counts == {"a": 2000, "b": 150} and len(check.elements) < 2150


def test_in_the_real_engine_the_last_step_has_its_rule_and_cannot_run_twice(asked):
    project = load(MLP)
    asked.ask(StartForwardCommand(model=project.model, training=project.training))
    asked.ask(StartBackwardCommand(real_engine=True))
    step = asked.ask(MoveBackwardCommand(move="step"))[-1].step
    rule = asked.ask(RuleCommand(node=step.node), RuleSnapshot)
    assert rule.formula and "hook" not in rule.note
    error = asked.ask(RuleOpsCommand(node=step.node), ErrorSnapshot).error
    assert "real engine" in error.message
    assert asked.ask(CheckRuleCommand(node=step.node), RuleCheckSnapshot).passed


def test_gradients_with_a_graph_of_their_own_have_rules_too(asked):
    asked.ask(RunCellCommand(source="import torch\nx = torch.tensor(3., requires_grad=True)"))
    asked.ask(RunCellCommand(source="y = x ** 3"))
    graph = asked.begin(StartBackwardCommand(root="y", create_graph=True))
    rule = asked.ask(RuleCommand(node=node_named(graph, "PowBackward0")), RuleSnapshot)
    assert rule.numbers.lines[-1] == "= 27" and rule.max_difference == 0
    asked.ask(RunCellCommand(source="z = x.grad"))
    graph = asked.begin(StartBackwardCommand(root="z"))
    names = {node.name for node in graph.nodes}
    assert "MulBackward0" in names and "PowBackward0" in names
    for node in graph.nodes:
        assert asked.ask(RuleCommand(node=node.id), RuleSnapshot).formula


def test_gradients_too_large_to_look_through_are_said_to_be_so(asked, monkeypatch):
    graph = asked.model(MLP)
    monkeypatch.setattr(rule_handlers, "MAX_SINGLED_OUT", 10)
    monkeypatch.setattr(rule_handlers, "MAX_COMPARED", 10)
    node = node_named(graph, "TBackward0")
    rule = asked.ask(RuleCommand(node=node), RuleSnapshot)
    assert rule.numbers is None and "too many" in rule.note
    assert rule.max_difference is None and rule.outgoing is not None


def test_an_input_that_gets_no_gradient_is_refused(asked):
    graph = asked.console("y = (torch.ones(2) * torch.ones(2, requires_grad=True)).sum()")
    node = node_named(graph, "MulBackward0")
    rule = asked.ask(RuleCommand(node=node), RuleSnapshot)
    assert rule.input == 1 and [each.number for each in rule.inputs] == [1]
    error = asked.ask(RuleCommand(node=node, input=0), ErrorSnapshot).error
    assert error.message == "Input 0 of MulBackward0 gets no gradient."
    assert error.hint == "These do: 1."
    error = asked.ask(RuleCommand(node=len(graph.nodes)), ErrorSnapshot).error
    assert error.message == f"There is no node {len(graph.nodes)} in the graph."
    assert "no node -1" in asked.ask(RuleCommand(node=-1), ErrorSnapshot).error.message


def test_a_leaf_adds_to_the_grad_that_is_there(asked):
    source = """\
x = torch.tensor([[1., 3., -2.]], requires_grad=True)
x.grad = torch.tensor([[0.5, 0.25, 1.]])
y = (x * torch.tensor([[0., 2., -4.]])).sum()
"""
    graph = asked.console(source, move=None)
    leaf = next(node.id for node in graph.nodes if node.kind == "leaf")
    before = asked.ask(RuleCommand(node=leaf), RuleSnapshot)
    assert before.numbers is None and before.element is None and "not run yet" in before.note
    assert (before.inputs[0].shape, before.symbols[0].shape) == ((1, 3), (1, 3))
    asked.ask(MoveBackwardCommand(move="end"))
    rule = asked.ask(RuleCommand(node=leaf), RuleSnapshot)
    assert rule.element == (0, 1) and rule.note == ""  # the first that is not zero
    assert rule.numbers.lines == (
        "x.grad[0, 1] = x.grad[0, 1] before + g[0, 1]", "= 0.25 + 2", "= 2.25",
    )  # fmt: skip
    assert (rule.numbers.value, rule.numbers.engine, rule.numbers.terms) == (2.25, 2.25, 2)
    assert rule.outgoing.summary.maximum == 2.25
    last = asked.ask(RuleCommand(node=leaf, element=(0, 2)), RuleSnapshot).numbers
    assert (last.value, last.engine) == (-3.0, -3.0)
    for element in ((0,), (0, 3), (0, -1), (1, 0)):
        error = asked.ask(RuleCommand(node=leaf, element=element), ErrorSnapshot).error
        assert error.message == (
            f"There is no element {list(element)} in a gradient of shape (1, 3)."
        )
    asked.ask(RunCellCommand(source="x.grad[0, 1] = -7"))
    told = asked.ask(RuleCommand(node=leaf), RuleSnapshot).numbers
    assert (told.value, told.engine) == (2.25, 2.25)  # what the pass has left there


def test_of_complex_gradients_the_absolute_values_are_told(asked):
    graph = asked.console(
        "x = torch.tensor([3 + 4j], requires_grad=True)\ny = (x * x.conj()).real.sum()"
    )
    for node in graph.nodes:
        if node.kind == "leaf":
            numbers = asked.ask(RuleCommand(node=node.id), RuleSnapshot).numbers
            assert (numbers.value, numbers.engine) == (10.0, 10.0)  # of 6 + 8j
            assert numbers.lines[-1] == "= (6+8j)"
        elif node.name == "ConjBackward0":
            numbers = asked.ask(RuleCommand(node=node.id), RuleSnapshot).numbers
            assert (numbers.value, numbers.engine) == (5.0, 5.0)


def test_a_gradient_that_is_undefined_or_empty_has_no_numbers(asked):
    source = """\
class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        return x + w
    @staticmethod
    def backward(ctx, g):
        return g, None
x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
y = Half.apply(x, w).sum()
"""
    node = node_named(asked.console(source), "HalfBackward")
    rule = asked.ask(RuleCommand(node=node, input=1), RuleSnapshot)
    assert rule.numbers is None and rule.outgoing is None and "undefined" in rule.note
    graph = asked.console("x = torch.ones(0, 2, requires_grad=True)\ny = x.exp().sum()")
    rule = asked.ask(RuleCommand(node=node_named(graph, "ExpBackward0")), RuleSnapshot)
    assert rule.note == "The gradient has no elements." and rule.numbers is None
    assert rule.outgoing.summary.shape == (0, 2)
    rule = asked.ask(RuleCommand(node=graph.nodes[-1].id), RuleSnapshot)
    assert rule.numbers is None and rule.note == "" and rule.outgoing is None


def test_the_limits_count_all_gradients_and_are_allowed(asked, monkeypatch):
    graph = asked.console(
        "x = torch.ones(2, 3, requires_grad=True)\ny = (x.exp() * torch.eye(3)[1:]).sum()"
    )
    node = node_named(graph, "ExpBackward0")
    for most, is_told in ((12, True), (11, False)):  # 6 come in, and 6 go out
        monkeypatch.setattr(rule_handlers, "MAX_SINGLED_OUT", most)
        rule = asked.ask(RuleCommand(node=node), RuleSnapshot)
        assert (rule.numbers is not None) == is_told and rule.element == (0, 1)
        assert ("the gradients have 12 elements" in rule.note) != is_told
    for most, is_told in ((6, True), (5, False)):
        monkeypatch.setattr(rule_handlers, "MAX_COMPARED", most)
        rule = asked.ask(RuleCommand(node=node), RuleSnapshot)
        assert rule.max_difference == (0.0 if is_told else None)


def test_the_check_begins_with_the_worst_and_ends_with_edges(asked):
    source = "import torch\nx = torch.tensor([0., 4., 1.], requires_grad=True)"
    asked.ask(RunCellCommand(source=source))
    asked.ask(StartTraceCommand(source="y = x.sqrt().sum()\nnode = y.grad_fn.next_functions[0][0]"))
    asked.ask(RunCellCommand(source="node.register_hook(lambda gi, go: (gi[0] * 3,))"))
    graph = asked.begin(StartBackwardCommand(root="y"))
    node = node_named(graph, "SqrtBackward0")
    check = asked.ask(CheckRuleCommand(node=node), RuleCheckSnapshot)
    assert check.op == "aten::sqrt" and not check.passed
    assert [each.verdict for each in check.elements] == ["wrong", "wrong", "edge"]
    errors = [each.difference / each.tolerance for each in check.elements[:2]]
    assert errors[0] > errors[1] and [each.element for each in check.elements] in (
        [(1,), (2,), (0,)], [(2,), (1,), (0,)],
    )  # fmt: skip
    assert any("has passed 1 node hook, which may have changed" in note for note in check.notes)
    ops = asked.ask(RuleOpsCommand(node=node), RuleOpsSnapshot)
    assert ops.note == "Hooks on this node ran as well: 1 node hook."
    div = next(op for op in ops.ops if op.name == "aten::div.Tensor")
    assert div.arguments[0].name == "g" and div.arguments[0].shape == (3,)
    assert div.arguments[0].text == "1, 1, 1" and div.arguments[0].dtype == "float32"
    assert div.results[0].name.startswith("%") and ops.more == 0


def test_the_lines_of_a_python_backward_are_told(asked):
    source = """\
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        g = g + 0
        return g * 2
y = Double.apply(torch.ones(2, requires_grad=True)).sum()
"""
    node = node_named(asked.console(source), "DoubleBackward")
    lines = asked.ask(RuleOpsCommand(node=node), RuleOpsSnapshot).lines
    assert [(each.line, each.text) for each in lines] == [
        (8, "g = g + 0"), (9, "return g * 2"),
    ]  # fmt: skip
    assert lines[0].ops and lines[1].ops and lines[0].file == lines[1].file
