"""Names of blocks: Python identifiers that become attributes of an nn.Module. No torch."""

from __future__ import annotations

import itertools
import keyword
import unicodedata
from collections.abc import Collection

RESERVED = frozenset(
    """
    T_destination add_module add_submodule apply bfloat16 buffers call_super_init children code
    compile cpu cuda delete_all_unused_submodules delete_submodule double dump_patches eval
    extra_repr float forward get_buffer get_extra_state get_parameter get_submodule graph half ipu
    load_state_dict modules mtia named_buffers named_children named_modules named_parameters
    parameters print_readable recompile register_backward_hook register_buffer
    register_forward_hook register_forward_pre_hook register_full_backward_hook
    register_full_backward_pre_hook register_load_state_dict_post_hook
    register_load_state_dict_pre_hook register_module register_parameter
    register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state
    set_submodule share_memory state_dict to to_empty to_folder train training type xpu zero_grad
    """.split()  # noqa: SIM905 - sixty quoted words read worse
)
"""Public attributes of torch.nn.Module and torch.fx.GraphModule: a submodule of such a name would
break the module. A test compares them with the installed torch."""

CODE_NAMES = frozenset({"self", "torch", "nn", "F", "Model"})
"""Names that the generated Python uses itself."""
CONSOLE_NAMES = ("torch", "nn", "F", "np")
"""Names of libraries that every cell has without an import."""


def identifier_problem(name: str) -> str | None:
    """Say in words why `name` can name no submodule in Python at all; None when it can."""
    if not name:
        return "A block needs a name."
    if not name.isidentifier():
        return (
            f"“{name}” is not a valid Python name: use letters, digits and underscores, and"
            " do not start with a digit."
        )
    plain = unicodedata.normalize("NFKC", name)
    if plain != name:
        return f"Python normalises “{name}” to “{plain}”: write “{plain}”."
    if keyword.iskeyword(name):
        return f"“{name}” is a Python keyword. Try “{name}_”."
    if name.startswith("_"):
        return "Names that start with an underscore belong to nn.Module: remove the underscore."
    return None


def name_problem(name: str, taken: Collection[str] = ()) -> str | None:
    """Say in words why `name` cannot name a block beside the names `taken`; None when it can."""
    if reason := identifier_problem(name):
        return reason
    if name in RESERVED:
        return f"“{name}” is already an attribute of nn.Module. Try “{name}1”."
    if name in CODE_NAMES:
        return f"“{name}” is used by the model's own code. Try “{name}1”."
    if name in taken:
        return (
            f"Another block is named “{name}”. Names must be unique: they are keys of the"
            " state_dict."
        )
    return None


def fresh_name(stem: str, taken: Collection[str]) -> str:
    """The first of `stem1`, `stem2`, ... that is not taken."""
    return next(name for n in itertools.count(1) if (name := f"{stem}{n}") not in taken)
