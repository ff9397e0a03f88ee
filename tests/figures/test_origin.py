"""A run at a reduced scale says so, and what data it saw, in every picture and csv."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.figures.style import encode
from dp_leakage.provenance.files import write_table
from dp_leakage.steps import figure
from dp_leakage.study import Study
from dp_leakage.study.file import load_studies
from dp_leakage.study.plan import figure_settings, report_settings
from dp_leakage.table.origin import beware, with_origin
from dp_leakage.table.published import read_published, without

REPO = Path(__file__).parents[2]
TABLES = """
from dp_leakage.table.tables import Table, Tables

FIGURE = {"caption": "Losses.", "needs": "training", "table": True}


def draw(metrics, settings, published):
    return Tables([Table("", ["loss"], [["0.5"]])], title=settings["title"]), metrics[["dataset", "loss"]]
"""
PLUGIN = """
from matplotlib.figure import Figure

def draw(metrics, settings, published):
    figure = Figure(figsize=(4, 1))
    figure.subplots().set_title(settings["title"])
    return figure, metrics[["dataset", "loss"]]
"""
SMOKE = "smoke", {"cifar100": "digits", "purchase100": "digits", "mnist": "mnist"}


def jayaraman(scale: str) -> Study:
    config = read_yaml(REPO / "config.yaml") | {"scale": scale}
    return next(iter(load_studies(config, [REPO / "workflow/studies/jayaraman2019/study.yaml"]).values()))


def test_the_sentence_names_the_scale_and_each_source_with_the_names_it_goes_by() -> None:
    words = beware(*SMOKE)
    assert "scale smoke" in words
    assert words.endswith("Its data: digits (called cifar100, purchase100); mnist.")
    assert beware("paper", SMOKE[1]) == ""


def test_every_row_of_a_reduced_figure_says_what_its_records_are() -> None:
    drawn = pd.DataFrame({"dataset": ["cifar100", "mnist"], "measured": [0.1, 0.2]})
    assert with_origin(drawn, *SMOKE)[["scale", "data_source"]].to_numpy().tolist() == [
        ["smoke", "digits"],
        ["smoke", "mnist"],
    ]
    assert with_origin(drawn[["measured"]], *SMOKE)["data_source"].tolist() == ["digits; mnist"] * 2
    assert with_origin(drawn, "paper", SMOKE[1]).equals(drawn)


def test_a_smoke_figure_of_cifar100_says_that_it_saw_digits() -> None:
    settings = figure_settings(jayaraman("smoke"), "fig2b")
    assert "CIFAR-100" in settings["settings"]["title"]
    assert (settings["scale"], settings["sources"]) == ("smoke", {"cifar100": "digits"})
    whole = figure_settings(jayaraman("paper"), "fig2b")
    assert (whole["scale"], whole["sources"]) == ("paper", {"cifar100": "cifar100"})
    assert report_settings(jayaraman("smoke"))["sources"] == {"cifar100": "digits", "purchase100": "purchase_like"}


def test_made_up_data_are_named_so_at_every_scale_and_have_no_print_beside_them() -> None:
    sources = {"cifar100": "cifar100", "purchase100": "purchase_like"}
    words = beware("paper", sources, ["purchase100"])
    assert words == "Made-up data, not compared with what is printed: purchase100."
    assert beware("smoke", sources, ["purchase100"]).endswith(words)
    drawn = pd.DataFrame({"dataset": ["cifar100", "purchase100"], "measured": [0.1, 0.2]})
    told = ["cifar100", "purchase_like (made-up data, not compared)"]
    assert with_origin(drawn, "paper", sources, ["purchase100"])["data_source"].tolist() == told
    printed = read_published(REPO / "workflow/studies/jayaraman2019/jayaraman2019.csv")
    left = without(printed, ["purchase100"])
    assert set(printed["dataset"]) - set(left["dataset"]) == {"Purchase-100"}
    assert len(left) == (printed["dataset"] != "Purchase-100").sum()
    assert without(printed, []).equals(printed)


def pixels(png: bytes) -> np.ndarray:
    with Image.open(BytesIO(png)) as picture:
        return np.asarray(picture.convert("L"))


def test_the_banner_stands_in_a_strip_of_its_own_and_hides_nothing() -> None:
    plain, marked = (pixels(encode(with_legend(), "png", banner=words)) for words in ("", beware(*SMOKE)))
    assert marked.shape[1] == plain.shape[1]
    strip = len(marked) - len(plain)
    assert (marked[:strip] < 200).any()
    # The layout is found at another resolution: single pixels at edges may differ.
    assert (marked[strip:] != plain).mean() < 0.01
    assert np.array_equal(marked[strip : strip + 60], plain[:60])  # the legend


def with_legend() -> Figure:
    drawn = Figure(figsize=(4, 2), layout="constrained", dpi=170)
    drawn.legend(handles=drawn.subplots().plot([0, 1], label="line"), loc="outside upper center")
    return drawn


def test_a_figure_with_a_banner_is_the_same_bytes_each_time() -> None:
    drawn = with_legend()
    first = [encode(drawn, form, banner="smoke") for form in ("png", "pdf")]
    assert [encode(drawn, form, banner="smoke") for form in ("png", "pdf")] == first
    assert first[1] != encode(with_legend(), "pdf")


def test_the_step_marks_the_figure_of_a_kind_that_knows_nothing_of_scales(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(PLUGIN)
    write_table(tmp_path / "curve.parquet", {"repeat": [0], "epoch": [1], "loss": [0.5]}, {"identity": "0" * 16})
    settings = {
        "columns": ["dataset", "model", "defense"],
        "cells": [[["cifar100", "mlp", "none"], [["curve", "0" * 16]]]],
        "needs": "training",
        "module": str(tmp_path / "plain.py"),
        "table": False,
        "settings": {"title": "CIFAR-100"},
    }
    found = {}
    for scale, source in (("smoke", "digits"), ("paper", "cifar100")):
        made = settings | {"scale": scale, "sources": {"cifar100": source}, "made_up": []}
        files = [tmp_path / f"{scale}.{form}" for form in ("pdf", "png", "csv")]
        figure.main(made, [tmp_path / "curve.parquet"], None, files)
        found[scale] = pixels(files[1].read_bytes()).shape, files[2].read_text()
    assert found["paper"][1] == "dataset,loss\ncifar100,0.5\n"
    assert found["smoke"][1] == "dataset,loss,scale,data_source\ncifar100,0.5,smoke,digits\n"
    assert found["smoke"][0][0] > found["paper"][0][0]


def test_the_step_marks_tables_too_and_keeps_those_that_are_current(tmp_path: Path) -> None:
    (tmp_path / "plain_tables.py").write_text(TABLES)
    write_table(tmp_path / "curve.parquet", {"repeat": [0], "epoch": [1], "loss": [0.5]}, {"identity": "0" * 16})
    made = {
        "columns": ["dataset", "model", "defense"],
        "cells": [[["cifar100", "mlp", "none"], [["curve", "0" * 16]]]],
        "needs": "training",
        "module": str(tmp_path / "plain_tables.py"),
        "table": True,
        "settings": {"title": "CIFAR-100"},
        "scale": "smoke",
        "sources": {"cifar100": "digits"},
        "made_up": [],
    }
    html, tex, csv = files = [tmp_path / f"t.{form}" for form in ("html", "tex", "csv")]
    figure.main(made, [tmp_path / "curve.parquet"], None, files)
    banner = beware("smoke", {"cifar100": "digits"})
    assert banner in html.read_text()
    assert banner in tex.read_text()
    assert csv.read_text() == "dataset,loss,scale,data_source\ncifar100,0.5,smoke,digits\n"
    before = [path.stat().st_ino for path in files]
    figure.main(made, [tmp_path / "curve.parquet"], None, files)
    assert [path.stat().st_ino for path in files] == before
