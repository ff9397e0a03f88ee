"""What a reader can choose among: every cell, with the metrics' numbers, and words that stay words."""

import json
import re
from dataclasses import replace

import pytest

from dp_leakage.privacy.rates import precision
from dp_leakage.report import ReportContext, answers, render
from dp_leakage.report.explore import Explored, explored, marks_of

TOKEN = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")


@pytest.fixture(scope="module")
def found(context: ReportContext) -> Explored:
    made = explored(answers(context.metrics))
    assert made is not None
    return made


def test_every_cell_is_a_point_with_the_metrics_own_numbers(context: ReportContext, found: Explored) -> None:
    rows = context.metrics[context.metrics["repeat"] == "all"]
    told = [claim.cells[0] for tiles in found.tiles for claim in tiles[:1]]
    accuracy = rows[rows["metric"] == "test_accuracy"].set_index(["model", "defense"])
    assert len(found.points) == len(accuracy) == len(set(told))
    for point, cell in zip(found.points, told, strict=True):
        assert point["x"] == pytest.approx(accuracy.loc[cell, ["value", "low", "high"]].tolist(), abs=1e-6)
        own = rows[(rows["model"] == cell[0]) & (rows["defense"] == cell[1])]
        strongest = own[own["attack"] == "strongest"]
        advantage = strongest[strongest["metric"] == "reached_advantage"].iloc[0]
        assert point["up"]["advantage"] == pytest.approx(advantage[["value", "low", "high"]].tolist(), abs=1e-6)
        proven = own[own["metric"] == "advantage_proven"]
        assert ("proven" in point["up"]) == (len(proven) == 1)
        if len(proven):
            assert point["up"]["proven"] == pytest.approx([proven["value"].iloc[0]], abs=1e-6)
        for row in strongest[strongest["metric"] == "reached_tpr"].itertuples():
            assert point["up"][f"tpr{row.fpr:g}"] == pytest.approx([row.value, row.low, row.high], abs=1e-6)
        assert set(point["up"]) == set(point["says"]) <= set(found.measures)


def test_it_begins_with_what_the_answer_is_about(context: ReportContext, found: Explored) -> None:
    (answer,) = answers(context.metrics)
    told = {(tiles[0].cells[0]) for tiles, point in zip(found.tiles, found.points, strict=True) if point["told"]}
    assert told == {(one.model, one.defense) for one in answer.told}
    assert found.groups[0] == next(point["group"] for point in found.points if point["told"])


def test_every_number_on_the_tiles_is_among_their_numbers(found: Explored) -> None:
    for tile in (tile for tiles in found.tiles for tile in tiles):
        given = set(TOKEN.findall(" ".join(number.shown for number in tile.numbers)))
        assert set(TOKEN.findall(f"{tile.figure} {tile.words}")) <= given, tile


def test_the_marks_are_the_best_undefended_models(context: ReportContext) -> None:
    rows = context.metrics[(context.metrics["repeat"] == "all") & (context.metrics["defense"] == "none")]
    best = rows[rows["metric"] == "test_accuracy"].sort_values("value").iloc[-1]
    own = rows[(rows["model"] == best["model"]) & (rows["metric"] == "reached_advantage")]
    (leak,) = own[own["attack"] == "strongest"]["value"]
    (answer,) = answers(context.metrics)
    assert marks_of(answer) == {"accuracy": best["value"], "measured": leak}
    drawn = set(re.findall(r'<b style="left: ([\d.]+)%">', render(context)))
    assert drawn == {f"{100 * best['value']:.1f}", f"{100 * leak:.1f}"}


def test_an_accusation_is_told_with_the_smallest_rate_and_its_limit(found: Explored) -> None:
    for point, tiles in zip(found.points, found.tiles, strict=True):
        if "accused" not in point:
            continue
        given = point["accused"]
        assert given["fpr"] == min(float(key[3:]) for key in point["up"] if key.startswith("tpr"))
        assert (given["most"] is None) == (tiles[2].figure == "–")
        if given["most"] is not None:
            assert precision(0.1, given["most"], given["fpr"]) >= 0.1 - 1e-9


def test_names_that_users_wrote_stay_data(context: ReportContext) -> None:
    evil = '</script><script>alert("&")'
    metrics = context.metrics.assign(model=context.metrics["model"].replace("mlp", evil))
    page = render(replace(context, metrics=metrics))
    (text,) = re.findall(r'<script type="application/json" id="cells">(.*?)</script>', page, re.S)
    assert not set("<>&") & set(text)
    assert evil in {point["group"] for point in json.loads(text)["points"]}
    assert page.count("<script") == 2


def test_a_study_without_attacks_has_nothing_to_choose(context: ReportContext) -> None:
    metrics = context.metrics[~context.metrics["metric"].str.startswith("reached_")]
    assert explored(answers(metrics)) is None
    page = render(replace(context, metrics=metrics, exposed=()))
    assert 'id="explore"' not in page
    assert 'class="instead"' not in page


def test_a_limit_that_takes_a_projection_as_known_says_so(context: ReportContext) -> None:
    found = answers(context.metrics)
    made, plain = explored(found, {"digits": ("the PCA, fitted on 800 records",)}), explored(found)
    proven = [point for point in made.points if "proven" in point["up"]]
    assert proven
    assert all("given the PCA, fitted on 800 records, no attack has" in point["says"]["proven"] for point in proven)
    known = {point["accused"]["given"] for point in made.points if point.get("accused", {}).get("most") is not None}
    assert known == {"the PCA, fitted on 800 records"}
    assert {point["accused"]["given"] for point in plain.points if "accused" in point} == {""}
