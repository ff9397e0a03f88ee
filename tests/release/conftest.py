from types import SimpleNamespace

import pytest
import yaml
from releasing import DP, NOT_MEASURED, REPO, released_plan

from dp_leakage.release.make import release


@pytest.fixture(scope="session")
def plan():
    """What the quickstart at smoke scale would release."""
    return released_plan("quickstart", f"mlp/{DP}", {})


@pytest.fixture(scope="session")
def made(plan, tmp_path_factory):
    """A whole release. Do not edit: ask for `copy`."""
    folder = tmp_path_factory.mktemp("made") / "model"
    release(plan, folder, 60.0, NOT_MEASURED)
    return folder


@pytest.fixture
def own(tmp_path):
    """A folder like the repository's, in which a study of one's own data can be written."""
    (tmp_path / "config.yaml").write_text((REPO / "config.yaml").read_text())
    (tmp_path / "workflow").symlink_to(REPO / "workflow")
    (tmp_path / "studies").mkdir()

    def study(source, roles, model=None, defense="gaussian", wanted=None, **keys):
        spec = {
            "study": "mine",
            "title": "Mine",
            "seed": 987654321,
            "design": "coins",
            "repeats": 4,
            "delta": 1.0e-5,
            "epsilon": [100],
            "datasets": {"mine": {"source": source, "roles": roles, **keys}},
            "models": {"own": {"architecture": model or {"name": "mlp", "hidden": [8]}}},
            "training": {"optimizer": "adam", "learning_rate": 0.01, "epochs": 2, "batch_size": 10},
            "defenses": [{"defense": "none"}, {"defense": defense, "accountant": "rdp"}],
            "attacks": {"yeom": {}},
            "figures": {},
            "scales": {"smoke": {"repeats": 4}},
        }
        (tmp_path / "studies" / "mine.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
        return released_plan("mine", f"own/{defense}-rdp-eps=100", wanted or {}, tmp_path)

    return SimpleNamespace(folder=tmp_path, study=study)
