"""What does a privacy budget ε buy in practice? Utility against measured leakage, for many defenses.

The rooms, from the bottom up; each imports only those before it (`tests/test_rooms.py`):

- ``common``: errors, kinds of values, names, YAML; ``options``: what each command takes; ``provenance``: how each file
  was made
- ``data``, ``models``, ``privacy``, ``training``: records, architectures, mechanisms and accountants, the trainer
- ``attacks``, ``engines``, ``audits``: what an attacker learns; models that exist already; lower bounds on ε
- ``metrics``, ``figures``, ``report``: numbers with intervals, pictures, the page
- ``opacus``: audits of trainings by Opacus while they run
- ``plugins``: a user's own additions to all of these
- ``study``: the plan, from a study file to cells, paths and settings
- ``jobs``, ``steps``: processes, and the jobs of the workflow; only these touch files

The others here are run as ``python -m dp_leakage.NAME``. ``release`` makes the model that is given away; ``results``
reads a cell from Python; ``commands`` is what make's targets run.
"""

import sys

__version__ = "0.3.0"

if sys.argv[:1] == ["-m"]:  # `python -m dp_leakage.NAME`, before any import of that module
    from dp_leakage.common.surroundings import check_surroundings

    check_surroundings()
