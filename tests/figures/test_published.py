"""The papers' prints in our words."""

from pathlib import Path

import pandas as pd
import pytest

from dp_leakage.metrics.rows import QUALIFIERS
from dp_leakage.table.published import KEYS, comparable, map_published, read_published, with_published

TABLES = {
    "table5": ("cifar100", "softmax_regression"),
    "table6": ("purchase100", "softmax_regression"),
    "table7": ("cifar100", "mlp"),
}
GRID = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 50, 100, 500, 1000]


@pytest.fixture(scope="module")
def mapped(printed: pd.DataFrame) -> pd.DataFrame:
    return map_published(printed)


def test_every_printed_row_is_mapped_or_says_why_not(mapped: pd.DataFrame, printed: pd.DataFrame) -> None:
    assert set(mapped["row"]) == set(printed.index)
    assert mapped["reason"].map(type).eq(str).all()
    fits = mapped[mapped["reason"] == ""]
    assert (fits[["dataset", "model", "mechanism", "metric"]] != "").all(axis=None)
    assert fits["epsilon"].isna().eq(fits["mechanism"] == "none").all()


@pytest.mark.parametrize("table", TABLES)
def test_every_row_of_tables_5_to_7_can_be_compared(table: str, mapped: pd.DataFrame) -> None:
    rows = mapped[mapped["artefact"] == table]
    assert (rows["reason"] == "").all()
    assert set(zip(rows["dataset"], rows["model"], strict=True)) == {TABLES[table]}
    private = rows[rows["mechanism"] == "gaussian"]
    for accountant in ("naive", "advanced", "zcdp", "rdp"):
        of = private[private["accountant"] == accountant]
        assert sorted(of.loc[of["metric"] == "accuracy_loss", "epsilon"]) == GRID
        for counting in ("mean", "all_runs"):
            for fpr in (0.01, 0.02, 0.05):
                exposed = of[(of["attack"] == "yeom") & (of["counting"] == counting) & (of["fpr"] == fpr)]
                assert sorted(exposed["epsilon"]) == GRID
    baseline = rows[rows["mechanism"] == "none"]
    assert set(zip(baseline["attack"], baseline["counting"], baseline["fpr"], strict=True)) == {
        ("yeom", "mean", fpr) for fpr in (0.01, 0.02, 0.05)
    }
    assert len(baseline) == 3


def test_values_read_by_eye_in_the_paper_arrive_where_they_belong(printed: pd.DataFrame) -> None:
    found = comparable(printed)

    def value(dataset: str, model: str, accountant: str, epsilon: float, metric: str, **said: object) -> float:
        wanted = {"mechanism": "gaussian", "unit": "example", "block": "whole", "epsilon": epsilon, "metric": metric}
        wanted |= {"dataset": dataset, "model": model, "accountant": accountant, **said}
        return found.loc[(found[[*wanted]] == [*wanted.values()]).all(axis=1), "published"].item()

    lr = ("cifar100", "softmax_regression")
    assert value(*lr, "naive", 100.0, "accuracy_loss") == 0.48
    assert value(*lr, "rdp", 1000.0, "members_exposed", attack="yeom", counting="mean", fpr=0.05) == 530
    assert value("cifar100", "mlp", "rdp", 1000.0, "membership_advantage", attack="yeom") == 0.399
    assert value("purchase100", "mlp", "advanced", 1000.0, "accuracy_loss") == 0.702


def test_where_table_and_text_print_the_same_number_the_table_is_compared(printed: pd.DataFrame) -> None:
    found = comparable(printed)
    loss = found[
        (found["dataset"] == "purchase100") & (found["metric"] == "accuracy_loss") & (found["epsilon"] == 1000)
    ]
    naive = loss[(loss["model"] == "softmax_regression") & (loss["accountant"] == "naive")]
    assert naive["artefact"].tolist() == ["table6"]
    assert naive["published"].tolist() == [0.12]
    assert not found.duplicated([*KEYS, *QUALIFIERS]).any()


def test_rows_of_other_papers_are_not_taken_for_ours(printed: pd.DataFrame) -> None:
    foreign = printed.head(1).assign(paper="other2020", dataset="Adult")
    assert map_published(foreign)["reason"].tolist() == ["dataset 'Adult' is not part of this workflow"]
    assert comparable(foreign).empty


@pytest.fixture(scope="module")
def directional() -> pd.DataFrame:
    return read_published(Path(__file__).parents[2] / "workflow/studies/directional2023/directional2023.csv")


