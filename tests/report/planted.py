"""Studies whose truth is planted: what cells are, what they score, and the package's way from scores to a frame.

`Cell` and `World` say what is true. `draw` makes one study of a world: its scores and accuracies by chance, and all
else as the workflow's steps do. `truth` computes the numbers that the study estimates, without chance.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from dp_leakage.attacks.signals import Signals
from dp_leakage.audits import gaussian_dp
from dp_leakage.audits.claims import gaussian_epsilon
from dp_leakage.metrics import measure_membership, measure_strongest, measure_training
from dp_leakage.metrics.coin_audit import measure_coins
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.paired import right_answers
from dp_leakage.metrics.people import ASKED, RIGHT, RightAnswers, as_independent
from dp_leakage.metrics.rows import completed, row, tidy
from dp_leakage.metrics.runs import by_repeat
from dp_leakage.metrics.sources import Asked, measure_sources
from dp_leakage.metrics.thresholds import SHARES
from dp_leakage.privacy.accounting.rules import relation_of_game
from dp_leakage.privacy.accounting.tradeoff import TradeOff, gaussian
from dp_leakage.report import Acceptable

CUT = 1.0  # from which score on an attack itself names
DELTA = 1e-5
FPRS = (0.001, 0.01, 0.02, 0.05)
GRID = ndtri((np.arange(100_000) + 0.5) / 100_000)  # a normal distribution without chance
RATES = {0.01: 0.7, 0.1: 0.75}  # learning rates that were tried
TUNED_ON = 80
OWN = 0.5  # share of the variance that belongs to a record


class Cell(NamedTuple):
    """What is planted in one cell.

    Attributes:
        shifts: how much each attack's score of a record gains if it is in, for records that leak.
        accuracy: on new records.
        mu: of the Gaussian noise that it is said to be trained with, for the neighbors of the study's game; None: not
            private. An attack that gains more than such noise allows refutes it (`is_false`).
        sampler: of its batches.
        model: its architecture.
        rescaled: a defense that rescales or masks confidences: an increasing function of each attack's scores.
        proves: whether limits for the game are known; else only an ε.
    """

    shifts: tuple[float, ...]
    accuracy: float = 0.8
    mu: float | None = None
    sampler: str = "poisson"
    model: str = "mlp"
    rescaled: Callable[[np.ndarray], np.ndarray] | None = None
    proves: bool = True

    @property
    def defense(self) -> str:
        if self.mu is not None:
            return f"gaussian-{self.sampler}-mu={self.mu:g}"
        return "none" if self.rescaled is None else f"rescaled-{self.rescaled.__name__}"

    @property
    def key(self) -> tuple[str, str]:
        return self.model, self.defense


class World(NamedTuple):
    """What is planted in one study.

    Attributes:
        cells: with distinct keys.
        leaking: the share of records that leak.
        repeats, n: models and records, of which about half are members of each.
        n_test: new records on which accuracy is measured.
        per_person: how many of these new records belong to each person, and are equally hard.
        of_model: the share of the variance of what is right that belongs to a model.
        by_coins: whether coins put records in and out; else the members are fixed.
        digits: to which scores are rounded, which makes ties; None: not at all.
        apart: by how much the members' first feature, and with it half as much each score, lies above the others' if
            members and others come from two sources; None: from one. Members are fixed then.
        copies: how many records share each score's own part, such as copies of one person.
        guessing: the accuracy of guessing.
        outside: what no ε covers.
        aware: whether an attack learns from models under the same defense.
        tuned: whether learning rates were tried.
        acceptable: limits of the answer.
    """

    cells: tuple[Cell, ...]
    leaking: float = 1.0
    repeats: int = 6
    n: int = 200
    n_test: int = 500
    per_person: int = 1
    of_model: float = 0.0025
    by_coins: bool = True
    digits: int | None = None
    copies: int = 1
    apart: float | None = None
    guessing: float = 0.1
    outside: tuple[str, ...] = ()
    aware: bool = True
    tuned: bool = False
    acceptable: Acceptable = Acceptable()

    def cell(self, model: str, defense: str) -> Cell:
        (found,) = [cell for cell in self.cells if cell.key == (model, defense)]
        return found

    @property
    def private(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.mu is not None]

    @property
    def undefended(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.defense == "none"]

    def game(self, cell: Cell) -> str:
        """The neighbors between which the study's attacks choose."""
        return relation_of_game("coins" if self.by_coins else "fixed", cell.sampler)


