"""`python -m app`, and in the wheel (as `tensorlab/__main__.py`) `python -m tensorlab`."""

from __future__ import annotations

import sys

from tensorlab import main

if __name__ == "__main__":
    sys.exit(main())
