"""`python -m app`, and in the wheel (as `tensorlab/__main__.py`) `python -m tensorlab`.

Python puts the current folder first on `sys.path` for these; it may be a stranger's, with modules
named like those of the library. It goes before anything is imported from there.
"""

import sys

if not sys.flags.safe_path:
    del sys.path[0]
    sys.path.append(__file__.replace("\\", "/").rsplit("/", 2)[0])

from tensorlab import main

if __name__ == "__main__":
    sys.exit(main())
