"""The audit of the release finds a training with too little noise, and clears the real one."""

import json
from dataclasses import replace

import pytest
from releasing import DP, REPO

from dp_leakage.common.rounding import rounded_down
from dp_leakage.release.command import make
from dp_leakage.release.folder import PRIVACY, SHEET
from dp_leakage.release.twin import audited, most_shown
from dp_leakage.training.checkpoint import Checkpoint
from dp_leakage.training.released import GridNoise, Release

MODELS = 120


@pytest.fixture(scope="module")
def small(plan):
    """A short training of few records at ε = 2, each in every batch."""
    from dp_leakage.privacy.mechanism import Mechanism
    from dp_leakage.privacy.training import Training
    from dp_leakage.release.statement import enough_noise, training_told

    training = plan.grid[0]["training"] | {
        "epochs": 3, "batch_size": 40, "optimizer": "sgd", "learning_rate": 0.5
    }  # fmt: skip
    private = Training(Mechanism("poisson", noise_multiplier=3.0), 3, 40, 40)
    told = enough_noise(training_told(private, 40), None, 2.0, 1e-5)
    grid = ({**plan.grid[0], "training": training, "architecture": {"name": "softmax_regression"}},)
    private = replace(private, mechanism=replace(private.mechanism, noise_multiplier=told["noise_multiplier"]))
    return replace(plan, grid=grid, rows=plan.rows[:40], told=told, training=private)


def audit(plan, path, models=MODELS):
    state = Checkpoint(path / "audit.safetensors", "this", 0.0)
    return audited(plan, models, "optimized", state, lambda done, of: None)


# The twins draw from the system, so these tests state their false alarms. At ε = 2, μ is .50 and 120 guesses are right
# with a chance of .60 each; a bound above 5 takes 94 right ones, which is 4.1 standard deviations away: 2e-5.
BETWEEN = 5.0


def test_the_release_is_not_refuted(small, tmp_path):
    found = audit(small, tmp_path)
    assert found["epsilon_at_least"] < BETWEEN
    assert found["could_have_shown"] > 2 * BETWEEN
    assert found["neighbors"] == "add_remove"


def test_a_release_with_an_eighth_of_the_noise_is_found(small, tmp_path, monkeypatch):
    """With μ = 4, 120 guesses are right with a chance of .98 each."""
    real = GridNoise.deviation.fget
    monkeypatch.setattr(GridNoise, "deviation", property(lambda self: real(self) / 8))
    assert audit(small, tmp_path)["epsilon_at_least"] > BETWEEN


def test_a_killed_audit_goes_on_with_the_scores_that_it_has(small, tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    trained, real = [], Release.run_epoch

    def counted(self):
        trained.append(self.epoch)
        if len(trained) == 8:
            raise Killed
        return real(self)

    monkeypatch.setattr(Release, "run_epoch", counted)
    with pytest.raises(Killed):
        audit(small, tmp_path, 4)
    audit(small, tmp_path, 4)
    assert len(trained) == 4 * 3 + 2  # the third twin began twice


def test_a_twin_holds_the_canary_or_not_and_the_rest_is_the_same(small, tmp_path, monkeypatch):
    given = []

    class Seen(Release):
        def __init__(self, layers, x, y, settings, mechanism, held, person):
            given.append((x.numpy().copy(), held.numpy()))
            super().__init__(layers, x, y, settings, mechanism, held, person)

    monkeypatch.setattr("dp_leakage.release.twin.Release", Seen)
    audit(small, tmp_path, 20)
    assert len({x.tobytes() for x, _ in given}) == 1
    assert all(held[:-1].all() for _, held in given)
    assert {bool(held[-1]) for _, held in given} == {True, False}
    own = small.data.x[small.rows]
    assert len(given[0][0]) == len(own)
    alike = [(record == own).reshape(len(own), -1).all(axis=1).any() for record in given[0][0]]
    assert sum(alike) == len(own) - 1


def test_more_twins_could_show_more(small):
    assert most_shown(small, 20) < most_shown(small, 200)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--models", "1"],
            "command line: key 'overrides.quickstart.release.audit.models' is 1; expected a whole number from 2",
        ),
        (
            ["--models", "many"],
            "command line: key 'overrides.quickstart.release.audit.models' is 'many'; expected a whole number",
        ),
        (
            ["--models", "4", "--canary", "blnk"],
            "command line: key 'overrides.quickstart.release.audit.canary' is 'blnk'; did you mean 'blank'?",
        ),
        (
            ["--canary", "blank"],
            "command line: key 'overrides.quickstart.release.audit' lacks the key 'models'; it is required",
        ),
        (["--scale", "huge"], "key 'scale' is 'huge'; valid: paper, small, smoke"),
    ],
)
def test_options_are_held_to_the_rules_of_the_studys_keys(monkeypatch, capsys, words, sentence):
    monkeypatch.chdir(REPO)
    assert make(["quickstart", "softmax_regression/none", *words]) == 1
    assert sentence in capsys.readouterr().err


def test_the_sheet_has_the_audit_and_what_it_could_have_shown(tmp_path, monkeypatch, capsys):
    repo = tmp_path / "repo"
    repo.mkdir()
    for path in REPO.iterdir():
        if path.name != "results":  # of an earlier run, maybe by other code
            (repo / path.name).symlink_to(path)
    monkeypatch.chdir(repo)
    words = ["quickstart", f"softmax_regression/{DP}", "--scale", "smoke", "--to", str(tmp_path / "model")]
    assert make([*words, "--models", "10"]) == 0
    assert "Audits 10 twins first; they could show ε ≥ " in capsys.readouterr().out
    told = json.loads((tmp_path / "model" / PRIVACY).read_text())
    (found,) = told["measured"]["audits"]
    sheet = (tmp_path / "model" / SHEET).read_text()
    least = rounded_down(found["epsilon_at_least"], 3)  # which nearest rounding may exceed
    assert f"10 twins of the training, canary optimized: ε ≥ {least} at δ = 1e-05" in sheet
    assert f"the largest that it could have shown is {found['could_have_shown']:.3g}." in sheet
    assert any("audits measured was computed from the same records" in sentence for sentence in told["outside"])
    assert {path.name for path in tmp_path.iterdir()} == {"repo", "model"}
