"""The claims of five papers: each verdict follows from its count, and the counts from our csv files."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dp_leakage.common.errors import UserError
from dp_leakage.papers.claims import BEGIN, HOLDS, IN_PART, NOT, UNTESTED, VERDICTS, judged, with_block

RESULTS = Path(__file__).parents[1] / "docs" / "results"
CLAIM = {"paper": "p", "where": "table 1", "claim": "less than 5", "test": "below 5", "file": "p/a.csv"}
RUNS = {"p/a.csv": "abc"}


@pytest.fixture(scope="module")
def claims() -> pd.DataFrame:
    return pd.read_csv(RESULTS / "claims.csv", keep_default_na=False)


def one(folder: Path, measured: list[float], **claim: Any) -> dict[str, Any]:
    """The verdict on a claim about a csv file with these numbers, of ε = 1, 2, …"""
    (folder / "p").mkdir(exist_ok=True)
    rows = [
        {"epsilon": index + 1, "measured": value, "low": value, "high": value} for index, value in enumerate(measured)
    ]
    pd.DataFrame(rows).to_csv(folder / "p" / "a.csv", index=False)
    claim = CLAIM | {"rows": "epsilon > 0", "holds": "measured < 5"} | claim
    return judged([claim], folder, RUNS).iloc[0].to_dict()


@pytest.mark.parametrize(
    ("small", "verdict"), [(10, HOLDS), (9, HOLDS), (8, IN_PART), (5, IN_PART), (4, NOT), (0, NOT)]
)
def test_a_verdict_is_by_the_share_of_comparisons_that_agree(small: int, verdict: str, tmp_path: Path) -> None:
    row = one(tmp_path, [1.0] * small + [9.0] * (10 - small))
    assert (row["verdict"], row["agree"], row["of"]) == (verdict, small, 10)
    assert row["run"] == "a.csv (abc)"


def test_rows_are_compared_in_pairs_and_only_those_that_are_wanted(tmp_path: Path) -> None:
    pairs = {"rows": "epsilon > 1", "against": "epsilon == 1", "holds": "measured > other"}
    assert one(tmp_path, [2.0, 1.0, 3.0], **pairs)["agree"] == 1
    assert one(tmp_path, [2.0, 1.0, 3.0], **pairs, only="epsilon == 3")["of"] == 1


def test_a_claim_about_an_order_is_judged_by_a_rank_correlation(tmp_path: Path) -> None:
    assert one(tmp_path, [1.0, 2.0, 9.0], rank="epsilon", holds="r > 0.8")["verdict"] == HOLDS
    assert one(tmp_path, [9.0, 2.0, 1.0], rank="epsilon", holds="r > 0.8")["number"] == "rank correlation −1"


def test_a_claim_about_nothing_and_a_file_without_a_commit_get_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no row of p/a\.csv is what 'less than 5' is about"):
        one(tmp_path, [1.0], rows="epsilon > 7")
    with pytest.raises(UserError, match=r"runs has no commit for p/a\.csv"):
        judged([CLAIM], tmp_path, {})


def test_the_block_of_a_page_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    claims = pd.DataFrame([one(tmp_path, [1.0])])
    page = with_block("# title\n\ntext\n", claims)
    assert page.startswith(f"# title\n\n{BEGIN}")
    assert page.endswith("\ntext\n")
    assert with_block(page, claims) == page


def test_each_paper_has_ten_claims_and_all_but_a_few_have_a_verdict_with_a_run(claims: pd.DataFrame) -> None:
    assert claims["paper"].value_counts().min() >= 10
    tested = claims[claims["verdict"] != UNTESTED]
    assert len(tested) >= 60
    assert tested["run"].str.contains(r"\.csv.*\([0-9a-f, ]{8,}\)$").all()
    assert set(claims["verdict"]) == set(VERDICTS)


def test_verdicts_follow_from_the_counts_of_the_table(claims: pd.DataFrame) -> None:
    for row in claims[claims["verdict"] != UNTESTED].itertuples():
        share = float(row.agree) / float(row.of)
        assert row.verdict == (HOLDS if share >= 0.9 else IN_PART if share >= 0.5 else NOT), row.claim


def test_counts_of_three_claims_by_another_way(claims: pd.DataFrame) -> None:
    """The headline of directional2023 from papers.csv, two claims by loops over a csv file."""
    counts = {row.claim: (int(row.agree), int(row.of)) for row in claims.itertuples() if row.of}
    prints = pd.read_csv(RESULTS / "papers.csv")
    table4 = prints[(prints["paper"] == "directional2023") & (prints["artefact"] == "table4")]
    ours = {(r.dataset, r.model, r.mechanism, float(r.epsilon)): r.measured for r in table4.itertuples()}
    pairs = [(v, ours[(d, m, "gaussian", e)]) for (d, m, k, e), v in ours.items() if k == "vmf" and e in (1, 50)]
    said = counts["VMF noise gives better accuracy than Gaussian noise at the same nominal ε"]
    assert said == (sum(vmf > gaussian for vmf, gaussian in pairs), len(pairs))

    table = pd.read_csv(RESULTS / "jayaraman2019" / "table5.csv")
    loss = {(r.accountant, r.epsilon): r.measured for r in table.itertuples() if r.metric == "accuracy_loss"}
    naive = [value for (accountant, epsilon), value in loss.items() if accountant == "naive" and epsilon <= 10]
    said = counts["Under naive composition softmax regression guesses up to ε = 10"]
    assert said == (sum(value >= 0.85 for value in naive), len(naive))

    table = pd.read_csv(RESULTS / "zhang2020" / "table1_full.csv")
    far = {(row["attack"], row["class"]): row["measured"] for row in table.to_dict("records")}
    nearer = [far[("inversion_l1", digit)] < far[("inversion_original", digit)] for digit in range(10)]
    assert counts["The enhanced attack comes nearer than the original one for every digit"] == (sum(nearer), 10)
