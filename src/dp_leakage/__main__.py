"""``dp-leakage COMMAND``, or ``python -m dp_leakage COMMAND``: one command for all that the package does."""

import sys

from dp_leakage.commands import main

if __name__ == "__main__":
    sys.exit(main())
