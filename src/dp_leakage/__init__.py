"""What does a privacy budget ε buy in practice? Utility against measured leakage, for many defenses.

The rooms, from the bottom up; each imports only those before it (`tests/test_rooms.py`):

- ``common``: errors, kinds of values, names, YAML; ``options``: what each command takes; ``provenance``: how each file
  was made
- ``data``, ``models``, ``privacy``, ``training``: records, architectures, mechanisms and accountants, the trainer
- ``attacks``, ``engines``, ``audits``: what an attacker learns; models that exist already; lower bounds on ε
- ``metrics``, ``table``, ``report``, ``figures``: numbers with intervals, their rows and words, the page, pictures
- ``opacus``: audits of trainings by Opacus while they run
- ``plugins``: a user's own additions to all of these
- ``study``: the plan, from a study file to cells, paths and settings
- ``jobs``, ``steps``: processes, and the jobs of the workflow; only these touch files

``commands`` is the console script ``dp-leakage``, which make's targets run too, and runs the others here. ``release``
makes the model that is given away; ``results`` reads a study's results from Python.
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from dp_leakage.results import Results

__version__ = "0.3.0"

if sys.argv[:1] == ["-m"]:  # `python -m dp_leakage.NAME`, before any import of that module
    from dp_leakage.common.surroundings import check_surroundings

    check_surroundings()


def open(folder: "str | Path") -> "Results":
    """Return the results of a study, e.g. in ``results/quickstart``: cells, metrics, curves, claims.

    Raises:
        UserError: no cell was measured there.
    """
    from dp_leakage.results import read_results  # here, since the command line imports this module and nothing heavy

    return read_results(folder)
