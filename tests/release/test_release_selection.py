"""A choice among trainings is paid for: the claim holds against an attack that refutes that of one training."""

import json
import secrets
from math import log

import numpy as np
import pytest
import torch
from dp_accounting.dp_event import (
    ComposedDpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    RepeatAndSelectDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.rdp import RdpAccountant
from releasing import DP, NOT_MEASURED, released_plan
from scipy.stats import beta

from dp_leakage.common.errors import UserError
from dp_leakage.privacy.accounting.tradeoff import gaussian
from dp_leakage.release.folder import PRIVACY
from dp_leakage.release.make import release
from dp_leakage.release.selection import select
from dp_leakage.release.statement import curve_of, recomputed
from dp_leakage.release.verify import verify
from dp_leakage.training.released import Release

CHOICE = {"mean": 10, "runs": "geometric", "score_noise": None}
CHOOSE = {"choose": {"learning_rate": [0.003, 0.01], "hidden": [[4], [8]]}, "mean": 3}
RARE = 0.01  # false positives of each bound; the seeds are fixed


class Remembered:
    """A checkpoint in memory."""

    def __init__(self):
        self.saved = None

    def load(self):
        return self.saved

    def save(self, tensors, facts):
        self.saved = tensors, json.loads(json.dumps(facts))


@pytest.fixture
def seeded(monkeypatch):
    generator = np.random.default_rng(11)
    monkeypatch.setattr(secrets, "randbits", lambda bits: int(generator.integers(2**62)))


def bounds(hits, count):
    """Clopper and Pearson's (1934) bounds from below and above, each wrong with a chance of `RARE`."""
    low = beta.ppf(RARE, hits, count - hits + 1) if hits else 0.0
    return low, beta.ppf(1 - RARE, hits + 1, count - hits)


def rates(train, accused, count=1000):
    """How often the released of ``count`` selections is accused, without and with the record."""
    found = []
    for held in (False, True):
        best = [
            select(CHOICE, 4, Remembered(), lambda run, setting: train(held), lambda setting, p: p["w"].item())  # noqa: B023
            for _ in range(count)
        ]
        found.append(sum(accused(each.parameters["w"].item()) for each in best))
    return [bounds(hits, count) for hits in found]


def test_a_thousand_selections_of_gaussian_trainings_stay_under_the_claim_and_above_that_of_one(seeded):
    rng = np.random.default_rng(3)
    sigma = 1.0
    (_, fpr), (tpr, _) = rates(lambda held: {"w": torch.tensor(held + sigma * rng.normal())}, lambda w: w > 2.326)
    told = {"noise_multiplier": sigma, "sampler": "shuffle", "sampling_probability": 1.0, "steps": 1, "epochs": 1}
    paid = curve_of({"mechanism": told, "selection": CHOICE})
    assert tpr < paid.tpr(fpr)
    assert tpr > gaussian(1 / sigma).tpr(fpr)  # so a selection that is not paid for is caught


def test_a_thousand_selections_of_pure_trainings_stay_under_the_theorem_and_above_epsilon_of_one(seeded):
    """(2 + η)ε for pure DP with η = 1, the geometric distribution (Papernot & Steinke 2022, theorem 2)."""
    rng = np.random.default_rng(4)
    epsilon, high = 1.0, 1 / (1 + np.exp(-1.0))
    (_, most), (least, _) = rates(
        lambda held: {"w": torch.tensor(float(rng.random() < (1 - high if held else high)))}, lambda w: w == 0
    )
    assert epsilon < log(least / most) < 3 * epsilon


def spent_by_the_library(told, mean, shape, noise, delta):
    event = SelfComposedDpEvent(
        PoissonSampledDpEvent(told["sampling_probability"], GaussianDpEvent(told["noise_multiplier"])), told["steps"]
    )
    if noise:
        event = ComposedDpEvent([event, GaussianDpEvent(noise)])
    accountant = RdpAccountant()
    accountant.compose(RepeatAndSelectDpEvent(event, mean, shape))
    return accountant.get_epsilon(delta)


@pytest.mark.parametrize(("runs", "shape"), [("geometric", 1), ("logarithmic", 0)])
@pytest.mark.parametrize("noise", [None, 20.0])
def test_epsilon_is_that_of_dp_accounting(runs, shape, noise):
    told = {"noise_multiplier": 2.0, "sampler": "poisson", "sampling_probability": 0.05, "steps": 400, "epochs": 20}
    chosen = {"mean": 10, "runs": runs, "score_noise": noise}
    (found,) = recomputed({"mechanism": told, "selection": chosen}, [1e-5])
    assert found == pytest.approx(spent_by_the_library(told, 10, shape, noise, 1e-5))
    assert found > recomputed({"mechanism": told}, [1e-5])[0]


@pytest.mark.parametrize("private", [False, True])
def test_a_release_that_was_chosen_says_what_that_cost_and_keeps_to_its_epsilon(tmp_path, private):
    noise = {"score_noise": 30.0} if private else {}
    plan = released_plan("quickstart", f"mlp/{DP}", CHOOSE | noise)
    folder = tmp_path / "model"
    release(plan, folder, 60.0, NOT_MEASURED)
    verify(folder)
    told = json.loads((folder / PRIVACY).read_text())
    spent = next(row["epsilon"] for row in told["epsilon"] if row["delta"] == 1e-5)
    chosen = told["selection"]
    assert 0 < chosen["epsilon_of_one_training"] < spent <= 100
    assert chosen["epsilon_of_one_training"] + chosen["epsilon_of_choosing"] == pytest.approx(spent)
    library = spent_by_the_library(told["mechanism"], 3, 1, noise.get("score_noise"), 1e-5)
    assert spent == pytest.approx(library)
    assert told["model"]["architecture"]["hidden"] in ([4], [8])
    assert told["model"]["training"]["learning_rate"] in (0.003, 0.01)
    assert "drawn" not in (folder / PRIVACY).read_text()
    assert any("chosen by that accuracy" in sentence for sentence in told["outside"]) == (not private)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_choice_needs_more_noise_than_one_training(plan):
    chosen = released_plan("quickstart", f"mlp/{DP}", CHOOSE)
    assert chosen.training.mechanism.sigma > plan.training.mechanism.sigma


class Killed(BaseException):
    """In place of a kill."""


def test_a_killed_selection_goes_on_without_another_draw_or_score(tmp_path, monkeypatch):
    monkeypatch.setattr("dp_leakage.release.selection.drawn_runs", lambda *_: [0, 1, 2, 3])
    plan = released_plan("quickstart", f"mlp/{DP}", CHOOSE)
    epochs, taken, real = plan.grid[0]["training"]["epochs"], [], Release.run_epoch

    def counted(self):
        taken.append(self.epoch)
        if len(taken) == 2 * epochs + 3:
            raise Killed
        return real(self)

    monkeypatch.setattr(Release, "run_epoch", counted)
    folder = tmp_path / "model"
    with pytest.raises(Killed):
        release(plan, folder, 0.0, NOT_MEASURED)
    assert not folder.exists()
    left = {path.name for path in next(tmp_path.iterdir()).iterdir()}
    assert left == {"best.safetensors", "training2.safetensors"}  # the losers are erased
    monkeypatch.setattr("dp_leakage.release.selection.drawn_runs", None)
    release(plan, folder, 0.0, NOT_MEASURED)
    assert taken == [*range(epochs), *range(epochs), 0, 1, 2, *range(2, epochs), *range(epochs)]
    verify(folder)


def test_the_best_score_wins_and_what_diverged_does_not():
    scores = [0.2, None, 0.9, 0.9, 0.1]
    state, erased = Remembered(), []
    state.save({}, {"drawn": [4, 3, 2, 1, 0], "done": 0, "setting": None, "score": float("-inf")})

    def train(run, setting):
        return None if scores[run] is None else {"w": torch.tensor(float(run))}

    best = select(CHOICE, 5, state, train, lambda setting, p: scores[int(p["w"])], erased.append)
    assert (best.setting, best.parameters["w"].item()) == (2, 2.0)
    assert erased == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"mean": 3}, r"release.mean has no effect without release.choose; add"),
        ({"choose": {"epochs": [1, 2]}}, "epochs cannot be chosen, since all trainings must be alike"),
        ({"choose": {"batch_size": [1]}}, "batch_size cannot be chosen"),
        ({"choose": {"widths": [1]}}, r"release.choose: .*has no setting 'widths'"),
        ({"choose": {"learning_rate": [-1.0]}}, r"release\.choose\.learning_rate\.0. is -1.0"),
        ({"choose": {"learning_rate": ["fast"]}}, r"release.choose"),
        ({"choose": {"hidden": [["a"]]}}, r"release.choose: .*'hidden\.0' is 'a'"),
        ({"choose": {"hidden": [[4]]}, "roles": ["pool", "target_nonmembers"]}, r"release.score_noise is missing"),
        ({"roles": ["everybody"]}, r"release.roles: 'everybody' is not a role"),
        ({"choose": {"hidden": [[4]]}, "score_noise": 1e-3}, "noise"),
    ],
)
def test_what_cannot_be_chosen_is_refused(wanted, sentence):
    with pytest.raises(UserError, match=sentence):
        released_plan("quickstart", f"mlp/{DP}", wanted)


def test_a_choice_under_a_target_is_refused_since_it_would_exceed_the_risk(own):
    own.study("digits", {"pool": 900, "target_nonmembers": 300})
    path = own.folder / "studies" / "mine.yaml"
    path.write_text(path.read_text().replace("epsilon:\n- 100", "target:\n- advantage: 0.1"))
    cell = "own/gaussian-rdp-advantage=0.1"
    assert released_plan("mine", cell, {}, own.folder).selection is None
    with pytest.raises(UserError, match=r"release.choose: the cell's noise keeps one training to a target"):
        released_plan("mine", cell, CHOOSE, own.folder)
