"""Reads the parameters of every kind of block from the installed torch.

`python -m engine.models.signatures` writes them, with what is written by hand of each kind, to
`engine/project/catalogue.json`. From that file the window makes its forms before torch has loaded.
"""

from __future__ import annotations

import collections.abc
import inspect
import re
from typing import Any, Literal, get_args, get_origin

import msgspec
import torch
from torch import nn

from ..project.catalogue import PATH
from ..project.kinds import Param
from ..project.table import Row, complete, table

# Arguments that a form does not offer: devices are chosen in the training set-up, `inplace` would
# change a value after it was shown, and the others are deprecated or internal.
_LEFT_OUT = frozenset(
    (
        *("self", "params", "device", "dtype", "inplace", "return_indices", "size_average"),
        *("reduce", "foreach", "fused", "capturable", "differentiable"),
        *("_weight", "_freeze", "weight", "pos_weight"),
        # Of schedulers: the run sets them, or they are schedulers themselves.
        *("optimizer", "schedulers", "last_epoch", "epochs", "steps_per_epoch"),
    )
)
_OWN_CLASS = {torch.optim.Adam: "decoupled_weight_decay"}
"""With this argument a class is another one that there is, AdamW."""


def read() -> dict[str, tuple[Param, ...]]:
    """Return the parameters for each key of the catalogue, read from torch now."""
    params = {row.key: _params(row) for row in table().rows}
    for key in table().other_losses:
        params[key] = _class_params(getattr(nn, key.removeprefix("nn.")))
    for key in table().optimizers:
        params[key] = _class_params(getattr(torch.optim, key.removeprefix("optim.")))
    for key in table().schedulers:
        name = key.removeprefix("lr_scheduler.")
        params[key] = _class_params(getattr(torch.optim.lr_scheduler, name))
    return params


def text() -> str:
    """Return the text of `catalogue.json` for the installed torch."""
    data = msgspec.json.encode(complete(table(), read()))
    return msgspec.json.format(data, indent=1).decode() + "\n"


def _params(row: Row) -> tuple[Param, ...]:
    if row.schema:
        return _schema_params(row)
    if row.torch_name.startswith("torch.nn."):
        return _class_params(getattr(nn, row.torch_name.removeprefix("torch.nn.")))
    return ()


# -- modules and optimizers: Python signatures ----------------------------------------------------


def _class_params(cls: type) -> tuple[Param, ...]:
    docs = _docs(cls.__doc__ or "")
    parameters = [
        parameter
        for parameter in _signature(cls).parameters.values()
        if parameter.name not in _LEFT_OUT
        and parameter.name != _OWN_CLASS.get(cls)
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and not (isinstance(parameter.default, tuple) and None in parameter.default)
    ]
    return tuple(_class_param(parameter, docs) for parameter in parameters)


def _signature(cls: type) -> inspect.Signature:
    if issubclass(cls, nn.RNNBase):
        # nn.LSTM takes (*args, **kwargs). RNNBase names input_size and hidden_size; its `mode` is
        # set by the subclass.
        base = inspect.signature(nn.RNNBase.__init__, eval_str=True)
        kept = [p for p in base.parameters.values() if p.name != "mode"]
        if cls is not nn.LSTM:
            kept = [p for p in kept if p.name != "proj_size"]
        if cls is nn.RNN:
            keyword = inspect.Parameter.KEYWORD_ONLY
            kept.append(inspect.Parameter("nonlinearity", keyword, default="tanh"))
        return base.replace(parameters=kept)
    # torch imports some names of its annotations for type checkers only.
    return inspect.signature(cls.__init__, eval_str=True, locals=vars(collections.abc))


def _class_param(parameter: inspect.Parameter, docs: dict[str, tuple[str, str]]) -> Param:
    hint, doc = docs.get(parameter.name, ("", ""))
    required = parameter.default is inspect.Parameter.empty
    default = None if required else parameter.default
    annotation = parameter.annotation
    choices: tuple[str, ...] = ()
    if get_origin(annotation) is Literal:
        choices = get_args(annotation)
    words = str(annotation) if annotation is not inspect.Parameter.empty else hint
    if callable(default):
        default = default.__name__
    kind = "choice" if choices else _type_of(words, default)
    if kind == "float" and default is not None:
        default = float(default)
    return Param(
        name=parameter.name,
        type=kind,
        default=default,
        required=required,
        optional=not required and (default is None or "None" in words),
        choices=choices,
        doc=doc,
    )


