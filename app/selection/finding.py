"""Finding the parts that a reference leads to: pure functions over what the window knows
already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.selection.known import Known, dotted, name_of_label, names_of, within
from app.selection.references import (
    Blocks,
    Call,
    Element,
    Line,
    Module,
    Node,
    Parameter,
    Reference,
    StorageCell,
)
from engine.protocol import MODEL_FILE, GraphNode, GraphSnapshot, SourceLine

# -- from a reference to the parts of the subject --------------------------------------------------


def parameter_of(reference: Reference | None, known: Known) -> str | None:
    """The subject's parameter that a reference is, or whose leaf it is."""
    match reference:
        case Parameter(name):
            return name
        case Node():
            node = known.node(reference)
            is_leaf = node is not None and node.kind == "leaf"
            return name_of_label(node.label, known) if node is not None and is_leaf else None
        case Element(expression) | StorageCell(expression):
            name = within(dotted(expression), known.console_path)
            return name if name and _is_weight(name, known) else None
    return None


def _is_weight(name: str, known: Known) -> bool:
    if known.structure is not None and any(row.name == name for row in known.structure.weights):
        return True
    nodes = known.graph.nodes if known.graph is not None else ()
    return any(n.kind == "leaf" and name_of_label(n.label, known) == name for n in nodes)


def module_of(reference: Reference | None, known: Known) -> str | None:
    """The path of the subject's module that a reference is, or is in."""
    match reference:
        case Module(path):
            return path
        case Blocks((block,)):
            return next((b.name for b in known.project.model.blocks if b.id == block), None)
        case Call(number, trace):
            if known.trace is None or known.trace.reply_to != trace:
                return None
            return within(known.trace.calls[number].module, known.trace_path())
        case Node():
            node = known.node(reference)
            return None if node is None else _module_of(node, known)
        case Element(expression) if within(dotted(expression), known.console_path) == "":
            return ""
    name = parameter_of(reference, known)
    return None if name is None else name.rpartition(".")[0]


def _module_of(node: GraphNode, known: Known) -> str | None:
    """The module that made a node. That of a leaf is told by its name: tied ones have several."""
    if node.kind == "leaf":
        name = name_of_label(node.label, known)
        return None if name is None else name.rpartition(".")[0]
    return within(node.module, known.graph_path()) if node.module else None


def blocks_of(reference: Reference | None, known: Known) -> tuple[str, ...]:
    """The canvas's blocks that a reference is, or is in; none while the subject is code."""
    if known.project.subject.is_code:
        return ()
    blocks = known.project.model.blocks
    match reference:
        case Blocks(ids):
            there = {block.id for block in blocks}
            return tuple(each for each in ids if each in there)
        case Node():
            node = known.node(reference)
            made = node.block if node is not None else None
            return tuple(block.id for block in blocks if block.id == made)
        case Line(file, line) if file == MODEL_FILE and known.model is not None:
            found = [block for block, lines in known.model.lines.items() if line in lines]
            return tuple(found[:1])
    path = module_of(reference, known)
    if not path:
        return ()
    return tuple(block.id for block in blocks if within(path, block.name) is not None)[:1]


# -- to the graph, the lines, the trace, the console -----------------------------------------------


def nodes_of(reference: Reference | None, known: Known) -> tuple[int, ...]:
    """The ids of the graph's nodes that a reference leads to."""
    graph = known.graph
    if graph is None or reference is None:
        return ()
    return tuple(_nodes_of(reference, known, graph))


def _nodes_of(reference: Reference, known: Known, graph: GraphSnapshot) -> Iterator[int]:
    match reference:
        case Node():
            if known.node(reference) is not None:
                yield reference.id
        case Blocks(ids):
            yield from (node.id for node in graph.nodes if node.block in ids)
        case Module(path):
            for node in graph.nodes:
                if within(_module_of(node, known), path) is not None:
                    yield node.id
        case Parameter(name):
            names = names_of(name, known)
            for node in graph.nodes:
                if node.kind == "leaf" and name_of_label(node.label, known) in names:
                    yield node.id
        case Line(file, line):
            for node in graph.nodes:
                at = node.source
                if at is not None and at.file == file and line in (0, at.line):
                    yield node.id
        case Call(number, trace):
            if known.trace is not None and known.trace.reply_to == trace:
                yield from _nodes_of_call(number, known, graph)
        case Element(expression) | StorageCell(expression):
            yield from _nodes_of_tensor(expression, known, graph)


def _nodes_of_call(number: int, known: Known, graph: GraphSnapshot) -> Iterator[int]:
    """The nodes that this line, module or operator of the traced code made when it ran for the
    graph: those with its line, its module and its operator."""
    assert known.trace is not None
    call = known.trace.calls[number]
    line = known.trace.lines[call.line] if call.line >= 0 else None
    if not call.nodes:
        return
    for node in graph.nodes:
        if node.kind == "leaf" or not _same_line(node.source, line):
            continue
        if call.kind == "op" and node.aten != call.name:
            continue
        ours = within(call.module, known.trace_path())
        theirs = _module_of(node, known)
        if call.kind == "line" or ours is None or within(theirs, ours) is not None:
            yield node.id


