"""Writing models to files, each loaded back and compared before it is called done."""

from .code_export import save_code
from .weights import Written, check_fits, load_weights, save_weights

__all__ = ["Written", "check_fits", "load_weights", "save_code", "save_weights"]
