"""What stands across a figure of budgets, and that no bound drawn in it lies below what an attack could reach."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from dp_accounting.pld import privacy_loss_distribution
from matplotlib.lines import Line2D
from opacus.accountants.utils import get_noise_multiplier
from scipy.stats import norm
from synthetic import DELTA, bounded_frame, sigma

from dp_leakage.common.errors import UserError
from dp_leakage.figures import draw

FORMULAS = ("naive", "advanced", "zcdp")  # of which the noise is known at any ε


def as_drawn(line: Line2D, x: np.ndarray) -> np.ndarray:
    """How high a line stands at x: through its steps, or straight between its points on axes as they are."""
    across, up = (np.asarray(values, dtype=float) for values in line.get_data())
    if line.get_drawstyle() == "steps-pre":
        return up[np.searchsorted(across, x)]
    to_page = line.axes.transData.transform
    page = to_page(np.column_stack([across, up]))
    places = to_page(np.column_stack([x, np.full(len(x), up[0])]))[:, 0]
    heights = np.interp(places, page[:, 0], page[:, 1])
    return line.axes.transData.inverted().transform(np.column_stack([places, heights]))[:, 1]


def spent_by(noise: np.ndarray) -> np.ndarray:
    """The ε for replace-one neighbors that `synthetic.spent_rows` gives to shuffled batches with this noise."""
    mu = 10 / noise
    return 2.1 * (0.45 * mu**2 + 0.8 * mu * np.sqrt(2 * np.log(1 / DELTA)))


# ---------------------------------------------------------------------- the axis
def test_budgets_of_one_relation_stand_on_the_axis_and_the_others_are_named(quick: pd.DataFrame) -> None:
    whole, rows = draw("leakage", quick, {})
    private = rows[rows["accountant"] != ""]
    assert set(private["spent_neighbors"]) == {"replace_one"}
    assert "replace-one neighbors" in whole.axes[-1].get_xlabel()
    assert "Not drawn" not in whole.get_supxlabel()
    other = quick["defense"].str.contains("-rdp-") & (quick["neighbors"] == "replace_one")
    figure, rows = draw("leakage", quick[~(other & (quick["metric"] == "epsilon_spent"))], {})
    assert "rdp" not in set(rows["accountant"])
    assert set(rows.loc[rows["accountant"] != "", "spent_neighbors"]) == {"replace_one"}
    words = " ".join(figure.get_supxlabel().split())
    assert "Not drawn, as their ε spent is not known for these neighbors: cells of DP-SGD, RDP." in words


def test_a_claim_no_longer_makes_a_series_look_safer_than_another(quick: pd.DataFrame) -> None:
    """At one claimed ε naive composition has far more noise than RDP; over what was spent it stands far to the left."""
    _, rows = draw("leakage", quick, {"model": "mlp", "attack": "yeom"})
    spent = rows[rows["epsilon"] == 100].set_index("accountant")["epsilon_spent"]
    assert spent["naive"] < 0.5 * spent["rdp"]


def test_where_no_spent_epsilon_is_known_the_claimed_one_stands_across_unless_spent_is_asked_for(
    quick: pd.DataFrame,
) -> None:
    unknown = quick[quick["metric"] != "epsilon_spent"]
    figure, rows = draw("accuracy_loss", unknown, {})
    assert "epsilon_spent" not in rows
    assert figure.axes[-1].get_xlabel().startswith("claimed privacy budget")
    for settings in ({"across": "spent"}, {"neighbors": "replace_one"}):
        with pytest.raises(UserError, match="no accounted ε is known for these cells"):
            draw("accuracy_loss", unknown, settings)
    assert len(draw("accuracy_loss", quick[quick["accountant"] == ""], {})[1])  # nothing private


# ---------------------------------------------------------------------- bounds between budgets
@pytest.mark.parametrize("accountant", FORMULAS)
@pytest.mark.parametrize("across", ["claimed", "spent"])
def test_between_budgets_the_bound_drawn_is_nowhere_below_the_truth(
    accountant: str, across: str, quick: pd.DataFrame
) -> None:
    """The truth for every ε between the budgets: the noise of its formula, and what that proves of any test."""
    one = quick[quick["accountant"].isin([accountant, ""]) & (quick["model"] == "mlp")]
    figure, rows = draw("leakage", one, {"across": across, "attack": "yeom"})
    column = "epsilon" if across == "claimed" else "epsilon_spent"
    budgets = rows[rows["advantage_proven"] < 1].sort_values(column)
    claims = np.geomspace(budgets["epsilon"].min(), budgets["epsilon"].max(), 2000)
    noise = np.array([sigma(accountant, epsilon) for epsilon in claims])
    x = claims if across == "claimed" else spent_by(noise)
    inside = (x >= budgets[column].min()) & (x <= budgets[column].max())
    x, truth = x[inside], (2 * norm.cdf(10 / noise) - 1)[inside]
    (line,) = (line for line in figure.axes[0].lines if line.get_drawstyle() == "steps-pre")
    assert (as_drawn(line, x) >= truth - 1e-9).all()
    assert set(np.round(line.get_ydata(), 12)) == set(np.round(budgets["advantage_proven"], 12))


@pytest.fixture(scope="module")
def proves() -> Callable[[float], float]:
    """ε → the advantage that DP-SGD leaves possible whose noise is chosen for it by RDP, by two other libraries."""

    def advantage(epsilon: float) -> float:
        rate, steps = 50 / 800, 960
        chosen = {"target_delta": DELTA, "sample_rate": rate, "steps": steps, "epsilon_tolerance": 1e-3}
        noise = get_noise_multiplier(target_epsilon=epsilon, accountant="rdp", **chosen)
        profile = privacy_loss_distribution.from_gaussian_mechanism(
            noise, sampling_prob=rate, value_discretization_interval=1e-3
        )
        return float(profile.self_compose(steps).get_delta_for_epsilon(0.0))

    return advantage


def test_between_budgets_of_poisson_batches_the_bound_is_not_below_what_another_accountant_proves(
    quick: pd.DataFrame, proves: Callable[[float], float]
) -> None:
    """At ε = 30, a line from 10 to 100 says less than that noise allows; the steps say more."""
    grid = (1.0, 10.0, 100.0)
    frame = quick[(quick["accountant"] == "rdp") & quick["epsilon"].isin(grid) & (quick["model"] == "mlp")]
    at = {epsilon: proves(epsilon) for epsilon in grid}
    proven = frame["metric"] == "advantage_proven"
    frame = frame.assign(value=frame["value"].where(~proven, frame["epsilon"].map(at)))
    figure, _ = draw("leakage", frame, {"across": "claimed", "attack": "yeom"})
    (line,) = (line for line in figure.axes[0].lines if line.get_drawstyle() == "steps-pre")
    between = np.array([2.0, 5.0, 20.0, 30.0, 60.0])
    truth = np.array([proves(epsilon) for epsilon in between])
    assert (as_drawn(line, between) >= truth).all()
    joined = np.interp(np.log(between), np.log(grid), [at[epsilon] for epsilon in grid])
    assert joined[3] < truth[3] - 0.1  # .80 for .93


@pytest.mark.parametrize("across", ["claimed", "spent"])
def test_what_the_point_allows_is_drawn_nowhere_below_its_formula(across: str, quick: pd.DataFrame) -> None:
    figure, _ = draw("leakage", quick, {"across": across, "model": "mlp", "attack": "yeom", "point": True})
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert ("bound, add/remove ε" in labels) == (across == "claimed")  # the ε spent is for replace-one neighbors
    solid = next(line for line in figure.axes[0].lines if len(line.get_xdata()) > 100)
    x = np.geomspace(*np.array(solid.get_xdata())[[0, -1]], 5003)[1:-1]
    grown = np.exp(np.minimum(x, 300))
    assert (as_drawn(solid, x) >= (grown - 1 + 2 * DELTA) / (grown + 1) - 1e-12).all()


def test_the_limit_of_a_roc_is_drawn_nowhere_below_the_curve() -> None:
    figure, _ = draw("roc", bounded_frame(mu=1.0), {})
    limits = [line for ax in figure.axes for line in ax.lines if line.get_linewidth() == 1.6]
    assert limits
    for line in limits:
        x = np.geomspace(*np.array(line.get_xdata())[[0, -1]], 5003)[1:-1]
        assert (as_drawn(line, x) >= norm.cdf(norm.ppf(x) + 1) - 1e-12).all()
