"""The lines of Python that compute the same derivatives."""

from __future__ import annotations

from ...protocol import DerivativeCommand, GradcheckCommand

MODEL, SAMPLE = "model", "x[:1]"
"""The names of the forward pass's model and sample in the code."""


def code_of(command: DerivativeCommand) -> str:
    """The line of Python that computes the same derivative."""
    f = command.function.strip() or MODEL
    inputs = [text.strip() for text in command.inputs] or [SAMPLE]
    chosen, given = inputs[command.argument], ", ".join(inputs)
    called = f"({f})" if " " in f else f
    by = f", argnums={command.argument}" if command.argument else ""
    v = command.vector.strip()
    match command.kind:
        case "jacobian":
            jac = "jacrev" if command.mode == "reverse" else "jacfwd"
            return f"J = torch.func.{jac}({f}{by})({given})"
        case "hessian":
            return f"H = torch.func.hessian({f}{by})({given})"
    one = called if len(inputs) == 1 else _as_lambda(called, inputs, command.argument)
    like = f"{called}({given})" if command.kind == "vjp" else chosen
    v = v or f"torch.ones_like({like})"
    match command.kind:
        case "jvp":
            return f"_, jvp = torch.func.jvp({one}, ({chosen},), ({v},))"
        case "vjp":
            return f"(vjp,) = torch.func.vjp({one}, {chosen})[1]({v})"
        case _:
            return f"_, hvp = torch.func.jvp(torch.func.grad({one}), ({chosen},), ({v},))"


def _as_lambda(called: str, inputs: list[str], argument: int) -> str:
    names = ", ".join("t" if i == argument else text for i, text in enumerate(inputs))
    return f"lambda t: {called}({names})"


def check_code_of(command: GradcheckCommand) -> str:
    """The line of Python that runs the same check."""
    f = command.function.strip() or MODEL
    convert = f".detach(){'.double()' if command.double else ''}.requires_grad_()"
    inputs = ", ".join(f"{text.strip()}{convert}" for text in command.inputs or (SAMPLE,))
    check = "gradgradcheck" if command.second else "gradcheck"
    defaults = {"eps": 1e-6, "atol": 1e-5, "rtol": 1e-3}
    chosen = {name: getattr(command, name) for name in defaults}
    options = "".join(f", {k}={v:g}" for k, v in chosen.items() if v != defaults[k])
    return f"torch.autograd.{check}({f}, ({inputs},){options})"
