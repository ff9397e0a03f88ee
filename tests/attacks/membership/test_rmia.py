"""Robust membership inference."""

import numpy as np
import pytest
import torch

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.membership import rmia
from dp_leakage.attacks.membership.references import trained_on
from dp_leakage.attacks.signals import target_records
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
def test_scores_equal_the_papers_formula_over_all_pairs(trained, settings, name):
    data, reference = trained.data, getattr(trained, name)
    record, _ = target_records(data)
    fitted = rmia.fit(reference, data, settings, 0)
    frame = rmia.score(trained.target, data, fitted, settings, 0)

    def expected(rows):
        p, inside = probabilities(reference, data, rows), trained_on(reference, rows)
        result = []
        for i in range(len(rows)):
            out = p[~inside[:, i], i].mean()
            seen = inside[:, i].any() and settings["online"]
            result.append((out + (p[inside[:, i], i].mean() if seen else 0.4 * out + 0.6)) / 2)
        return np.array(result)

    usable = ~trained_on(reference, data.roles["reference_pool"]).all(axis=0)
    others = data.roles["reference_pool"][usable]
    complete = ~trained_on(reference, record).all(axis=0)
    of_x = probabilities(trained.target, data, record)[:, complete] / expected(record[complete])
    of_z = probabilities(trained.target, data, others) / expected(others)
    dense = (of_x[:, :, None] / of_z[:, None, :] >= 1).mean(axis=2)
    np.testing.assert_allclose(frame["score"].to_numpy().reshape(2, -1)[:, complete], dense, atol=0.02)


def test_auto_takes_the_a_that_exposes_the_first_reference_model_most(trained):
    fitted = rmia.fit(trained.reference, trained.data, OFFLINE | {"a": "auto"}, 0)
    assert fitted["a"][0] in rmia.TRIED
    alone = trained.reference
    alone = type(alone)(alone.layers, {n: v[:1] for n, v in alone.parameters.items()}, alone.train_indices[:1])
    assert rmia.fit(alone, trained.data, OFFLINE | {"a": "auto"}, 0)["a"][0] == rmia.ALONE


def test_records_z_that_every_reference_saw_are_left_out(trained):
    fitted = rmia.fit(trained.reference, trained.data, OFFLINE, 0)
    seen_by_all = trained_on(trained.reference, trained.data.roles["reference_pool"]).all(axis=0)
    assert seen_by_all.any()
    rows = trained.data.roles["reference_pool"][~seen_by_all]
    np.testing.assert_array_equal(fitted["population"], np.sort(rows))


def test_a_study_without_a_reference_pool_is_refused(trained):
    roles = {name: rows for name, rows in trained.data.roles.items() if name != "reference_pool"}
    with pytest.raises(UserError, match="'reference_pool' has no records"):
        rmia.fit(trained.reference, trained.data._replace(roles=roles), OFFLINE, 0)
