"""Robust membership inference."""

import numpy as np
import pytest
import torch

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.membership import rmia
from dp_leakage.attacks.queries import asked_records
from dp_leakage.attacks.signals import losses, positions
from dp_leakage.common.errors import UserError
from dp_leakage.data.roles import asked_roles
from dp_leakage.metrics.rates import tpr_at

FIXED = {"a": 0.4, "temperature": 1.0}
OFFLINE, ONLINE = ATTACKS["rmia"].settings | FIXED, ATTACKS["rmia_online"].settings | FIXED


def probabilities(models, data, rows):
    x, y = torch.from_numpy(data.x[rows]), torch.from_numpy(data.y[rows])
    p = models.logits(x).double().softmax(2)
    return p.gather(2, y.expand(len(p), -1)[..., None])[..., 0].numpy()


def dominated(of_x, of_z, gamma):
    """The paper's score, by all pairs: for each x the share of z with exp(x − z) ≥ γ."""
    return (of_x[:, :, None] - of_z[:, None, :] >= np.log(gamma)).mean(axis=2)


@pytest.mark.parametrize("alpha", [0.5, 0.25, 0.1, 0.004])
def test_the_level_flags_what_dominates_a_share_of_the_others(alpha):
    rng = np.random.default_rng(0)
    of_x, of_z = np.round(rng.normal(size=(3, 200)), 1), np.round(rng.normal(size=(3, 250)), 1)
    flagged = of_x - rmia.level(of_z, alpha) >= 0
    np.testing.assert_array_equal(flagged, dominated(of_x, of_z, 1.0) >= 1 - alpha)


@pytest.mark.parametrize(("settings", "name"), [(OFFLINE, "reference"), (ONLINE, "reference_with_targets")])
def test_scores_equal_the_papers_formula_over_all_pairs(trained, signals, frame_of, settings, name):
    data, reference = trained.data, getattr(trained, name)
    record, _ = asked_records(data, asked_roles(data.roles))
    said = signals(reference, data)
    frame = frame_of(rmia, trained.target, data, said, settings)

    def trained_on(rows):
        return said.trained_on[:, positions(rows, said.record)]

    def expected(rows):
        p, inside = probabilities(reference, data, rows), trained_on(rows)
        result = []
        for i in range(len(rows)):
            out = p[~inside[:, i], i].mean()
            seen = inside[:, i].any() and settings["online"]
            result.append((out + (p[inside[:, i], i].mean() if seen else 0.4 * out + 0.6)) / 2)
        return np.array(result)

    usable = ~trained_on(data.roles["reference_pool"]).all(axis=0)
    others = data.roles["reference_pool"][usable]
    complete = ~trained_on(record).all(axis=0)
    of_x = np.log(probabilities(trained.target, data, record)[:, complete] / expected(record[complete]))
    of_z = np.log(probabilities(trained.target, data, others) / expected(others))
    score = frame["score"].to_numpy().reshape(2, -1)[:, complete]
    np.testing.assert_allclose(score - score[:, :1], of_x - of_x[:, :1], atol=1e-4)
    if not settings["online"]:
        share = dominated(of_x, of_z, 1.0)
        flagged = frame["flagged"].to_numpy().reshape(2, -1)[:, complete]
        clear = np.abs(score) > 1e-4
        np.testing.assert_array_equal(flagged[clear], (share >= 1 - settings["alpha"])[clear])


def test_the_online_form_flags_about_alpha_of_the_nonmembers(trained, signals, frame_of):
    """Two models, 200 non-members each: a standard error of .02, and few references."""
    said = signals(trained.reference_with_targets, trained.data)
    frame = frame_of(rmia, trained.target, trained.data, said, ATTACKS["rmia_online"].settings | {"alpha": 0.2})
    assert frame["flagged"][~frame["member"]].mean() == pytest.approx(0.2, abs=0.08)


def test_scores_have_no_ties_where_the_share_has_many(trained, signals, frame_of):
    said = signals(trained.reference_with_targets, trained.data)
    frame = frame_of(rmia, trained.target, trained.data, said, ONLINE)
    for _, run in frame.groupby("repeat"):
        assert run["score"].nunique() == len(run)


def test_auto_takes_what_gives_away_most_at_the_rate_that_counts():
    """Planted: members' margins differ where they are large, which probabilities at temperature 1 round away."""
    rng = np.random.default_rng(0)
    inside = np.stack([rng.permutation(2000) < 1000 for _ in range(8)])
    hard = rng.normal(12, 3, 2000)
    margin = hard + 1.5 * inside + 0.5 * rng.normal(size=inside.shape)
    settings = ATTACKS["rmia"].settings
    reach = rmia.chosen(margin, inside, settings)
    assert reach.temperature > 1
    assert rmia.chosen(margin, inside, settings | {"temperature": 1.0}).temperature == 1
    found = {}
    for a in rmia.A:
        for temperature in rmia.TEMPERATURES:
            by = rmia.Reach(float(a), float(temperature), False)
            scores = []
            for k in range(8):
                others = np.arange(8) != k
                ratio = -losses(margin[k] / temperature) - np.log(rmia.expected(margin[others], inside[others], by))
                member, told = inside[k], ~inside[others].all(axis=0)  # some reference was trained without it
                scores.append(tpr_at(ratio[None, told], member[told], 0.01).found.value)
            found[by] = np.mean(scores)
    assert found[reach] == max(found.values())


@pytest.mark.filterwarnings("error")
def test_a_record_whose_class_no_model_deems_possible_has_a_number_and_warns_of_nothing():
    inside = np.arange(8)[:, None] % 2 == np.arange(400)[None] % 2
    margin = np.full((8, 400), 3.0)
    margin[:, :50] = -2000.0  # e to that power is 0
    margin[0, 50:90] = 800.0
    reach = rmia.chosen(margin, inside, ATTACKS["rmia"].settings | {"a": 1.0})
    assert np.isfinite(np.log(rmia.expected(margin, inside, reach))).all()


def test_a_reference_alone_chooses_nothing(trained, signals):
    said = signals(trained.reference, trained.data)
    reach = rmia.chosen(said.mean_margin()[:1], said.trained_on[:1], ATTACKS["rmia"].settings)
    assert reach == (rmia.A[0], rmia.TEMPERATURES[0], False)


def test_records_z_that_every_reference_saw_count_nothing(trained, signals, frame_of):
    data, said = trained.data, signals(trained.reference, trained.data)
    seen_by_all = said.trained_on.all(axis=0) & (said.role == "reference_pool")
    assert seen_by_all.any()
    changed = signals(trained.target, data)
    changed.margin[:, :, seen_by_all] += 100
    before = frame_of(rmia, trained.target, data, said, OFFLINE)["score"].to_numpy()
    np.testing.assert_array_equal(rmia.score(changed, said, OFFLINE, 0).score.ravel(), before)


def test_a_study_without_a_reference_pool_is_refused(trained, signals, frame_of):
    roles = {name: rows for name, rows in trained.data.roles.items() if name != "reference_pool"}
    data = trained.data._replace(roles=roles)
    with pytest.raises(UserError, match="'reference_pool' has no records"):
        frame_of(rmia, trained.target, data, signals(trained.reference, data), OFFLINE)