def _type_of(words: str, default: Any) -> Any:
    """Return the ParamType for an annotation (or a docstring's words) and a default."""
    if isinstance(default, bool):
        return "bool"
    if isinstance(default, tuple):
        return "floats"
    if isinstance(default, str):
        return "str"
    if re.search(r"tuple|list|Size", words):
        return "floats" if "float" in words else "ints"
    for word in ("bool", "float", "int", "str"):
        if re.search(rf"\b{word}\b", words):
            return word
    return "float" if isinstance(default, float) else "int"


# -- functions: the schema of their ATen overload -------------------------------------------------

_SCHEMA_TYPES = {
    "int": "int",
    "number": "float",
    "Scalar": "float",
    "bool": "bool",
    "List[int]": "ints",
    "float": "float",
}


def _schema_params(row: Row) -> tuple[Param, ...]:
    name, _, overload = row.schema.partition(".")
    schema = getattr(getattr(torch.ops.aten, name), overload or "default")._schema
    function = getattr(torch.Tensor if row.call == "method" else torch, name)
    docs = _docs(function.__doc__ or "")
    if not docs:
        docs = _docs(getattr(torch, name).__doc__ or "")
    found = []
    for argument in schema.arguments:
        words = str(argument.type)
        optional = words.startswith("Optional")
        kind = _SCHEMA_TYPES.get(re.sub(r"Optional\[(.*)\]", r"\1", words))
        if kind is None or argument.name in _LEFT_OUT:
            continue
        if argument.name == "shape":
            kind = "shape"
        # In torch.amax `dim=[]` means all dimensions; the catalogue requires one.
        default = None if argument.default_value == [] else argument.default_value
        found.append(
            Param(
                name=argument.name,
                type=kind,  # pyright: ignore[reportArgumentType]
                default=default,
                required=not argument.has_default_value(),
                optional=optional,
                doc=docs.get(argument.name, ("", ""))[1],
            )
        )
    return tuple(found)


# -- docstrings -----------------------------------------------------------------------------------

_ENTRY = re.compile(r"^ {0,10}(\w+)(?: \(([^)]*(?:\([^)]*\)[^)]*)*)\))? ?: ?(.*)$")


def _docs(docstring: str) -> dict[str, tuple[str, str]]:
    """Return {argument: (words for its type, explanation)} from the Args sections."""
    found: dict[str, tuple[str, str]] = {}
    name, indent, inside = "", 0, False
    for line in inspect.cleandoc(docstring).splitlines():
        stripped = line.strip()
        if re.fullmatch(r"(Args|Arguments|Keyword args|Keyword Arguments|Parameters):", stripped):
            inside, name, indent = True, "", 0
            continue
        if not inside or not stripped:
            continue
        depth = len(line) - len(line.lstrip())
        match = _ENTRY.match(line)
        if depth == 0:
            inside = False
        elif match and (indent == 0 or depth == indent):
            name, indent = match[1], depth
            # The first entry wins: later sections of torch.mean describe other overloads.
            if name in found:
                name = ""
            else:
                found[name] = (match[2] or "", match[3])
        elif name:
            words, doc = found[name]
            found[name] = (words, f"{doc} {stripped}")
    return {name: (words, _plain(doc)) for name, (words, doc) in found.items()}


def _plain(doc: str) -> str:
    """Return reStructuredText as plain words, without what the form shows already."""
    doc = re.split(r"\.\. \w+::|See Notes", doc)[0]
    doc = re.sub(r":\w+:`~?([^`<]*?)(?: ?<[^`]*>)?`", r"\1", doc)
    doc = re.sub(r"\\(?:text|mathrm|operatorname)\{([^}]*)\}", r"\1", doc)
    doc = doc.replace("`_", "").replace("`", "").replace("\\times", "*").replace("\\", "")
    doc = re.sub(r"\(default: \([^)]*\)\)", "", doc)
    doc = re.sub(r"\(?[Dd]efaults?(?::| to| is) *[^\s.,;)]+(?:\.\d+)?\)?\.?", "", doc)
    doc = re.sub(r"\s*(?:A tensor LR|If a tensor) is.*", "", doc)
    doc = re.sub(r"\s+", " ", doc).strip(" ,;")
    doc = _shortened(doc[:1].upper() + doc[1:])
    return doc if not doc or doc.endswith((".", "!", "?")) else doc + "."


def _shortened(doc: str, limit: int = 240) -> str:
    """Return the first sentences of `doc`: as many as fit, but at least one."""
    kept, *more = re.split(r"(?<=[.!?]) (?=[A-Z])", doc)
    for sentence in more:
        if len(kept) + len(sentence) > limit:
            break
        kept += " " + sentence
    return kept


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
    print(f"wrote {PATH}")
