"""Answers about the rule of one node of the backward pass under way."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from msgspec import structs

from ..autograd.backward.backward_pass import BackwardPass
from ..autograd.backward.pass_code import cells_behind
from ..autograd.backward.stepping import Step
from ..autograd.formulas import MissingValue, Numbers, Rule, rule_of
from ..autograd.formulas.numbers import at, item, number_text
from ..autograd.graph.hooks import hooks_on
from ..autograd.graph.reading import Node
from ..autograd.graph.snapshot import title
from ..autograd.rules.finite_differences import RuleCheck, check_rule
from ..autograd.rules.operators import OpValue, ops_inside
from ..autograd.rules.recorded_operation import CannotCheck
from ..lab import Lab
from ..lab.pass_control import namespace_of
from ..protocol import (
    CheckedRuleElement,
    CheckRuleCommand,
    RuleCheckSnapshot,
    RuleCommand,
    RuleInput,
    RuleNumbers,
    RuleOp,
    RuleOpsCommand,
    RuleOpsSnapshot,
    RuleOpValue,
    RuleSnapshot,
    RuleSymbol,
    Snapshot,
)
from ..protocol import RuleLine as ShownLine
from ..recording.recording import Call
from ..system.errors import LabError
from ..tensors.compare import max_difference
from ..tensors.summary import value

_NOT_RUN = "It has not run yet, so there are no numbers: step backward until it has."
HELD = (
    "The real engine is paused inside backward, and cannot run a node a second time. Choose"
    " stepping node by node for this."
)
MAX_COMPARED = 1 << 22
"""Largest gradient, in elements, that the formula computes as a whole."""
MAX_SINGLED_OUT = 1 << 25
"""Largest number of incoming and outgoing elements for which the terms of one element are found."""


def tell_rule(lab: Lab, command: RuleCommand) -> Iterator[Snapshot]:
    """Answer with a RuleSnapshot. Raises LabError for a node, input or element that does not
    exist."""
    backward = lab.backward.require()
    node, step = _node_and_step(backward, command.node)
    if node.is_leaf:
        yield _leaf_rule(backward, node, step, command.element)
        return
    incoming = step.incoming if step is not None else (None,) * len(node.outputs)
    rule = rule_of(node, incoming)
    if not rule.inputs:
        raise LabError(f"No input of {node.name} needs a gradient.")
    number = rule.inputs[0] if command.input < 0 else command.input
    if number not in rule.inputs:
        raise LabError(
            f"Input {number} of {node.name} gets no gradient.",
            hint=f"These do: {', '.join(map(str, rule.inputs))}.",
        )
    snapshot = RuleSnapshot(
        node=node.id,
        name=node.name,
        words=rule.words,
        general=rule.general,
        inputs=tuple(_input(backward, node, rule, i) for i in rule.inputs),
        input=number,
        formula=rule.formula(number),
        symbols=rule.symbols(number),
        note=_NOT_RUN if step is None else "",
    )
    if step is not None:
        snapshot = _with_numbers(
            snapshot,
            rule,
            step,
            command.element,
            may_run=not backward.real_engine,
            hooks=_hooks(backward, node),
        )
    yield snapshot


def check_step(lab: Lab, command: CheckRuleCommand) -> Iterator[Snapshot | None]:
    """Answer with a RuleCheckSnapshot. Raises LabError if the node has not run."""
    backward = lab.backward.require()
    step = backward.control.step_of(command.node)
    node = step.node
    rule = rule_of(node, step.incoming)
    found: RuleCheck | None = None
    try:
        for each in check_rule(step, _call_of(backward, node)):
            found = each
            yield None
    except CannotCheck as refusal:
        code = cells_behind(backward, namespace_of(lab)) if refusal.unrecorded else ""
        yield RuleCheckSnapshot(node=node.id, refused=str(refusal), hint=refusal.hint, code=code)
        return
    assert found is not None
    notes = list(found.notes)
    if hooks := _hooks(backward, node):
        notes.append(
            f"The outgoing gradient has passed {hooks}, which may have changed it after the rule."
        )
    elements = sorted(
        found.elements,
        key=lambda e: (
            e.verdict == "edge",
            -(e.difference / e.tolerance if e.tolerance else 0.0),
        ),
    )
    yield RuleCheckSnapshot(
        node=node.id,
        op=found.op,
        elements=tuple(
            CheckedRuleElement(
                rule.label(e.input),
                e.element,
                e.analytic,
                e.numeric,
                e.difference,
                e.tolerance,
                e.verdict,
            )
            for e in elements
        ),
        counts={rule.label(i): count for i, count in found.counts.items()},
        notes=tuple(notes),
        passed=found.passed,
    )


def list_ops(lab: Lab, command: RuleOpsCommand) -> Iterator[Snapshot]:
    """Answer with a RuleOpsSnapshot. Raises LabError if the node has not run, or cannot run
    again."""
    backward = lab.backward.require()
    step = backward.control.step_of(command.node)
    node = step.node
    if node.is_leaf:
        yield RuleOpsSnapshot(
            node=node.id, note="Nothing runs inside a leaf: the gradient is added to its .grad."
        )
        return
    if backward.real_engine:
        raise LabError(HELD)
    with lab.control.user_code():
        found = ops_inside(node, step.incoming)
    hooks = _hooks(backward, node)
    yield RuleOpsSnapshot(
        node=node.id,
        ops=tuple(
            RuleOp(op.number, op.name, _shown(op.arguments), _shown(op.results)) for op in found.ops
        ),
        lines=tuple(ShownLine(each.file, each.line, each.text, each.ops) for each in found.lines),
        more=found.more,
        note=f"Hooks on this node ran as well: {hooks}." if hooks else "",
    )


# -- numbers -------------------------------------------------------------------------------------


def _with_numbers(
    snapshot: RuleSnapshot,
    rule: Rule,
    step: Step,
    element: tuple[int, ...] | None,
    *,
    may_run: bool,
    hooks: str,
) -> RuleSnapshot:
    number = snapshot.input
    outgoing = step.outgoing[number]
    if outgoing is None:
        return structs.replace(
            snapshot,
            note="No gradient came out for this input: it is undefined, which counts as zero.",
        )
    dense = outgoing.detach().to_dense() if outgoing.layout != torch.strided else outgoing.detach()
    shown = value(f"∂L/∂{rule.label(number)}", outgoing)
    if not dense.numel():
        return structs.replace(snapshot, outgoing=shown, note="The gradient has no elements.")
    if element is None:
        element = _first_element(dense)
    numbers, note = None, ""
    count = dense.numel() + sum(g.numel() for g in step.incoming if g is not None)
    try:
        if count > MAX_SINGLED_OUT:
            raise MissingValue(f"the gradients have {count:,} elements, too many to look through")
        numbers = rule.numbers(number, element, may_run=may_run)
    except IndexError as error:
        raise LabError(str(error), hint="Choose an element of the gradient.") from error
    except MissingValue as missing:
        note = f"No numbers: {missing}."
    except RuntimeError as error:
        note = f"No numbers: torch cannot differentiate this rule by itself ({error})."
    if hooks:
        note = f"{note} The engine's figures are after the hooks on this node: {hooks}.".strip()
    return structs.replace(
        snapshot,
        element=element,
        outgoing=shown,
        numbers=None if numbers is None else _numbers(numbers, item(dense[element])),
        max_difference=_difference(rule, number, dense),
        note=note,
    )


def _first_element(dense: torch.Tensor) -> tuple[int, ...]:
    """The index of the first element that is not zero, since it tells more; else of the first."""
    flat = dense.reshape(-1)
    place = int((flat != 0).to(torch.uint8).argmax())
    return tuple(int(i) for i in torch.unravel_index(torch.tensor(place), dense.shape))


def _numbers(found: Numbers, engine: complex) -> RuleNumbers:
    return RuleNumbers(found.lines, _real(found.value), _real(engine), found.terms)


def _real(number: complex) -> float:
    """A number as it is sent; of a complex one, the absolute value."""
    return abs(number) if isinstance(number, complex) else float(number)


def _difference(rule: Rule, number: int, expected: torch.Tensor) -> float | None:
    if expected.numel() > MAX_COMPARED:
        return None
    try:
        found = rule.compute(number)
    except MissingValue:
        return None
    return None if found is None else max_difference(found, expected)


def _leaf_rule(
    backward: BackwardPass, node: Node, step: Step | None, element: tuple[int, ...] | None
) -> RuleSnapshot:
    """The rule of a leaf: the gradient is added to its `.grad`."""
    name = title(node)
    rule = rule_of(node, ())
    shape = tuple(n if isinstance(n, int) else -1 for n in node.outputs[0].shape)
    snapshot = RuleSnapshot(
        node=node.id,
        name=node.name,
        words=rule.words,
        general=False,
        inputs=(RuleInput(0, name, f"{name}.grad", shape),),
        input=0,
        formula=f"{name}.grad ← {name}.grad + g",
        symbols=(RuleSymbol("g", "the incoming gradient", shape=shape),),
        note=_NOT_RUN if step is None else "",
    )
    gradient = step.incoming[0] if step is not None else None
    if gradient is None or not gradient.numel():
        return snapshot
    dense, before = gradient.detach().to_dense(), backward.stepper.grad_before(node)
    element = _first_element(dense) if element is None else element
    if len(element) != dense.dim() or any(
        not 0 <= i < n for i, n in zip(element, dense.shape, strict=True)
    ):
        raise LabError(
            f"There is no element {list(element)} in a gradient of shape {tuple(dense.shape)}.",
            hint="Choose an element of the gradient.",
        )
    old = 0.0 if before is None else item(before.to_dense()[element])
    total = old + item(dense[element])
    grad = at(f"{name}.grad", element)
    first = "nothing" if before is None else number_text(old)
    lines = (
        f"{grad} = {grad} before + {at('g', element)}",
        f"= {first} + {number_text(item(dense[element]))}",
        f"= {number_text(total)}",
    )
    after = backward.stepper.grad_after(node)
    shown = None if after is None else value(f"{name}.grad", after)
    engine = None if after is None else _real(item(after.detach().to_dense()[element]))
    return structs.replace(
        snapshot,
        element=element,
        numbers=RuleNumbers(lines, _real(total), engine, 2),
        outgoing=shown,
    )


# -- finding -------------------------------------------------------------------------------------


def _node_and_step(backward: BackwardPass, node_id: int) -> tuple[Node, Step | None]:
    nodes = backward.stepper.graph.nodes
    if not 0 <= node_id < len(nodes):
        raise LabError(
            f"There is no node {node_id} in the graph.", hint="Choose a node of the graph shown."
        )
    return nodes[node_id], backward.stepper.step_of(node_id)


def _input(backward: BackwardPass, node: Node, rule: Rule, number: int) -> RuleInput:
    fn, output = node.fn.next_functions[number]
    target = title(backward.stepper.graph.node_of(fn))
    shape = tuple(int(n) for n in fn._input_metadata[output].shape)
    return RuleInput(number, rule.label(number), target, shape)


def _hooks(backward: BackwardPass, node: Node) -> str:
    """The hooks that the user's code has registered on a node, in words."""
    return hooks_on(node, own=backward.stepper.own_hooks)


def _call_of(backward: BackwardPass, node: Node) -> Call | None:
    """The recorded call that made the node, from the model's pass or from a cell of the console."""
    chain = backward.subject.provenance.chain(node)
    return chain[-1] if chain else None


def _shown(values: tuple[OpValue, ...]) -> tuple[RuleOpValue, ...]:
    return tuple(RuleOpValue(v.name, v.shape, v.dtype, v.text) for v in values)
