"""How the report describes people who stand out."""

import numpy as np

from dp_leakage.data.raw import Raw
from dp_leakage.steps.report import _described


def test_people_are_called_by_their_names_and_said_to_have_so_many_records():
    x, y = np.zeros((6, 2), np.float32), np.array([0, 1, 0, 1, 0, 1])
    raw = Raw(x, y, ("a", "b"), person=np.array([0, 2, 2, 1, 2, 1]), people=("Ada", "Bo", "Cy"))
    assert _described(raw, [2, 0]) == {"shown": ["3 records", "1 record"], "called": ["Cy", "Ada"]}
    assert _described(raw._replace(people=()), [1]) == {"shown": ["2 records"], "called": None}
