"""Making a tensor: torch's factories, the fields that they ask for, and the Python line that calls
one with what was typed.

Not here: running the line (the console).
"""

from .line import Known, Surroundings, python_line
from .numbers import FieldError
from .table import FACTORIES, OPTIONS, Factory, Field

__all__ = [
    "FACTORIES",
    "OPTIONS",
    "Factory",
    "Field",
    "FieldError",
    "Known",
    "Surroundings",
    "python_line",
]
