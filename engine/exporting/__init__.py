"""Writes models to files; each file is loaded back and compared before it counts as written. Not
in it: reading files that others have written, in `artifacts`."""

from .code_export import save_code
from .weights import Written, check_fits, load_weights, save_weights

__all__ = ["Written", "check_fits", "load_weights", "save_code", "save_weights"]
