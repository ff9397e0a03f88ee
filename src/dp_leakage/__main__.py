"""``dp-leakage COMMAND``, or ``python -m dp_leakage COMMAND``: the package's single command."""

import sys

from dp_leakage.commands import main

if __name__ == "__main__":
    sys.exit(main())
