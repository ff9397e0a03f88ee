"""A training in a process of its own, for `dp-leakage audit`: any language, any library, any environment.

    dp-leakage audit --train docs.examples.audit_training.outside:train --epsilon 2 --models 100

TRAINER is the command. It is called with two file names: one to read (arrays x, y, seed, records) and one to write (an
array of logits, one row for each of ``records``).
"""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

TRAINER = os.environ.get("TRAINER", shlex.join([sys.executable, str(Path(__file__).with_name("numpy_dpsgd.py"))]))


def train(x, y, seed):
    """A function: records → logits. The process starts when it is called, so that one process does both."""

    def predict(records):
        with tempfile.TemporaryDirectory() as folder:
            given, answer = Path(folder, "given.npz"), Path(folder, "answer.npy")
            np.savez(given, x=x, y=y, seed=seed, records=records)
            subprocess.run([*shlex.split(TRAINER), str(given), str(answer)], check=True)
            return np.load(answer)

    return predict
