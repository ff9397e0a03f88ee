"""Rows of metrics: typed columns, those that one of the rows needs, and old files refused in a sentence."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_leakage.common.errors import UserError
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.rows import (
    MEASURED,
    QUALIFIERS,
    completed,
    fitting,
    is_empty,
    qualifiers,
    row,
    tidy,
    told,
    words_of,
)

HALF = Estimate(0.5, 0.4, 0.6)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=5)
VALUES = {str: TEXTS, float: st.floats(allow_nan=False), bool: st.booleans()}
SAID = st.fixed_dictionaries({}, optional={name: VALUES[one.kind] for name, one in QUALIFIERS.items()})


@given(st.lists(SAID, min_size=1, max_size=4))
def test_what_a_row_says_stands_in_its_columns_and_nothing_else_does(given_rows: list[dict]) -> None:
    frame = tidy(row("m", "all", HALF, **said) for said in given_rows)
    assert list(frame.columns) == [
        *MEASURED,
        *(name for name in QUALIFIERS if any(name in said for said in given_rows)),
    ]
    whole = completed(frame)
    assert set(qualifiers(whole)) == set(QUALIFIERS)
    assert set(told(whole)) == set(told(frame)) == set(qualifiers(frame))
    for place, said in enumerate(given_rows):
        found = {name: whole[name].iloc[place] for name in QUALIFIERS if not is_empty(whole[name]).iloc[place]}
        assert found == said
        assert fitting(whole, **said).iloc[place]


def test_columns_keep_their_kinds_when_cells_are_joined() -> None:
    cells = [tidy([row("a", "all", HALF, fpr=0.01)]), tidy([row("b", "all", HALF, valid=False, attack="x")])]
    whole = completed(pd.concat(cells, ignore_index=True))
    assert whole["fpr"].dtype == np.float64
    assert whole["valid"].tolist() == [pd.NA, False]
    assert whole["attack"].tolist() == ["", "x"]


def test_a_qualifier_that_does_not_apply_fits_any_value() -> None:
    frame = completed(tidy([row("a", "all", HALF), *(row("a", "all", HALF, fpr=rate) for rate in (0.01, 0.05))]))
    assert fitting(frame, fpr=0.05).tolist() == [True, False, True]
    assert fitting(frame, fpr="0.05").tolist() == [True, False, True]  # as a study file may have it


def test_words_are_those_of_the_columns() -> None:
    assert words_of(row("a", "all", HALF, fpr=0.001, attack="yeom", of="")) == "attack=yeom, fpr=0.001"


def test_an_unknown_qualifier_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match="metric 'ssim': 'layers' is not a column of metrics; did you mean 'layer'"):
        row("ssim", "all", HALF, layers="conv1")