def test_every_table_of_directional2023_can_be_compared_and_the_rest_says_why_not(directional: pd.DataFrame) -> None:
    mapped = map_published(directional)
    assert set(mapped["row"]) == set(directional.index)
    assert (mapped.loc[mapped["artefact"].str.startswith("table"), "reason"] == "").all()
    assert (mapped.loc[mapped["artefact"] == "text", "reason"] != "").all()
    assert not comparable(directional).duplicated([*KEYS, *QUALIFIERS]).any()


def test_values_of_directional2023_read_by_eye_arrive_where_they_belong(directional: pd.DataFrame) -> None:
    found = comparable(directional)
    columns = ["dataset", "model", "mechanism", "accountant", "unit", "block"]
    vmf, gauss = ("vmf", "per_step", "example", "row"), ("gaussian", "rdp", "example", "whole")
    none = ("none", "", "", "")

    def value(cell: tuple[str, ...], metric: str, **said: object) -> float:
        wanted = {**dict(zip(columns, cell, strict=True)), "metric": metric, **said}
        return found.loc[(found[[*wanted]] == [*wanted.values()]).all(axis=1), "published"].item()

    assert value(("cifar10_r", "mlp", *none), "membership_auc", attack="attack_r") == 0.82
    auc = value(("cifar10_r", "lenet", *vmf), "membership_auc", attack="attack_r", epsilon=500.0)
    assert auc == pytest.approx(0.571)
    assert value(("cifar10", "mlp", *gauss), "test_accuracy", epsilon=8.0) == pytest.approx(0.369)
    iga = {"attack": "iga", "weights": "initial"}
    mse = value(("lfw", "lenet", *vmf), "mse_standardized", epsilon=5.0, statistic="median", **iga)
    assert mse == 1.56
    ssim = value(("fashion_mnist", "lenet", *gauss), "ssim", epsilon=200.0, statistic="mean", **iga)
    assert ssim == 0.23
    more = {"attack": "attack_r", "against": "gaussian", "epsilon": 50.0}
    assert value(("cifar10_r", "mlp", *vmf), "membership_auc_difference", **more) == pytest.approx(-0.02)
    shokri = value(("cifar10_shokri", "mlp", *none), "balanced_accuracy", attack="shokri_trees")
    assert shokri == pytest.approx(0.535)


def test_a_print_stands_beside_the_bound_that_the_mechanism_usually_has_and_no_other(directional: pd.DataFrame) -> None:
    known = (directional["mechanism"] == "gaussian") & (directional["metric"] == "mi_auc")
    printed = directional[known].head(1)
    ours = map_published(printed).iloc[0]
    cells = pd.DataFrame([ours, ours]).assign(bound=["clip", "normalize"], low=0.0, high=1.0).reset_index(drop=True)
    joined = with_published(cells, printed)
    assert joined["published"].notna().tolist() == [True, False]
    assert joined["inside"].isna().tolist() == [False, True]


def test_prints_without_a_file_that_explains_their_names_are_not_compared(tmp_path: Path) -> None:
    columns = ("paper", "artefact", "dataset", "model", "mechanism", "epsilon", "setting", "metric", "value", "stderr")
    row = ("other2020", "table1", "MNIST", "mlp", "rdp", "1", "", "test_accuracy", 0.9, "")
    (tmp_path / "other2020.csv").write_text("\n".join(",".join(map(str, line)) for line in (columns, row)))
    printed = read_published(tmp_path / "other2020.csv")
    words = "no file beside the prints of other2020 says what their names are here"
    assert map_published(printed)["reason"].tolist() == [words]
    assert comparable(printed).empty


def test_a_paper_of_ones_own_is_explained_by_the_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "other2021.csv").write_text(
        "paper,artefact,dataset,model,mechanism,epsilon,setting,metric,value,stderr\n"
        "other2021,table1,MNIST,net,private,1,unit=percent,test_accuracy,90,\n"
    )
    (tmp_path / "other2021.py").write_text(
        "from dp_leakage.table.published import Names, by_names\n\n"
        "NAMES = Names({'net': 'mlp'}, {'private': ('gaussian', 'rdp')}, 60_000)\n\n\n"
        "def placed(row, printed):\n    return by_names(row, printed, NAMES)\n"
    )
    (found,) = comparable(read_published(tmp_path / "other2021.csv")).itertuples()
    assert (found.dataset, found.model, found.accountant, found.epsilon) == ("mnist", "mlp", "rdp", 1.0)
    assert (found.published, found.n_members) == (0.9, 60_000)
