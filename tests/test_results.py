"""A cell's models and outputs from Python, as docs/signals.md says."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.membership import yeom
from dp_leakage.common.errors import UserError
from dp_leakage.results import read_cell

PAGE = Path(__file__).parents[1] / "docs" / "signals.md"


@pytest.fixture(scope="module")
def cell(finished):
    return read_cell(finished.results / "digits" / "mlp" / "gaussian-rdp-eps=100")


def test_the_signals_are_what_the_models_in_the_folder_say(cell):
    said, x = cell.signals, torch.from_numpy(cell.data.x[cell.signals.record])
    np.testing.assert_array_equal(said.y, cell.data.y[said.record])
    label = torch.from_numpy(said.y)
    for model in range(said.size):
        with torch.no_grad():
            z = cell.models.module(model).double()(x.double())
        own = z.softmax(1).gather(1, label[:, None])[:, 0].numpy()
        np.testing.assert_allclose(1 / (1 + np.exp(-said.margin[0, model])), own, rtol=1e-4, atol=1e-6)
        clear = z.topk(2).values.diff().abs()[:, 0].numpy() > 1e-4
        np.testing.assert_array_equal(said.correct[model][clear], (z.argmax(1) == label).numpy()[clear])
        trained_on = np.isin(said.record, cell.data.roles["target_members"])
        np.testing.assert_array_equal(said.trained_on[model], trained_on)
    np.testing.assert_array_equal(said.role == "target_members", trained_on)


def test_class_scores_are_probabilities_of_the_records_asked_about(cell):
    np.testing.assert_allclose(cell.probability.sum(axis=2), 1, atol=1e-5)
    scored = cell.scored
    np.testing.assert_array_equal(scored.record, cell.signals.asked.record)
    own = np.take_along_axis(cell.probability, scored.y[None, :, None], 2)[..., 0]
    np.testing.assert_allclose(own, 1 / (1 + np.exp(-scored.margin[0])), rtol=1e-4, atol=1e-6)


def test_an_attack_on_the_arrays_gives_the_scores_of_the_cell(cell):
    said = yeom.score(cell.signals, None, ATTACKS["yeom"].settings, 0)
    np.testing.assert_array_equal(said.score.ravel(), cell.scores["yeom"]["score"])


def test_the_shadow_models_are_read_in_the_same_way(cell):
    shadow = read_cell(cell.folder.parent / "shadow")
    assert shadow.models.size == shadow.signals.size
    assert set(shadow.scored.role) == {"shadow_pool"}


def test_the_page_names_every_array(cell):
    named = set(re.findall(r"^\| `(\w+)` \| (?:int|bool|float|text)", PAGE.read_text(), re.MULTILINE))
    assert named == set(cell.signals.arrays()) | {"probability", "provenance"}


def test_a_folder_without_models_is_refused(tmp_path):
    with pytest.raises(UserError, match="holds no signals"):
        read_cell(tmp_path)
