"""A release states the study's measure of use, where that is not accuracy."""

import numpy as np
from sklearn.metrics import roc_auc_score

from dp_leakage.release.accuracy import use_of
from dp_leakage.release.card import _accuracy
from dp_leakage.release.outside import follows_from

ACCURACY = {"accuracy": 0.97, "accuracy_interval": [0.95, 0.98], "accuracy_on": 300, "largest_class": 0.95}


def rare() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = (np.arange(300) < 15).astype(np.int64)
    sure = 1 / (1 + np.exp(-rng.normal(size=300) - 2 * y))
    return y, np.stack([1 - sure, sure], axis=1)


def test_it_is_what_scikit_learn_finds_with_an_interval_and_a_guess():
    y, told = rare()
    found = use_of("auroc", y, told, y, None)["utility"]
    assert (found["name"], found["label"], found["guessing"]) == ("auroc", "AUROC", 0.5)
    assert np.isclose(found["value"], roc_auc_score(y, told[:, 1]))
    assert found["interval"][0] < found["value"] < found["interval"][1]
    assert use_of("accuracy", y, told, y, None) == {}


def test_the_card_and_the_list_of_what_epsilon_leaves_out_name_the_measure():
    y, told = rare()
    model = ACCURACY | use_of("auroc", y, told, y, None) | {"columns": []}
    assert f"Its AUROC on these records is {model['utility']['value']:.3f} (95 % interval: " in _accuracy(model)
    assert "a guess has 0.500." in _accuracy(model)
    assert "another measure" not in _accuracy(ACCURACY)
    measured = {"attacks_run": []}
    selection = {"score_noise": None}
    statement = {"unit": "one record", "model": model, "selection": selection, "measured": measured}
    said = " ".join(follows_from(statement))
    assert "Accuracy, AUROC and the share of the largest class were measured on 300 records" in said
    assert "The best training was chosen by that AUROC" in said