def _same_line(one: SourceLine | None, other: SourceLine | None) -> bool:
    """Whether these are the same line, or one of them is not known."""
    return one is None or other is None or (one.file, one.line) == (other.file, other.line)


def _nodes_of_tensor(expression: str, known: Known, graph: GraphSnapshot) -> Iterator[int]:
    path = dotted(expression)
    if path is None:
        return
    own = within(path, known.console_path)
    names = names_of(own, known) if own else set()
    for node in graph.nodes:
        if node.kind == "leaf":
            is_it = name_of_label(node.label, known) in names or (
                graph.subject_path is None and dotted(node.label) == path
            )
        else:
            results = node.label.rpartition(" = ")[0].split(", ")
            is_it = path in map(dotted, results)
        if is_it:
            yield node.id


def leaf_named(reference: Reference | None, labels: Sequence[str], known: Known) -> str | None:
    """The label, among these of leaves, of the tensor that a reference names; None if none fits."""
    name = parameter_of(reference, known)
    names = names_of(name, known) if name is not None else set()
    path = dotted(reference.expression) if isinstance(reference, Element) else None
    for label in labels:
        if name_of_label(label, known) in names or (path and dotted(label) == path):
            return label
    return None


def module_box(reference: Reference | None, known: Known) -> str:
    """The graph's name for the module that is referred to; empty for any other reference."""
    around = known.graph_path()
    match reference:
        case Module(path) if around is not None:
            return ".".join(filter(None, (around, path)))
        case Blocks((_,)) if around is not None:
            return module_of(reference, known) or ""
    return ""


def calls_of(reference: Reference | None, known: Known) -> tuple[int, ...]:
    """The calls of the trace that a reference leads to."""
    trace = known.trace
    if trace is None or reference is None:
        return ()
    calls = enumerate(trace.calls)
    match reference:
        case Call(number, of):
            return (number,) if of == trace.reply_to else ()
        case Line(file, line):
            lines = {n for n, at in enumerate(trace.lines) if _is_at_line(at, file, line)}
            return tuple(n for n, call in calls if call.kind == "line" and call.line in lines)
        case Node():
            node = known.node(reference)
            if node is None:
                return ()
            if node.kind == "operation":
                return tuple(
                    n
                    for n, call in calls
                    if call.kind == "op"
                    and call.nodes
                    and call.name == node.aten
                    and _same_line(trace.lines[call.line] if call.line >= 0 else None, node.source)
                    and within(call.module, known.trace_path()) == _module_of(node, known)
                )
    path = module_of(reference, known)
    if path is None:
        return ()
    around = known.trace_path()
    return tuple(
        n for n, call in calls if call.kind == "module" and within(call.module, around) == path
    )


def _is_at_line(at: SourceLine, file: str, line: int) -> bool:
    return at.file == file and line in (0, at.line)


def lines_of(reference: Reference | None, known: Known) -> tuple[Line, ...]:
    """The lines of code that made what a reference is: of its nodes, or of the nodes that use a
    parameter."""
    match reference:
        case Line():
            return (reference,)
        case Call(number, of):
            trace = known.trace
            if trace is None or trace.reply_to != of or trace.calls[number].line < 0:
                return ()
            at = trace.lines[trace.calls[number].line]
            return (Line(at.file, at.line),)
    graph = known.graph
    if graph is None:
        return ()
    nodes = set(nodes_of(reference, known))
    leaves = {n for n in nodes if graph.nodes[n].kind == "leaf"}
    if leaves:
        nodes |= {edge.source for edge in graph.edges if edge.target in leaves}
    sources = (graph.nodes[node].source for node in sorted(nodes))
    return tuple(dict.fromkeys(Line(at.file, at.line) for at in sources if at is not None))


def expression_of(reference: Reference | None, known: Known) -> str:
    """The Python of the console for the tensor that a reference is; empty if there is none."""
    match reference:
        case Element(expression) | StorageCell(expression):
            return expression
        case Node():
            node = known.node(reference)
            if node is None or known.graph is None or known.graph.subject_path is not None:
                pass
            elif node.kind == "leaf":
                return node.label
            else:
                return node.label.rpartition(" = ")[0].partition(", ")[0]
    name = parameter_of(reference, known)
    return known.expression + _python_of(name, known) if name else ""


def _python_of(name: str, known: Known) -> str:
    """The Python after the subject's name that reaches a parameter."""
    rows = known.structure.weights if known.structure is not None else ()
    for row in rows:
        if row.name == name:
            return row.code
    return "".join(f"[{part}]" if part.isdecimal() else f".{part}" for part in name.split("."))
