"""Loads study files as a test wants them: with changes to the study, with another config, or another file."""

from pathlib import Path

from dp_leakage.common.config import merged
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.study.file import load_studies

REPO = Path(__file__).parents[1]
QUICKSTART = Path(__file__).parent / "studies" / "quickstart.yaml"  # fixed members, shadow models
CONFIG = read_yaml(REPO / "config.yaml")
LEARNED_ON = {
    "source": "mnist",
    "architecture": {"name": "mlp"},
    "training": {"optimizer": "sgd", "learning_rate": 0.1, "epochs": 2, "batch_size": 50},
}
PRIVATE_PCA = {"method": "private_pca", "components": 20, "noise": 4}


def load(changes=None, config=None, file=QUICKSTART):
    """The studies of a file by name, with ``config`` over the config and ``changes`` over the study."""
    settings = merged(CONFIG, config or {})
    if changes:
        settings = merged(settings, {"overrides": {file.stem: changes}})
    return load_studies(settings, [file])


def visits(changes=None):
    """A study of persons, with ``changes``; its data are found from the top of the repository."""
    return load(changes, file=QUICKSTART.with_name("visits.yaml"))["visits"]


def with_kinds_of(study):
    """Loads a study for the kinds of figures that lie in its folder: from then on every study may use them."""
    load(file=REPO / "workflow" / "studies" / study / "study.yaml")


def gaussian(**entry):
    """Defenses of a study: none, and Gaussian noise as ``entry`` says."""
    return {"defenses": [{"defense": "none"}, {"defense": "gaussian", **entry}]}


def projected(**changes):
    """The digits by a private PCA of their members, under Gaussian noise."""
    return {"datasets": {"digits": {"projection": PRIVATE_PCA | changes}}, **gaussian(accountant="rdp", epsilon=[8])}
