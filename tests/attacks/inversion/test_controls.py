"""The controls: pictures without a model, and examples of subclasses."""

import numpy as np
import pytest
from test_model_inversion import CLASSES, data_of, models_of

from dp_leakage.attacks.inversion.controls import EXAMPLES, SHOWN, score


def test_controls_are_as_far_as_numpy_says():
    data = data_of()
    frame, pictures = score(models_of("softmax_regression"), data, None, {"k_sub": 0}, 0)
    blank = {"black": 0.0, "gray": 0.5, "mean": data.x.mean(0)}
    assert set(frame["variant"]) == {*blank, "class_mean"}
    for row in frame.itertuples():
        own = data.x[data.y == row.target]
        image = own.mean(0) if row.variant == "class_mean" else blank[row.variant]
        expected = min(np.linalg.norm(other - image) for other in own)
        assert row.distance == pytest.approx(expected, rel=1e-5)
    assert pictures["mean"].shape == (2, CLASSES, *data.x.shape[1:])
    assert "subclasses" not in pictures


def test_subclasses_are_members_of_their_class():
    data = data_of()
    _, pictures = score(models_of("softmax_regression"), data, None, {"k_sub": 2}, 0)
    shown = pictures["subclasses"]
    assert shown.shape == (CLASSES, SHOWN, EXAMPLES, *data.x.shape[1:])
    for label in range(CLASSES):
        filled = shown[label][shown[label].any((2, 3, 4))]
        own = data.x[data.y == label]
        assert len(filled) == len(own)  # two subclasses hold them all
        assert all((own == image).all((1, 2, 3)).any() for image in filled)
