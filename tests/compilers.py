"""Whether torch.compile can be tested here."""

from __future__ import annotations


def has_compiler() -> bool:
    """Whether this machine has the C++ compiler that torch.compile needs on the CPU."""
    from torch._inductor import cpp_builder, exc  # it takes a second to load

    try:
        cpp_builder.get_cpp_compiler()
    except exc.InvalidCxxCompiler:
        return False
    return True
