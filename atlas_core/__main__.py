"""`python -m atlas_core` is `atlas`."""

import sys

from atlas_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
