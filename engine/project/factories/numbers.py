"""Numbers, sizes and nested lists as people type them, and as Python that makes them."""

from __future__ import annotations

import ast
import re


class FieldError(ValueError):
    """A mistake in one field, in words."""

    def __init__(self, field_name: str, message: str) -> None:
        super().__init__(message)
        self.field_name = field_name


def parse_size(name: str, text: str) -> tuple[int, ...]:
    """Sizes of dimensions: `2, 3`, `(2, 3)` or `2 x 3`; an empty text is a scalar's, `()`."""
    inside = re.sub(r"(?<=\w)\s*,$", "", text.strip("()[] "))
    parts = re.split(r"\s*[x×,]\s*|\s+", inside) if inside else []
    if "" in parts:
        raise FieldError(name, f"{name} takes sizes such as (2, 3), not {text.strip()}.")
    return tuple(parse_integer(name, part, 0) for part in parts)


def parse_integer(name: str, text: str, least: int | None = None) -> int:
    """Raises FieldError for a text that is not a whole number, or one less than `least`."""
    if not re.fullmatch(r"[+-]?\d{1,18}", text):
        raise FieldError(name, f"{name} takes whole numbers, not {text or 'nothing'}.")
    value = int(text)
    if least is not None and value < least:
        raise FieldError(name, f"{name} cannot be less than {least}.")
    return value


def parse_number(name: str, text: str) -> tuple[str, str]:
    """(source, dtype) of one number."""
    tree = _parsed(name, text, "a number, such as 0.5, -3, inf or 1+2j")
    return _element(name, tree)


def parse_nested(name: str, text: str) -> tuple[str, str]:
    """(source, dtype) of nested lists of one shape."""
    tree = _parsed(name, text, "nested lists, such as [[1, 2], [3, 4]]")
    dtypes: set[str] = set()
    _shape_of(name, tree, dtypes)
    order = ("complex64", "float32", "int64", "bool")
    dtype = next((dtype for dtype in order if dtype in dtypes), "float32")
    return _Constants().source(tree), dtype


def _parsed(name: str, text: str, wanted: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FieldError(name, f"{name} takes {wanted}.") from None


def _shape_of(name: str, node: ast.expr, dtypes: set[str]) -> tuple[int, ...]:
    if not isinstance(node, ast.List | ast.Tuple):
        dtypes.add(_element(name, node)[1])
        return ()
    shapes = [_shape_of(name, item, dtypes) for item in node.elts]
    for place, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise FieldError(
                name,
                f"Entry {place} is {_words(shape)} and entry 0 is {_words(shapes[0])}: all entries"
                " of a list need one shape.",
            )
    return (len(shapes), *(shapes[0] if shapes else ()))


def _words(shape: tuple[int, ...]) -> str:
    if not shape:
        return "a number"
    if len(shape) == 1:
        return f"a list of {shape[0]}"
    return f"a list of shape {shape}"


def _element(name: str, node: ast.expr) -> tuple[str, str]:
    source = _Constants().source(node)
    if "torch." in source:
        if re.fullmatch(r"-?torch\.(inf|nan)", source):
            return source, "float32"
    else:
        try:
            value = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError):
            value = None
        kinds = {bool: "bool", int: "int64", float: "float32", complex: "complex64"}
        if type(value) in kinds:
            return source, kinds[type(value)]
    raise FieldError(name, f"{ast.unparse(node)} is not a number. inf, nan and 1+2j are.")


class _Constants(ast.NodeTransformer):
    """`inf` and `nan` as torch's."""

    def source(self, node: ast.expr) -> str:
        return ast.unparse(self.visit(ast.parse(ast.unparse(node), mode="eval")))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in ("inf", "nan"):
            return node
        return ast.Attribute(ast.Name("torch", ast.Load()), node.id, ast.Load())