def spent_of(world: World, cell: Cell) -> dict[str, float]:
    """The ε of a cell by the neighbors for which it is known: exchanging one is twice as far as leaving one out."""
    game = world.game(cell)
    mus = {game: cell.mu, "replace_one": cell.mu if game == "replace_one" else 2 * cell.mu}
    if cell.sampler == "poisson":
        mus |= {"add_remove": cell.mu / 2 if game == "replace_one" else cell.mu}
    return {relation: gaussian_epsilon(mu, DELTA) for relation, mu in mus.items()}


@cache
def curve_of(mu: float) -> tuple[TradeOff, float, float]:
    curve = gaussian(mu)
    return curve, curve.mu_bound, curve.regret


# ---------------------------------------------------------------------- one study
class Study(NamedTuple):
    """One study: metrics of all cells as the report reads them; per cell the attacks' scores, records' own parts and
    right answers.
    """

    world: World
    metrics: pd.DataFrame
    scores: dict[tuple[str, str], dict[str, pd.DataFrame]]
    owns: dict[tuple[str, str], list[np.ndarray]]
    tested: dict[tuple[str, str, str], RightAnswers]
    leaks: np.ndarray
    member: np.ndarray


def draw(world: World, rng: np.random.Generator) -> Study:
    repeats, n = world.repeats, world.n
    member = rng.random((repeats, n)) < 0.5
    if not world.by_coins:
        member[:] = rng.permutation(np.arange(n) % 2 == 0)
    leaks = rng.random(n) < world.leaking
    hard = np.repeat(rng.normal(size=world.n_test // world.per_person), world.per_person)
    x = None
    if world.apart is not None:
        x = rng.normal(size=(n, 3)) + world.apart * np.outer(member[0], [1, 0, 0])
    owns = {cell.key: [_own(world, rng) for _ in cell.shifts] for cell in world.cells}
    if x is not None:
        owns = {key: [own + 0.5 * x[:, 0] for own in of_cell] for key, of_cell in owns.items()}
    scores = {cell.key: _scores(world, cell, owns[cell.key], member, leaks, rng) for cell in world.cells}
    histories = {cell.key: _history(world, cell, hard, rng) for cell in world.cells}
    frames = [_metrics(world, cell, scores[cell.key], histories, x) for cell in world.cells]
    tested = {("d", *key): right_answers(history) for key, history in histories.items()}
    return Study(world, pd.concat(frames, ignore_index=True), scores, owns, tested, leaks, member)


def _own(world: World, rng: np.random.Generator) -> np.ndarray:
    return np.sqrt(OWN) * np.repeat(rng.normal(size=world.n), world.copies)[: world.n]


def _scores(
    world: World,
    cell: Cell,
    owns: list[np.ndarray],
    member: np.ndarray,
    leaks: np.ndarray,
    rng: np.random.Generator,
) -> dict[str, pd.DataFrame]:
    repeats, n = member.shape
    frames = {}
    for attack, (shift, own) in enumerate(zip(cell.shifts, owns, strict=True)):
        score = own + np.sqrt(1 - OWN) * rng.normal(size=(repeats, n)) + shift * (leaks & member)
        score = seen(world, cell, score).ravel()
        columns = {"repeat": np.repeat(np.arange(repeats), n), "record": np.tile(np.arange(n), repeats)}
        frames[f"attack_{attack}"] = pd.DataFrame(
            columns | {"member": member.ravel(), "score": score, "flagged": score > CUT}
        )
    return frames


def seen(world: World, cell: Cell, score: np.ndarray) -> np.ndarray:
    score = score if cell.rescaled is None else cell.rescaled(score)
    return score if world.digits is None else score.round(world.digits)


def _history(world: World, cell: Cell, hard: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    """Accuracies of the models on the same new records, of which some are harder than others."""
    own = np.sqrt(world.of_model) * rng.normal(size=(world.repeats, 1))
    chance = np.sqrt(1 - OWN - world.of_model) * rng.normal(size=(world.repeats, world.n_test))
    person = np.arange(world.n_test) // world.per_person
    tested = RightAnswers.of(np.sqrt(OWN) * hard + own + chance < ndtri(cell.accuracy), person)
    accuracies = dict.fromkeys(("train_accuracy", "test_accuracy"), tested.accuracies)
    answers = {RIGHT: list(tested.right), ASKED: [tested.asked] * world.repeats}
    return pd.DataFrame({"repeat": range(world.repeats), "epoch": 1} | accuracies | answers)


def _metrics(
    world: World,
    cell: Cell,
    scores: dict[str, pd.DataFrame],
    histories: dict[tuple[str, str], pd.DataFrame],
    x: np.ndarray | None,
) -> pd.DataFrame:
    """All rows of a cell, as measured/ATTACK, strongest, coins and training give them."""
    twin = histories.get((cell.model, "none"))
    n_test = as_independent(right_answers(histories[cell.key]))
    rows = measure_training(histories[cell.key], twin, n_train=n_test, n_test=n_test)
    for attack, frame in scores.items():
        rows += measure_membership(frame, attack, repeats=False)
    rows += measure_strongest(scores)
    if x is not None:
        found = {attack: by_repeat(frame, ["score"], ["record"]) for attack, frame in scores.items()}
        member, nothing = next(iter(found.values()))[1], np.zeros((world.repeats, world.n))
        asked = Asked(member, (x[:, 1] > 0).astype(int), x, nothing)
        rows += measure_sources({attack: arrays[0] for attack, (arrays, _) in found.items()}, asked)
    if world.tuned:
        rows.append(_given("learning_rate", max(RATES)))
        rows += [_given("tuning_accuracy", right, tried=rate, records=TUNED_ON) for rate, right in RATES.items()]
    if cell.mu is not None:
        rows += _proven(world, cell)
        if world.by_coins:
            rows += _audit(world, cell, scores["attack_0"])
    private = cell.mu is not None
    claimed = next(iter(spent_of(world, cell).values())) if private else np.nan
    columns = {
        "study": "s",
        "dataset": "d",
        "model": cell.model,
        "defense": cell.defense,
        "epochs": 1,
        "n_members": 100,
    }
    columns |= {"mechanism": "gaussian" if private else cell.defense, "accountant": "rdp" if private else ""}
    columns |= {"unit": "example" if private else "", "block": "", "bound": "", "epsilon": claimed}
    columns |= {"delta": DELTA if private else np.nan, "noise_multiplier": 1.0 if private else np.nan}
    return completed(tidy(rows)).assign(**columns)


def _given(metric: str, value: float, **said: object) -> dict:
    return row(metric, "all", Estimate(value, value, value), **said)


def _proven(world: World, cell: Cell) -> list[dict]:
    rows = [
        _given("epsilon_spent", epsilon, accounted_by="rdp", neighbors=relation, valid=True)
        for relation, epsilon in spent_of(world, cell).items()
    ]
    if not cell.proves:
        return rows
    curve, bound, regret = curve_of(cell.mu)
    said = {"neighbors": world.game(cell), "source": "profile" if cell.sampler == "poisson" else "gaussian"}
    numbers = {"advantage_proven": curve.advantage, "mu": cell.mu, "mu_bound": bound, "mu_regret": regret}
    rows += [_given(metric, value, **said) for metric, value in numbers.items()]
    return rows + [_given("tpr_proven", float(curve.tpr(fpr)), fpr=fpr, **said) for fpr in (0.001, 0.01)]


def _audit(world: World, cell: Cell, frame: pd.DataFrame) -> list[dict]:
    """An audit by the study's own coins, of (ε, δ) and of the mechanism's own curve."""
    shape = world.repeats, world.n
    member, margin = (frame[column].to_numpy().reshape(shape) for column in ("member", "score"))
    record, nothing = np.arange(world.n), np.zeros(shape, dtype=np.int32)
    pool = np.full(world.n, "pool")
    said = Signals(record, nothing[0], pool, member, margin[None].astype(float), member, nothing)
    return measure_coins(said, DELTA, len(world.private), world.game(cell), gaussian_dp(DELTA))


# ---------------------------------------------------------------------- what is true
@cache
def truth(world: World, cell: Cell, attack: int) -> dict[str, float]:
    """Numbers of one attack on a cell: by metric, TPRs as ``tpr FPR``."""
    apart = world.apart or 0.0
    drawn = GRID if world.apart is None else np.sqrt(1.25) * GRID
    kinds = [(drawn + apart / 2 + cell.shifts[attack], world.leaking), (drawn + apart / 2, 1 - world.leaking)]
    parts = [(seen(world, cell, values), share) for values, share in kinds if share > 0]
    outside = seen(world, cell, drawn)
    cuts = np.unique(np.concatenate([outside, *(values for values, _ in parts)]))

    def above(values: np.ndarray) -> np.ndarray:
        return 1 - np.searchsorted(values, cuts, "left") / len(values)  # GRID is in order, and all functions keep it

    fpr = np.append(above(outside), 0.0)
    tpr = np.append(sum(share * above(values) for values, share in parts), 0.0)
    named = [sum(share * (values > CUT).mean() for values, share in group) for group in (parts, [(outside, 1.0)])]
    found = {
        "reached_advantage": float((tpr - fpr).max()),
        "membership_advantage": named[0] - named[1],
        "balanced_accuracy": (1 + named[0] - named[1]) / 2,
        "membership_auc": float(-np.trapezoid(tpr, fpr)),
    }
    # A threshold names all records of its score, so of a share the next whole one.
    share = (tpr + fpr)[-2::-1] / 2  # rising, without the last point, which names nobody
    at = [len(cuts) - 1 - int(np.searchsorted(share, wanted - 1e-9)) for wanted in SHARES]
    found |= {f"share {wanted:g}": float(tpr[i] - fpr[i]) for wanted, i in zip(SHARES, at, strict=True)}
    # Between two points of the ROC, whose records are tied, a coin names.
    return found | {f"tpr {rate:g}": float(np.interp(rate, fpr[::-1], tpr[::-1])) for rate in FPRS}


def strongest(world: World, cell: Cell, key: str) -> float:
    """The largest such number of all attacks."""
    return max(truth(world, cell, attack)[key] for attack in range(len(cell.shifts)))


def loss(world: World, cell: Cell) -> float:
    """Of accuracy, against the truly best undefended model."""
    return 1 - cell.accuracy / max((one.accuracy for one in world.undefended), default=np.nan)


def keeps(world: World, cell: Cell) -> bool:
    return loss(world, cell) <= world.acceptable.accuracy_loss and cell.accuracy > world.guessing


def is_false(cell: Cell) -> bool:
    """Whether the noise that a cell is said to have is not there."""
    return cell.mu is not None and gained(cell) > cell.mu


def gained(cell: Cell) -> float:
    """The μ of the game that an attacker plays who knows a record's own part."""
    return max(cell.shifts) / np.sqrt(1 - OWN)


def protects(world: World, cell: Cell) -> bool:
    """Whether what the game allows is acceptable: as proven, or as the strongest attack reaches."""
    proven = cell.mu is not None and cell.proves and 2 * ndtr(cell.mu / 2) - 1 <= world.acceptable.advantage
    proven = proven and not is_false(cell)
    measured = strongest(world, cell, "reached_advantage") <= world.acceptable.advantage
    return proven or (world.acceptable.risk == "measured" and measured)


# ---------------------------------------------------------------------- worlds
def stretched(score: np.ndarray) -> np.ndarray:
    return np.exp(3 * score)


def masked(score: np.ndarray) -> np.ndarray:
    return np.minimum(score, 0.5)


def constant(score: np.ndarray) -> np.ndarray:
    return np.zeros_like(score)


def ladder(*shifts: float) -> tuple[Cell, ...]:
    """An undefended model, and three private ones that leak and cost the less and the more."""
    weaker = tuple(shift / 2 for shift in shifts)
    return (
        Cell(shifts),
        Cell(tuple(0.0 for _ in shifts), 0.6, mu=0.1),
        Cell(weaker, 0.74, mu=max(2 * max(weaker), 0.25)),
        Cell(shifts, 0.79, mu=max(2 * max(shifts), 4.0)),
    )


# Just beyond a limit: an advantage of .12 for .1, a loss of 12 % for 10 %. And just within both.
BEYOND = tuple(
    Cell((shift,), accuracy, mu=mu)
    for mu, (shift, accuracy) in zip((1.0, 1.1, 1.2, 1.3, 1.4, 1.5), [(0.3, 0.78), (0.05, 0.704)] * 3, strict=True)
)
WITHIN = tuple(Cell((0.2,), 0.736, mu=mu) for mu in (1.0, 1.2, 1.4))
WORLDS = {
    "nothing leaks": World(ladder(0.0, 0.0)),
    "nothing leaks, fixed members": World(ladder(0.0, 0.0), by_coins=False, repeats=3),
    "weak": World(ladder(0.3, 0.15), aware=False),
    "few records": World(ladder(0.5, 0.3), n=60, n_test=60, repeats=4),
    "many models": World(ladder(0.5), repeats=24, n=120),
    "equal attacks": World(ladder(0.6, 0.6, 0.6), repeats=4),
    "few leak": World((Cell((6.0, 3.0)), Cell((0.0, 0.0), 0.7, mu=0.2)), leaking=0.03, repeats=12),
    "few leak, fixed members": World(
        (Cell((8.0, 3.0)), Cell((0.0, 0.0), 0.7, mu=0.2)), leaking=0.1, by_coins=False, repeats=3, n=400
    ),
    "ties": World(ladder(0.5, 0.2), digits=0),
    "duplicates": World(ladder(0.5), copies=2),
    "one model": World(ladder(0.5, 0.3), by_coins=False, repeats=1, of_model=0.0),
    "rescaled and masked": World(
        (
            *ladder(0.5)[:2],
            *(Cell((0.5,), 0.8, rescaled=kind) for kind in (stretched, masked, constant)),
        )
    ),
    "neighbors": World(
        (
            Cell((0.6,)),
            Cell((0.1,), 0.78, mu=0.2, sampler="poisson"),
            Cell((0.1,), 0.78, mu=0.22, sampler="shuffle"),
            Cell((0.1,), 0.78, mu=0.24, sampler="wor"),
        ),
        n_test=2000,
    ),
    "neighbors, fixed members": World(
        (
            Cell((0.6,)),
            Cell((0.1,), 0.78, mu=0.24, sampler="poisson"),
            Cell((0.1,), 0.78, mu=0.22, sampler="shuffle"),
            Cell((0.1,), 0.78, mu=0.2, sampler="wor"),
        ),
        n_test=2000,
        by_coins=False,
        repeats=2,
    ),
    "PCA outside the budget": World(ladder(0.5), outside=("the PCA, fitted on 800 records",), tuned=True),
    "models alike": World(
        (
            *(Cell((0.4,), 0.8, model=model) for model in ("mlp", "wide", "deep")),
            *(Cell((0.1,), 0.79, mu=1.0, model=model) for model in ("mlp", "wide", "deep")),
        ),
        repeats=4,
    ),
    "accurate and protected": World(
        (Cell((0.8,)), Cell((0.1,), 0.79, mu=0.2), Cell((0.1,), 0.78, mu=0.15)), n_test=2000
    ),
    "accurate or protected": World(
        (Cell((1.0,)), Cell((0.8,), 0.79, mu=4.0), Cell((0.0,), 0.5, mu=0.1)), n=400, n_test=2000
    ),
    "just beyond the limits": World((Cell((0.8,)), *BEYOND), repeats=4, n=400, n_test=2000),
    "just within the limits": World((Cell((0.8,)), *WITHIN), repeats=4, n=600, n_test=2000),
    "hardly better than guessing": World((Cell((0.5,), 0.12), Cell((0.0,), 0.11, mu=0.2)), n_test=200),
    "no better than guessing": World((Cell((0.5,), 0.1), Cell((0.0,), 0.1, mu=0.2)), n_test=200),
    "no private model": World((Cell((0.5,)), Cell((0.5,), rescaled=stretched))),
    "a false claim beside a true one": World(
        (Cell((1.5,)), Cell((1.5,), 0.79, mu=0.2), Cell((0.1,), 0.78, mu=0.22)), n_test=2000
    ),
    "false claims alone": World(
        (Cell((1.5,)), Cell((1.5,), 0.79, mu=0.2), Cell((2.0,), 0.78, mu=0.1)), n_test=2000, by_coins=False
    ),
    "only proofs count": World(ladder(0.3), acceptable=Acceptable(risk="proven")),
    "people with several new records": World(ladder(0.5), n_test=600, per_person=6, repeats=4),
    "two repeats": World(ladder(0.5, 0.3), repeats=2, n=400),
    "three repeats, ties": World(ladder(0.5, 0.3), repeats=3, n=400, digits=0),
    "a rare class": World(
        (Cell((0.6,), 0.985), Cell((0.1,), 0.98, mu=0.2), Cell((0.3,), 0.983, mu=0.8)), guessing=0.98, n_test=2000
    ),
    "a rate of one in a thousand": World(
        (Cell((3.0, 1.0)), Cell((1.0, 0.4), 0.78, mu=1.5)), n=7000, repeats=3, n_test=1000
    ),
    "members and others from two sources": World(ladder(0.5, 0.3), by_coins=False, repeats=3, n=400, apart=1.0),
}
