"""Runs a script of `tests/watch/scripts` under a watch, as it is or with a few lines changed."""

import runpy
import sys
import warnings
from pathlib import Path

import torch

from dp_leakage.opacus import script as scripts

SCRIPTS = Path(__file__).parent / "scripts"
MADE = "    for epoch in range(1, args.epochs + 1):\n"  # of image.py, when everything is private


def edited(folder, name, edits=()):
    """The script's path, with each (old, new) of ``edits`` applied once; old must be there."""
    text = (SCRIPTS / f"{name}.py").read_text(encoding="utf-8")
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times in {name}.py"
        text = text.replace(old, new)
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return path


def watched(folder, name, edits=(), arguments=(), **options):
    """What a watch saw, and the script's own status."""
    path = edited(folder, name, edits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return scripts.run(path, [str(word) for word in arguments], **{"say": None, **options})


def unwatched(path, arguments=()):
    """The same script alone."""
    before = sys.argv, sys.modules["__main__"]
    sys.argv = [str(path), *(str(word) for word in arguments)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runpy.run_path(str(path), run_name="__main__")
    finally:
        sys.argv, sys.modules["__main__"] = before


def same_bytes(one, other):
    """Whether two files of weights hold the same tensors in every byte."""
    first, second = torch.load(one), torch.load(other)
    return first.keys() == second.keys() and all(
        a.dtype == second[name].dtype and a.numpy().tobytes() == second[name].numpy().tobytes()
        for name, a in first.items()
    )


def codes(seen):
    """(level, code) of everything that was found, but the seed, which these scripts all set."""
    return [(finding.level.value, finding.code) for finding in seen.findings if finding.code != "seed"]
