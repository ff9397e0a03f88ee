"""Table 1 of jayaraman2019: its formulas by hand and against the exact ε, and that against the sum over all answers."""

from importlib.util import module_from_spec, spec_from_file_location
from itertools import product
from math import exp, log, prod

import numpy as np
import pandas as pd
import pytest
from loading import REPO


@pytest.fixture(scope="module")
def composition():
    spec = spec_from_file_location("composition", REPO / "workflow" / "studies" / "jayaraman2019" / "composition.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_formulas_give_what_they_give_by_hand(composition):
    found = composition.spent(0.01, 100, 1e-5)
    by_hand = {"naive": 1.0, "advanced": 0.490, "CDP": 0.485, "zCDP": 0.485, "RDP": 1.919}
    assert {name: found[name] for name in by_hand} == pytest.approx(by_hand, abs=0.0006)


@pytest.mark.parametrize(("each", "k"), [(0.3, 5), (1.0, 4)])
def test_the_exact_epsilon_is_that_of_all_answers_of_randomized_response(composition, each, k):
    """δ is the sum of max(0, P − e^ε Q) over all 2^k answers."""
    p = exp(each) / (1 + exp(each))
    epsilon = composition.optimal(each, k, 0.01)
    delta = 0.0
    for answers in product((True, False), repeat=k):
        likely, unlikely = (prod(p if a is side else 1 - p for a in answers) for side in (True, False))
        delta += max(0.0, likely - exp(epsilon) * unlikely)
    assert delta == pytest.approx(0.01, abs=1e-9)


@pytest.mark.parametrize("each", [0.001, 0.01, 0.1, 0.5, 1.0])
def test_no_formula_is_below_the_exact_epsilon(composition, each):
    found = composition.spent(each, 100, 1e-5)
    exact = found.pop("exact")
    assert all(np.isnan(epsilon) or epsilon >= exact - 1e-9 for epsilon in found.values())
    assert np.isnan(found["RDP"]) == (log(1e5) < each**2 * 100)


def test_it_draws_a_row_for_each_budget(composition):
    cells = {
        "metric": "test_accuracy", "repeat": "all", "dataset": "cifar100", "model": "mlp", "defense": ["none", "some"],
        "mechanism": ["none", "gaussian"], "accountant": ["", "zcdp"], "unit": ["", "example"],
        "block": ["", "whole"], "bound": ["", "clip"], "epochs": 100, "delta": [np.nan, 1e-5],
    }  # fmt: skip
    figure, rows = composition.draw(pd.DataFrame(cells), {"each": [0.01, 1.0], "title": "Table 1"}, None)
    assert figure is not None
    assert rows.groupby("each").size().to_dict() == {0.01: 6, 1.0: 6}
    assert set(rows["k"]) == {100}
