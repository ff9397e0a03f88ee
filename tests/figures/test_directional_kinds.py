"""Pictures, differences between mechanisms, and tables of cells that a learning rate tells apart."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from skimage.metrics import structural_similarity
from synthetic import all_texts
from synthetic import directional_cell as cell
from synthetic import directional_row as measured

from dp_leakage.common.errors import UserError
from dp_leakage.figures import draw
from dp_leakage.metrics.rows import CELL, completed
from dp_leakage.table.frames import NUMBERS, OF_CELL
from dp_leakage.table.published import read_published


@pytest.fixture
def prints():
    return read_published(Path(__file__).parents[2] / "workflow/studies/directional2023/directional2023.csv")


def words(shown):
    return " ".join(all_texts(shown))


def test_differences_are_of_the_same_budget_and_stand_beside_the_print(directional, prints):
    figure, rows = draw("difference_table", directional, {"metrics": ["membership_auc/attack_r"]}, prints)
    assert rows["epsilon"].tolist() == [1, 50]
    np.testing.assert_allclose(rows["measured"], [-0.01, -0.05])
    np.testing.assert_allclose(rows["high"] - rows["measured"], np.sqrt(2) * 0.01)
    np.testing.assert_allclose(rows["published"], [-0.003, -0.009])
    assert rows["inside"].tolist() == [True, False]
    assert "VMF less Gaussian" in words(figure)


def test_a_table_beside_print_has_the_number_of_the_cell_with_as_many_records(directional, prints):
    _, rows = draw("compared_table", directional, {"metrics": ["membership_auc/attack_r"]}, prints)
    printed = rows.set_index(["mechanism", "epsilon"])["published"]
    assert printed["vmf", 50.0] == pytest.approx(0.508)
    assert printed["gaussian", 1.0] == pytest.approx(0.511)
    small = directional.assign(n_members=1000)
    _, rows = draw("compared_table", small, {"metrics": ["membership_auc/attack_r"]}, prints)
    assert rows["inside"].isna().all()


def test_learning_rates_get_rows_of_their_own_and_controls_no_print(directional, prints):
    rates = [measured(cell("gaussian", 1, rate), 0.6, attack="attack_r") for rate in (0.003, 0.01)]
    both = pd.concat([directional, pd.DataFrame(rates)], ignore_index=True)
    asked = {"metrics": ["membership_auc/attack_r"], "compare": False}
    figure, rows = draw("compared_table", both, asked, prints)
    assert sorted(rows.loc[rows["mechanism"] == "gaussian", "learning_rate"]) == [0.001, 0.001, 0.003, 0.01]
    assert rows["published"].isna().all()
    assert "learning rate" in words(figure)


def test_numbers_of_one_attack_are_chosen_by_their_setting():
    rows = [
        measured(cell("none"), value, "ssim", attack="iga", statistic=statistic, weights="initial")
        for statistic, value in (("mean", 0.3), ("median", 0.2))
    ]
    figure, found = draw("compared_table", completed(pd.DataFrame(rows)), {"metrics": ["ssim/iga/statistic=median"]})
    assert found["measured"].tolist() == [0.2]
    assert "median SSIM, IGA" in words(figure)


def test_batches_of_different_size_get_columns_of_their_own():
    rows = [
        measured(cell("none"), value, "recognized", attack="dlg", candidates=10, batch=batch, weights="initial")
        for batch, value in ((1, 0.9), (8, 0.2))
    ]
    asked = {"metrics": ["recognized/dlg/batch=1", "recognized/dlg/batch=8"]}
    figure, found = draw("compared_table", completed(pd.DataFrame(rows)), asked)
    assert found["measured"].tolist() == [0.9, 0.2]
    assert all(f"batch {size}" in words(figure) for size in (1, 8))


def test_several_metrics_over_the_spent_budget_get_a_panel_each(directional):
    spent = {"accounted_by": "rdp", "neighbors": "replace_one", "valid": True}
    auc = ("membership_auc", {"attack": "attack_r"}, 0.5)
    keep = [
        measured(cell(*key), value, metric, **said)
        for key, (metric, said, value) in product(
            [("gaussian", 1), ("gaussian", 50)], [("epsilon_spent", spent, 2.0), ("test_accuracy", {}, 0.4), auc]
        )
    ]
    settings = {"metric": ["test_accuracy", "membership_auc"], "attack": "attack_r", "neighbors": "replace_one"}
    figure, rows = draw("spent_axis", completed(pd.DataFrame(keep)), settings)
    assert set(rows["metric"]) == {"test_accuracy", "membership_auc"}
    assert len(figure.axes) == 2


# ---------------------------------------------------------------------------------- pictures
@pytest.fixture
def shown():
    """Two data sets; each cell's pictures: the originals blurred or noise, in two kinds, one with repeats in front."""
    rng = np.random.default_rng(0)
    entries = []
    for dataset, channels in (("cifar10", 3), ("fashion_mnist", 1)):
        original = rng.uniform(size=(4, channels, 9, 9)).astype(np.float32)
        for mechanism, epsilon, share in (("none", None, 0.1), ("gaussian", 1, 1.0)):
            made = (1 - share) * original + share * rng.uniform(size=original.shape).astype(np.float32)
            arrays = {"original": original, "weights=initial": np.stack([made, 0 * made]), "score": np.zeros(4)}
            entries.append((cell(mechanism, epsilon, dataset=dataset) | {"epsilon": epsilon}, "iga", arrays))
    return entries


def test_pictures_are_drawn_as_they_are_with_their_likeness_below(shown):
    figure, rows = draw("pictures", shown, {"count": 3, "title": "Rebuilt"})
    assert {*OF_CELL, *NUMBERS} <= set(rows.columns)
    assert not rows.duplicated([*CELL, "metric", "picture", "image"]).any()
    assert len(rows) == 2 * 2 * 3
    drawn = [ax.images[0].get_array() for ax in figure.axes]
    assert len(drawn) == 2 * 3 * 3
    original, made = shown[0][2]["original"], shown[0][2]["weights=initial"][0]
    np.testing.assert_array_equal(drawn[0], original[0].transpose(1, 2, 0))
    np.testing.assert_array_equal(drawn[3], made[0].transpose(1, 2, 0))
    first = structural_similarity(original[0], made[0], data_range=1, channel_axis=0)
    assert rows["measured"].iloc[0] == pytest.approx(first)
    texts = [text.get_text() for text in figure.texts]
    assert f"{first:.2f}" in texts
    assert {"CIFAR-10", "Fashion-MNIST", "original", "no defense"} <= set(texts)


def test_pictures_of_one_attack_or_data_set_alone(shown):
    other = [(columns, "dlg", made) for columns, _, made in shown]
    _, rows = draw("pictures", [*shown, *other], {"attack": "dlg", "dataset": "cifar10"})
    assert set(rows["attack"]) == {"dlg"}
    assert set(rows["dataset"]) == {"cifar10"}
    figure, _ = draw("pictures", [*shown, *other], {})
    assert any("DLG" in text.get_text() for text in figure.texts)
    with pytest.raises(UserError, match="its parts have no images"):
        draw("pictures", shown, {"attack": "decoder"})
