"""A report's context, from the synthetic study that the figures are tested with."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dp_leakage.figures import FIGURES, draw
from dp_leakage.figures.style import encode
from dp_leakage.report import DataFacts, ReportContext, ReportFigure, most_exposed
from dp_leakage.table.html import content
from dp_leakage.table.tables import Tables

sys.path.append(str(Path(__file__).parents[1] / "figures"))
import synthetic


def scores(seed: int = 0, n: int = 200, repeats: int = 3) -> pd.DataFrame:
    """Scores of one attack: the first members stand out."""
    rng = np.random.default_rng(seed)
    member = np.arange(n) < n // 2
    parts = []
    for repeat in range(repeats):
        score = rng.standard_normal(n) + 3 * (np.arange(n) < 5)
        parts.append(
            pd.DataFrame(
                {"repeat": repeat, "record": np.arange(n), "member": member, "score": score, "flagged": score > 1.5}
            )
        )
    return pd.concat(parts)


@pytest.fixture(scope="session")
def metrics() -> pd.DataFrame:
    return synthetic.quick_frame()


@pytest.fixture(scope="session")
def context(metrics: pd.DataFrame) -> ReportContext:
    return context_of(metrics)


def context_of(metrics: pd.DataFrame) -> ReportContext:
    figures = []
    for kind in ("accuracy_loss", "leakage", "spent_epsilon", "pareto", "members_exposed"):
        drawn, _ = draw(kind, metrics, {"model": "mlp"} if kind == "members_exposed" else {})
        shown = content(drawn) if isinstance(drawn, Tables) else encode(drawn, "png")
        figures.append(ReportFigure(f"fig_{kind}", kind, shown, FIGURES[kind].caption))
    assert {figure.kind for figure in figures} <= set(FIGURES)
    exposed = replace(most_exposed(scores()), cell=("digits", "mlp", "none", "yeom"))
    return ReportContext(
        study="quickstart",
        title="What a privacy budget buys on handwritten digits",
        metrics=metrics,
        figures=tuple(figures),
        data=(
            DataFacts(
                "digits",
                "scikit-learn's handwritten digits",
                "5f" * 32,
                {"target_members": 450, "target_nonmembers": 450, "shadow_pool": 897},
                "30 numbers",
                10,
                ("With 450 members and 450 non-members a membership advantage has a standard error of up to 0.03.",),
            ),
        ),
        models={"softmax_regression": "one linear layer", "mlp": "two hidden layers of 64"},
        attacks={"yeom": "loss threshold", "shokri": "shadow models", "yeom_attribute": ""},
        training={"optimizer": "adam", "learning_rate": "0.01", "epochs": "60", "batch_size": "50"},
        repeats=3,
        seed=20231,
        question="How much accuracy does each privacy budget cost, and how much do three attacks learn?",
        choices=("Principal components are computed from all records <and> are outside the privacy budget.",),
        versions={"python": "3.11.7", "torch": "2.13.0", "numpy": "2.4.6"},
        exposed=(exposed,),
    )
