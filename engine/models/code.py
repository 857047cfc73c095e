"""The Python of a model: an ordinary nn.Module that runs without this program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..project import catalogue, wiring
from ..project.document import Block, Model
from ..protocol import MODEL_FILE, TensorSpec, shape_text
from ..system.user_files import keep_source
from .build import BlockGraph, block_graph, has_module, has_valid_arguments
from .expressions import call, constructor, grouped, sample

Specs = Mapping[tuple[str, str], TensorSpec]


@dataclass
class Written:
    """A Python file, and the 1-based lines in it of each block (by id)."""

    text: str
    lines: dict[str, tuple[int, ...]]


def write(model: Model, specs: Specs) -> Written:
    """Return the file of a model, which may be unfinished.

    `specs` gives the shapes for the comments. A missing wire becomes a comment in the code.
    """
    page = _Page()
    try:
        graph = block_graph(model)
        order = [model.block(block_id) for block_id in wiring.topological_order(model)]
    except wiring.WiringError as error:
        graph, order = block_graph(Model(model.blocks)), list(model.blocks)
        page.add(f"# {error}")
    _Writer(model, graph, order, specs, page).file()
    lines = {block_id: tuple(found) for block_id, found in page.lines.items()}
    return Written("\n".join(page.text) + "\n", lines)


def block_places(text: str, lines: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[str, int]]:
    """The line that runs each block, as (MODEL_FILE, line), in a file from `write`. Until the next
    call, linecache has the text under that name."""
    keep_source(MODEL_FILE, text)
    written = text.splitlines()
    forward = next(n for n, line in enumerate(written, 1) if line.startswith("    def forward("))
    main = next((n for n, line in enumerate(written, 1) if line.startswith("if __name__")), None)
    places = {}
    for block_id, found in lines.items():
        inside = [n for n in found if n > forward and (main is None or n < main)]
        calls = [n for n in inside if "=" in written[n - 1]] or [
            n for n in found if written[n - 1].lstrip().startswith("loss =")
        ]
        if calls:
            places[block_id] = MODEL_FILE, calls[-1]
    return places


@dataclass
class _Page:
    text: list[str] = field(default_factory=list)
    lines: dict[str, list[int]] = field(default_factory=dict)

    def add(self, line: str = "", block: Block | None = None) -> None:
        self.text.append(line.rstrip())
        if block is not None:
            self.lines.setdefault(block.id, []).append(len(self.text))


class _Writer:
    def __init__(
        self, model: Model, graph: BlockGraph, order: list[Block], specs: Specs, page: _Page
    ) -> None:
        self.model, self.graph, self.order, self.specs, self.page = model, graph, order, specs, page
        self.names = _Names(model, graph, order)
        self.inputs = [block for block in order if block.kind == "Input"]
        self.loss = next((b for b in order if b.kind in catalogue.losses()), None)
        self.output = next((b for b in order if b.kind == "Output"), None)
        self.runs = graph.prediction is not None and bool(self.inputs)

    def file(self) -> None:
        add = self.page.add
        add(f'"""{self._summary()}"""')
        add()
        add("import torch")
        add("from torch import nn")
        add()
        add()
        add("class Model(nn.Module):")
        self._init()
        add()
        self._forward()
        if self.runs:
            add()
            add()
            self._main()

    def _summary(self) -> str:
        ends = wiring.prediction_of(self.model)
        if (
            ends
            and len(self.inputs) == 1
            and ends in self.specs
            and (self.inputs[0].id, "x") in self.specs
        ):
            start = shape_text(self.specs[self.inputs[0].id, "x"].shape)
            return f"A PyTorch model from {start} to {shape_text(self.specs[ends].shape)}."
        return "A PyTorch model."

    # -- __init__

    def _init(self) -> None:
        modules = [block for block in self.order if has_module(block)]
        self.page.add("    def __init__(self) -> None:")
        self.page.add("        super().__init__()")
        for block in modules:
            if has_valid_arguments(block):
                self.page.add(f"        self.{block.name} = {constructor(block)}", block)
            else:
                self.page.add(f"        # self.{block.name}: its arguments are not complete", block)

    # -- forward

    def _forward(self) -> None:
        arguments = ", ".join(f"{block.name}: torch.Tensor" for block in self.inputs)
        header = f"    def forward(self{', ' if arguments else ''}{arguments}) -> torch.Tensor:"
        self.page.add(header)
        for block in self.inputs:
            self.page.lines.setdefault(block.id, []).append(len(self.page.text))
            if comment := self._comment(block):
                self.page.add(f"        # {block.name}: {comment}", block)
        for block in self.order:
            kind = catalogue.kinds().get(block.kind)
            if kind is None:
                self.page.add(f"        # {block.name}: there is no block {block.kind}", block)
            elif kind.call in ("module", "function", "method"):
                self._block(block)
        self._return()

    def _block(self, block: Block) -> None:
        if block.id not in self.graph.nodes:
            self.page.add(f"        # {block.name}: {self._missing(block)}", block)
            return
        args = [self.names.of[node] for node in self.graph.inputs[block.id].values()]
        target = self._target(block)
        line = f"        {target} = {call(block, args)}"
        comment = self._comment(block)
        self.page.add(f"{line}  # {comment}" if comment else line, block)

    def _missing(self, block: Block) -> str:
        if not has_valid_arguments(block):
            return "its arguments are not complete"
        wired = {wire.target_port for wire in self.model.wires if wire.target == block.id}
        needed = [p.name for p in catalogue.ports(block)[0] if not p.optional]
        missing = [name for name in needed if name not in wired]
        if missing:
            return f"nothing is wired to {', '.join(missing)} yet"
        return "what comes before it is not complete"

    def _target(self, block: Block) -> str:
        outputs = catalogue.ports(block)[1]
        names = [self.names.of.get(self.graph.values[block.id, port.name], "_") for port in outputs]
        if len(names) == 1:
            return names[0]
        return ", ".join(grouped(outputs, names, lambda group: f"({', '.join(group)})"))

    def _return(self) -> None:
        add = self.page.add
        end = self.output or self.loss
        if self.graph.prediction is not None:
            if self.output is not None or self.loss is not None:
                add(f"        return {self.names.of[self.graph.prediction]}", end)
            return
        add(f"        # {'nothing is wired to the Output yet' if end else 'no Output yet'}", end)
        add('        raise NotImplementedError("the model is not complete")', end)

    def _comment(self, block: Block) -> str:
        """The shape of the first output: `(B, 10)`."""
        port = catalogue.ports(block)[1][0].name
        spec = self.specs.get((block.id, port))
        return shape_text(spec.shape) if spec else ""

    # -- main

    def _main(self) -> None:
        add = self.page.add
        add('if __name__ == "__main__":')
        add("    model = Model()")
        for block in self.inputs:
            add(f"    {block.name} = {sample(block)}", block)
        names = ", ".join(block.name for block in self.inputs)
        add(f"    y = model({names})")
        if self.loss is not None:
            add(f"    criterion = {constructor(self.loss)}", self.loss)
            target = _TARGETS[catalogue.kind(self.loss.kind).target]
            add(f"    loss = criterion(y, {target})", self.loss)
            add("    loss.backward()", self.loss)
        add("    print(model)")
        add('    print("output:", tuple(y.shape))')


_TARGETS = {
    "labels": "torch.randint(y.shape[1], (4,))",
    "numbers": "torch.rand_like(y)",
    "shares": "torch.rand_like(y)",
    "signs": "torch.rand_like(y).round() * 2 - 1",
    "lists": "torch.randint(y.shape[1], (4, y.shape[1]))",
}
"""A target of random numbers for each kind of loss, as in `kinds.Target`."""

# -- names ----------------------------------------------------------------------------------------


class _Names:
    """A variable name for each value. A name is used again as soon as nothing reads its old value.

    So a chain of blocks becomes `x = ...; x = ...`. A branch of it is called `h`, or as its block
    while `h` is taken.
    """

    def __init__(self, model: Model, graph: BlockGraph, order: list[Block]) -> None:
        self.of: dict = {}
        order = [block for block in order if block.id in graph.nodes]
        last_use = {graph.prediction: len(order)}
        for place, block in reversed(list(enumerate(order))):
            for node in graph.inputs[block.id].values():
                last_use.setdefault(node, place)
        block_names = {block.name for block in model.blocks}
        arguments = {block.name for block in order if block.kind == "Input"}
        live: dict[str, int] = {}  # variable -> position of the block that uses it last
        for place, block in enumerate(order):
            inputs = [self.of[node] for node in graph.inputs[block.id].values()]
            main, *others = graph.outputs(block)
            if block.kind == "Input":
                name = block.name
            else:
                free = [name for name in inputs if live.get(name, -1) <= place]
                free.sort(key=lambda name: name not in arguments)
                branch = "h" not in block_names and live.get("h", -1) <= place
                name = free[0] if free else "h" if branch else block.name
            used = main in last_use
            if used or not others:
                self.of[main] = name
                live[name] = last_use.get(main, place)
            for port, node in zip(catalogue.ports(block)[1][1:], others, strict=True):
                if node in last_use:
                    other = f"{block.name}_{port.name}"
                    while other in block_names:
                        other += "_"
                    self.of[node] = other
                    live[other] = last_use[node]
