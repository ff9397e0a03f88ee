"""The report is not fooled: a table of many near-duplicate classes, learned by heart, told of as a report would.

The digits' pixels as 64 binary columns, each digit in three classes by how much ink it has: 30 classes, of which three
at a time are nearly alike. Ensembles are trained and attacked as the workflow does, and the page's sentences read.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_digits

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.membership import lira, yeom
from dp_leakage.attacks.queries import ask
from dp_leakage.attacks.signals import Signals, score_columns
from dp_leakage.data.dataset import Dataset
from dp_leakage.figures import draw
from dp_leakage.metrics import measure_membership, measure_strongest
from dp_leakage.metrics.rows import completed
from dp_leakage.models.architectures import build
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.report import answers, claims_of
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train

MEMBERS, REPEATS, REFERENCES = 300, 3, 16
COOLING = 20.0
DEFENSES = {
    "none": {"l2": 0.0},
    "l2": {"l2": 1e-3},
    "cooled": {"l2": 0.0},  # as undefended, its confidences rescaled after training
    "gaussian-rdp-eps=8": {"l2": 0.0},
}


def table() -> Dataset:
    digits = load_digits()
    ink = digits.data.sum(axis=1)
    third = np.zeros(len(ink), dtype=int)
    for digit in range(10):
        own = digits.target == digit
        third[own] = np.searchsorted(np.quantile(ink[own], [1 / 3, 2 / 3]), ink[own])
    rows = np.random.default_rng(0).permutation(len(ink))
    roles = {"target_members": rows[:MEMBERS], "target_nonmembers": rows[MEMBERS : 2 * MEMBERS]}
    y = (3 * digits.target + third).astype(np.int64)
    return Dataset((digits.data > 7).astype(np.float32), y, roles, np.array([], dtype=np.int64))


@cache
def trained(defense: str) -> tuple[Signals, float]:
    """What targets and references of a defense say, and the share of new records that the targets get right."""
    data = table()
    rng = np.random.default_rng(1)
    both = np.concatenate([data.roles["target_members"], data.roles["target_nonmembers"]])
    subsets = [data.roles["target_members"]] * REPEATS + [rng.permutation(both)[:MEMBERS] for _ in range(REFERENCES)]
    settings = TrainingSettings(epochs=60, batch_size=50, evaluate_every=60, learning_rate=0.02, **DEFENSES[defense])
    noise = None
    if defense.startswith("gaussian"):
        noise = Mechanism("poisson", "example", "clip", 1.0, "gaussian", noise_multiplier=4.0)
    layers = build("softmax_regression", (64,), 30)
    x, y = torch.from_numpy(data.x), torch.from_numpy(data.y)
    models, _ = train(layers, x, y, torch.from_numpy(np.stack(subsets)), range(len(subsets)), settings, noise)
    others = data.roles["target_nonmembers"]
    chosen = models.logits(x[others], range(REPEATS)).argmax(dim=2)
    return ask(models, data), float((chosen == y[others]).float().mean())


def cooled(signals: Signals) -> Signals:
    """The same models with all confidences drawn towards a half: every margin a twentieth."""
    return replace(signals, margin=signals.margin / COOLING)


def rows_of(defense: str, undefended: Signals, aware: bool) -> list[dict]:
    said, accuracy = trained("none" if defense == "cooled" else defense)
    said = cooled(said) if defense == "cooled" else said
    targets, references = (said.models(np.arange(REPEATS)), said.models(np.arange(REPEATS, said.size)))
    reference = references if aware else undefended
    scored = {
        "yeom": yeom.score(targets, None, ATTACKS["yeom"].settings, 0),
        "lira_online": lira.score(targets, reference, ATTACKS["lira_online"].settings, 0),
    }
    frames = {name: pd.DataFrame(score_columns(targets.asked, found._asdict())) for name, found in scored.items()}
    rows = [row for name, frame in frames.items() for row in measure_membership(frame, name)]
    rows += measure_strongest(frames)
    error = 1.96 * np.sqrt(accuracy * (1 - accuracy) / MEMBERS)
    ends = {"value": accuracy, "low": accuracy - error, "high": accuracy + error}
    rows.append({"metric": "test_accuracy", "repeat": "all", **ends})
    return rows


def study(aware: bool) -> pd.DataFrame:
    """Metrics of all cells, by an attacker who knows the defense or one whose references are undefended."""
    undefended, _ = trained("none")
    undefended = undefended.models(np.arange(REPEATS, undefended.size))
    found = []
    for defense in DEFENSES:
        private = defense.startswith("gaussian")
        columns = {"study": "s", "dataset": "d", "model": "m", "defense": defense, "delta": 1e-5 if private else np.nan}
        columns |= {
            "mechanism": defense.split("-")[0],
            "accountant": "rdp" if private else "",
            "block": "",
            "bound": "",
        }
        columns |= {"unit": "example" if private else "", "epsilon": 8.0 if private else np.nan}
        columns |= {"noise_multiplier": 4.0 if private else np.nan, "n_members": MEMBERS, "n_nonmembers": MEMBERS}
        found += [columns | row for row in rows_of(defense, undefended, aware)]
    frame = pd.DataFrame(found)
    accuracy = frame[frame["metric"] == "test_accuracy"]
    base = accuracy.loc[accuracy["defense"] == "none", "value"].item()
    loss = accuracy.assign(metric="accuracy_loss", value=1 - accuracy["value"] / base)
    loss = loss.assign(low=1 - accuracy["high"] / base, high=1 - accuracy["low"] / base)
    private = loss[loss["accountant"] != ""]
    spent = private.assign(metric="epsilon_spent", accounted_by="rdp", neighbors="add_remove", valid=True, value=8.0)
    return completed(pd.concat([frame, loss, spent], ignore_index=True))


@pytest.fixture(scope="module")
def aware() -> pd.DataFrame:
    return study(aware=True)


@pytest.fixture(scope="module")
def unaware() -> pd.DataFrame:
    return study(aware=False)


def reached(
    frame: pd.DataFrame, defense: str, attack: str = "strongest", metric: str = "reached_advantage"
) -> pd.Series:
    rows = frame[(frame["defense"] == defense) & (frame["metric"] == metric) & (frame["repeat"] == "all")]
    return rows[rows["attack"] == attack].iloc[0]


def test_an_l2_penalty_is_shown_to_leak_with_an_interval_and_is_not_recommended(aware: pd.DataFrame) -> None:
    l2 = reached(aware, "l2")
    assert 0.3 < l2["low"] < l2["value"] < l2["high"]
    (answer,) = answers(aware)
    assert {one.defense for one in answer.told} <= {"gaussian-rdp-eps=8"}
    told = claims_of([answer], {})
    (unproven,) = [claim.words for claim in told if claim.kind == "unproven"]
    assert not any("ℓ2" in claim.words for claim in told if claim.kind != "unproven")
    assert unproven.startswith("Defenses without differential privacy give no guarantee.")
    assert f"ℓ2 penalty (m) {l2['value']:.3f} [{l2['low']:.3f}, {l2['high']:.3f}] at an accuracy of" in unproven


def test_references_that_do_not_know_the_defense_find_less_of_it(aware: pd.DataFrame, unaware: pd.DataFrame) -> None:
    knowing, not_knowing = (reached(frame, "l2", "lira_online") for frame in (aware, unaware))
    assert knowing["value"] > not_knowing["value"]


def test_rescaled_confidences_fool_an_attack_at_its_own_threshold_but_not_the_report(
    aware: pd.DataFrame, unaware: pd.DataFrame
) -> None:
    undefended = reached(aware, "none")
    own = reached(unaware, "cooled", "lira_online", "membership_advantage")
    assert own["value"] < undefended["value"] - 0.2  # with references that are not rescaled: this would mislead
    for frame in (aware, unaware):
        assert reached(frame, "cooled")["high"] >= undefended["value"] - 0.05
    assert reached(aware, "cooled")["value"] == pytest.approx(undefended["value"], abs=0.01)
    told = " ".join(claim.words for claim in claims_of(answers(aware), {}))
    assert f"cooled (m) {reached(aware, 'cooled')['value']:.3f}" in told


def test_the_undefended_model_is_nowhere_drawn_below_a_private_one_as_accurate(aware: pd.DataFrame) -> None:
    _, points = draw("pareto", aware, {})
    undefended = points[points["defense"] == "none"].iloc[0]
    for row in points[points["accountant"] != ""].itertuples():
        as_accurate = row.accuracy_high >= undefended["accuracy_low"]
        assert not (as_accurate and undefended["high"] < row.low)
    assert undefended["measured"] > points.loc[points["accountant"] != "", "high"].max()
