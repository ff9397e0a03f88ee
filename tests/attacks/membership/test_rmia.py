"""Robust membership inference."""

import numpy as np
import pytest
import torch

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.membership import rmia
from dp_leakage.attacks.queries import asked_records
from dp_leakage.attacks.signals import losses, positions
from dp_leakage.data.roles import asked_roles
from dp_leakage.errors import UserError

OFFLINE = ATTACKS["rmia"].settings | {"a": 0.4}
ONLINE = ATTACKS["rmia_online"].settings | {"a": 0.4}


def probabilities(models, data, rows):
    x, y = torch.from_numpy(data.x[rows]), torch.from_numpy(data.y[rows])
    p = models.logits(x).double().softmax(2)
    return p.gather(2, y.expand(len(p), -1)[..., None])[..., 0].numpy()


@pytest.mark.parametrize("gamma", [1.0, 2.0, 0.5])
def test_one_search_equals_all_pairs(gamma):
    rng = np.random.default_rng(0)
    of_x, of_z = np.round(rng.normal(size=(3, 200)), 1), np.round(rng.normal(size=(3, 300)), 1)
    dense = (of_x[:, :, None] - np.log(gamma) >= of_z[:, None, :]).mean(axis=2)
    np.testing.assert_array_equal(rmia.dominated(of_x, of_z, gamma), dense)


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
    of_x = probabilities(trained.target, data, record)[:, complete] / expected(record[complete])
    of_z = probabilities(trained.target, data, others) / expected(others)
    dense = (of_x[:, :, None] / of_z[:, None, :] >= 1).mean(axis=2)
    np.testing.assert_allclose(frame["score"].to_numpy().reshape(2, -1)[:, complete], dense, atol=0.02)


def test_auto_takes_the_a_that_exposes_the_first_reference_model_most(trained, signals):
    said = signals(trained.reference, trained.data)
    probability = np.exp(-losses(said.mean_margin()))
    assert rmia.best_a(probability, said.trained_on) in rmia.TRIED
    assert rmia.best_a(probability[:1], said.trained_on[:1]) == rmia.ALONE


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
