"""A backward pass as code: the console's cells behind its graph, and the call of backward()."""

from __future__ import annotations

from ...console.namespace import Namespace
from ...system.errors import LabError
from .backward_pass import BackwardPass


def cells_behind(stepped: BackwardPass, namespace: Namespace) -> str:
    """The cells of `namespace` on which the graph may depend; empty if its roots are not
    expressions of the console."""
    roots = [root for root, _ in stepped.subject.starts]
    if not roots:
        return ""
    cells = namespace.journal.cells_behind(namespace, [*roots, *stepped.parameters])
    return "\n\n".join(cell.source.strip("\n") for cell in cells)


def pass_code(stepped: BackwardPass, namespace: Namespace) -> str:
    """The cells behind the graph, then the call that runs the same pass at once. Edits of
    gradients and zero_grad() are not in it. Raises LabError for a pass whose roots are not
    expressions of the console."""
    if not stepped.subject.starts:
        raise LabError(
            "Only a pass that starts at variables of the console can be copied as code.",
            hint="File > Export… writes a model and its training as Python.",
        )
    return f"{cells_behind(stepped, namespace)}\n\n{_call(stepped)}\n"


def _call(stepped: BackwardPass) -> str:
    roots, gradients = zip(*stepped.subject.starts, strict=True)
    has_gradients = any(gradient != "None" for gradient in gradients)
    options = ["retain_graph=True"] if stepped.retain_graph and stepped.real_engine else []
    options += ["create_graph=True"] if stepped.create_graph else []
    if len(roots) == 1 and not stepped.inputs:
        root = roots[0] if roots[0].isidentifier() else f"({roots[0]})"
        return f"{root}.backward({', '.join([*gradients[:has_gradients], *options])})"
    given = [f"[{', '.join(gradients)}]"] if has_gradients else []
    listed = f"[{', '.join(roots)}]"
    if not stepped.inputs:
        return f"torch.autograd.backward({', '.join([listed, *given, *options])})"
    inputs = f"[{', '.join(stepped.inputs)}]"
    arguments = [listed, inputs, *given, *options, "allow_unused=True"]
    return f"torch.autograd.grad({', '.join(arguments)})"
