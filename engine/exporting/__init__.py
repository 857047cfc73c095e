"""Writes models to files; each file is loaded back and compared before it counts as written.

Not here: reading files that others have written (`artifacts`), the process that compares
(`verifier`).

A training script has one loop for all subjects (`script_loop`). `train_script` writes it for
blocks, `code_script` for code: it imports the user's files, or has the statements of the cells with
the random generators set to where they stood.
"""

from .code_export import save_code
from .weights import Written, check_fits, load_weights, save_weights

__all__ = ["Written", "check_fits", "load_weights", "save_code", "save_weights"]
