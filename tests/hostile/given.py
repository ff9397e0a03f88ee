"""Ways in which hostile input comes in, each ending in what was said: a complaint, or None where it was taken."""

import contextlib
import importlib
import io
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from asked import noise_multiplier
from loading import CONFIG
from registries import unchanged
from workflow_copies import make

from dp_leakage import new_study, plugins
from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.checks import check_said
from dp_leakage.common import user_code
from dp_leakage.common.config import merged
from dp_leakage.common.errors import UserError
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.models.user_module import module_factory, module_layers
from dp_leakage.privacy.clipping import check_bound
from dp_leakage.privacy.command import main as privacy
from dp_leakage.study.checks import check_sizes
from dp_leakage.study.file import load_studies
from dp_leakage.study.plan import figure_settings
from dp_leakage.study.steps import train_settings

SOON = 10  # seconds of processor time
TINY = {
    "study": "tiny",
    "title": "A tiny study",
    "seed": 1,
    "repeats": 2,
    "delta": 1e-5,
    "epsilon": [1, 100],
    "datasets": {
        "digits": {
            "source": "digits",
            "roles": {"target_members": 300, "target_nonmembers": 300, "shadow_pool": 300},
            "projection": {"method": "pca", "components": 8},
        }
    },
    "models": {"mlp": {"architecture": {"name": "mlp", "hidden": [8]}}},
    "training": {"optimizer": "adam", "learning_rate": 0.01, "epochs": 2, "batch_size": 20},
    "defenses": [{"defense": "none"}, {"defense": "gaussian", "accountant": "rdp", "sampler": "poisson"}],
    "shadow": {"count": 2, "size": 100},
    "attacks": {"yeom": {}, "shokri": {}},
    "figures": {"fig_loss": {"kind": "accuracy_loss"}},
}


def said(run) -> str | None:
    """What a call complains of: the sentence of a UserError, or the line of a command that ends with a status."""
    errors = io.StringIO()
    status: object = 0
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            status = run()
    except UserError as error:
        return f"error: {error}"
    except SystemExit as error:
        status = error.code
    text = errors.getvalue().strip()
    return text if status not in (0, None) else None


def is_sentence(text: str) -> bool:
    """One line that begins with ``error:`` and says something, and no traceback."""
    return text.count("error: ") == 1 and len(text.splitlines()) == 1 and "Traceback" not in text and len(text) > 30


def answered_soon(ask: Callable[[], str | None]) -> str | None:
    """What an input ends in: None where it was taken, else one sentence; either within `SOON`."""
    begun = time.process_time()
    text = ask()
    assert text is None or is_sentence(text), text
    assert time.process_time() - begun < SOON
    return text


def study(folder: Path, content: object, config: dict | None = None) -> str | None:
    """A study file of this content (text, bytes, or changes to `TINY`), loaded and checked."""
    file = folder / "tiny.yaml"
    if isinstance(content, dict):
        content = yaml.safe_dump(merged(TINY, content))
    file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return said(lambda: planned(load_studies(CONFIG | (config or {}), [file])))


def planned(studies: dict) -> None:
    """All that `snakemake -n` would work out."""
    for one in studies.values():
        check_sizes(one)
        for cell in one.cells.values():
            train_settings(one, cell)
        for figure in one.spec["figures"]:
            figure_settings(one, figure)


def whole_study(folder: Path, **changes: object) -> str | None:
    """`TINY` with keys replaced as they are, not merged."""
    return study(folder, yaml.safe_dump({**TINY, **changes}))


def config(folder: Path, content: object) -> str | None:
    """A config.yaml of this content, with `TINY` beside it."""
    file, beside = folder / "config.yaml", folder / "tiny.yaml"
    beside.write_text(yaml.safe_dump(TINY))
    if isinstance(content, dict):
        content = yaml.safe_dump(CONFIG | content)
    file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return said(lambda: planned(load_studies(read_yaml(file), [beside])))


def data(folder: Path, path: str, *arguments: str) -> str | None:
    """`new_study` of a file or folder, in the working folder, and the plan of what it wrote."""

    def run() -> int:
        status = new_study.main(["mine", "--seed", "1", f"--data={path}", *arguments])
        if status == 0:
            planned(load_studies(CONFIG, [Path("studies/mine.yaml")]))
        return status

    before = os.getcwd()
    os.chdir(folder)
    try:
        return said(run)
    finally:
        os.chdir(before)


def module(folder: Path, text: str) -> str | None:
    """A study whose model is the class ``Net`` of a file of this text, planned, and the module made and tried."""
    (folder / "brk.py").write_text(text)
    net = {"mlp": {"architecture": {"name": "brk:Net", "hidden": None}}}
    spec = merged(TINY, {"models": net, "attacks": {"shokri": None}, "shadow": None})
    spec = {key: value for key, value in spec.items() if value is not None}
    before, path = os.getcwd(), list(sys.path)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        complaint = study(folder, yaml.safe_dump(spec))
        return complaint or said(lambda: module_layers(module_factory("brk:Net", (8,), 10), (8,), 10) and None)
    finally:
        os.chdir(before)
        sys.path[:] = path
        sys.modules.pop("brk", None)


def table(folder: Path, frame: pd.DataFrame | None = None, *arguments: str, text: str | None = None) -> str | None:
    """`new_study` of a CSV: a frame, or its text."""
    if text is None:
        frame.to_csv(folder / "d.csv", index=False)
    else:
        (folder / "d.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    return data(folder, "d.csv", "--label=y", *arguments)


def plugin(folder: Path, text: str, name: str = "plug", use=None) -> str | None:
    """A plugin of this text, loaded and then used."""
    own = folder / "plugs"
    own.mkdir(exist_ok=True)
    (own / f"{name}.py").write_text(text)

    def run() -> None:
        plugins.load([own])
        if use is not None:
            use(name)

    with unchanged(name):
        return said(run)


def scored(name: str) -> None:
    """Use of an attack."""
    result = user_code.call(name, "score", *range(4))
    check_said(result, f"plugin {name}", ATTACKS[name].family, (2, 3))


def solved(name: str) -> None:
    """Use of a mechanism's accountant."""
    noise_multiplier(name, epsilon=1.0, delta=1e-5, epochs=2, batch_size=20, dataset_size=300)


def bounded(name: str) -> None:
    """Use of a mechanism's bound."""
    check_bound(name, 1.0)


def asked(words: str) -> str | None:
    """The command line of `dp-leakage sigma` and its like."""
    return said(lambda: privacy(words.split()))


def made(folder: Path, target: str = "new-study", **options: str) -> str | None:
    """What a command of the Makefile complains of."""
    done = make(folder, target, **options)
    lines = [line for line in done.stderr.splitlines() if not re.match(r"make(\[\d+\])?: ", line)]
    return "\n".join(lines) if done.returncode else None


def sound(n: int = 300) -> pd.DataFrame:
    """A table that is taken."""
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.random(n), "b": rng.random(n), "y": np.arange(n) % 2})


def of_snakemake(text: str) -> str | None:
    """What a run of Snakemake complains of; None where it planned something."""
    found = re.findall(r"^(?:error|left out): .*$", text, re.MULTILINE)
    if "Traceback" in text or not found:
        return None if "This was a dry-run" in text or "Nothing to be done" in text else text
    return "\n".join(line.replace("left out:", "error:") for line in found)
