"""Synthetic metrics that behave like real ones: all follows from the noise, and the noise from the accountant."""

from collections.abc import Iterator
from itertools import product
from math import log, sqrt
from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.metrics import measure_inversion
from dp_leakage.metrics.rows import CELL, MEASURED, QUALIFIERS, completed
from dp_leakage.privacy.accounting.tradeoff import gaussian
from dp_leakage.privacy.rates import FPR_OF_CURVE
from dp_leakage.table.tables import Tables

DELTA = 1e-5
PAPER_GRID = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 50, 100, 500, 1000)
QUICK_GRID = (0.1, 1, 10, 50, 100, 1000)
RDP_SIGMA = {
    0.01: 525,
    0.05: 150,
    0.1: 70,
    0.5: 13.8,
    1: 7,
    5: 1.669,
    10: 1.056,
    50: 0.551,
    100: 0.445,
    500: 0.275,
    1000: 0.219,
}
ATTACKS = {"yeom": 0.9, "shokri": 0.7, "yeom_attribute": 0.5}
# model: (test accuracy, train accuracy, leakage of the undefended model)
MODELS = {"softmax_regression": (0.155, 0.225, 0.09), "mlp": (0.168, 1.0, 0.75)}


def sigma(accountant: str, epsilon: float, epochs: int = 100) -> float:
    k, d = epochs, DELTA
    if accountant == "naive":
        return k * sqrt(2 * log(1.25 * k / d)) / epsilon
    if accountant == "advanced":
        return sqrt(k * log(2.5 * k / d)) * (sqrt(log(2 / d) + 2 * epsilon) + sqrt(log(2 / d))) / epsilon
    if accountant == "zcdp":
        return sqrt(k / 2) * (sqrt(log(1 / d) + epsilon) + sqrt(log(1 / d))) / epsilon
    return RDP_SIGMA[epsilon]


def spent_rows(accountant: str, noise: float, epsilon: float, epochs: int = 100) -> Iterator[tuple[dict, float]]:
    def by(accountant: str, neighbors: str, valid: bool = True, **more: str) -> dict:
        return {"accounted_by": accountant, "neighbors": neighbors, "valid": valid, **more}

    mu = sqrt(epochs) / noise
    gdp = 0.45 * mu**2 + 0.8 * mu * sqrt(2 * log(1 / DELTA))
    zcdp = mu**2 / 2 + mu * sqrt(2 * log(1 / DELTA))
    if accountant == "rdp":
        yield by("rdp", "add_remove"), 0.9 * epsilon
        yield by("pld", "add_remove"), 0.8 * epsilon
        yield by("pld", "replace_one"), 1.6 * epsilon
        return
    naive = epochs * sqrt(2 * log(1.25 * epochs / DELTA)) / noise
    yield by("naive", "zero_out", naive < epochs), naive
    yield by("zcdp", "zero_out"), zcdp
    yield by("gdp", "zero_out"), gdp
    yield by("gdp", "replace_one"), 2.1 * gdp
    yield by("rdp", "add_remove", False, sampling="hypothetical_poisson"), max(0.003, 0.12 * gdp)


def proven_rows(mu: float) -> Iterator[tuple[str, dict, float]]:
    """What noise with this μ for replace-one neighbors proves."""
    curve, said = gaussian(mu), {"neighbors": "replace_one", "source": "gaussian"}
    yield "advantage_proven", said, curve.advantage
    yield "mu", said, mu
    for fpr in FPR_OF_CURVE:
        yield "tpr_proven", said | {"fpr": fpr}, float(curve.tpr(fpr))


def cell_rows(model: str, noise: float | None, repeats: int, n: int, rng: np.random.Generator) -> Iterator[dict]:
    """Rows of one cell's metrics: value, interval, and the repeats beside "all"."""
    test, train, leak = MODELS[model]
    kept = 1.0 if noise is None else 1 / (1 + (noise / 5.5) ** 1.25)
    chance = 0.01 / test
    kept = chance + (1 - chance) * kept

    def rows(metric: str, mean: float, spread: float, **said: str | float) -> Iterator[dict]:
        values = mean + spread * rng.standard_normal(repeats)
        reach = 1.96 * spread + 1e-9
        for repeat, value in [*enumerate(values), ("all", float(np.mean(values)))]:
            yield {
                "metric": metric,
                "repeat": str(repeat),
                "value": value,
                "low": value - reach,
                "high": value + reach,
                **said,
            }

    memorized = (0.0 if noise is None else noise / 0.5) + 1e-9
    leaking = leak / (1 + memorized**1.1)
    yield from rows("train_accuracy", test * kept + (train - test) * leaking / leak, 0.004)
    yield from rows("test_accuracy", test * kept, 0.002)
    yield from rows("accuracy_loss", 0.0 if noise is None else 1 - kept, 0.0 if noise is None else 0.012)
    record_noise = 0.7 / sqrt(n)
    for attack, strength in ATTACKS.items():
        for definition in ("gap", "released") if attack == "yeom_attribute" else ("",):
            metric = "attribute_advantage" if definition else "membership_advantage"
            own = {"attack": attack} | ({"definition": definition} if definition else {})
            yield from rows(metric, strength * leaking, record_noise, **own)
            if not definition:
                yield from rows("reached_advantage", strength * leaking, record_noise, **own)
                tpr = 0.01 + strength * leaking / 2
                tprs = list(rows("reached_tpr", tpr, record_noise / 3, **own, fpr=0.01))
                yield from tprs
                if attack == "yeom":
                    yield from (row | {"attack": "strongest", "of": "yeom"} for row in tprs)
                yield from rows("membership_auc", 0.5 + strength * leaking / 2, record_noise / 2, **own)
    strongest = {"attack": "strongest", "of": "yeom"}
    yield from rows("reached_advantage", ATTACKS["yeom"] * leaking, record_noise, **strongest)
    for fpr, (counting, factor) in product((0.01, 0.02, 0.05), {"mean": 1.0, "all_runs": 0.2}.items()):
        count = n * fpr * factor * (1 + 3 * leaking)
        for row in rows("members_exposed", count, sqrt(count) * 0.5, attack="yeom", counting=counting, fpr=fpr):
            if counting == "mean" or row["repeat"] == "all":
                yield {**row, "low": max(0, row["low"])}


def study_frame(study: str, dataset: str, grid: tuple[float, ...], repeats: int, n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    out: list[dict] = []
    private = [
        ("gaussian", accountant, epsilon) for accountant in ("naive", "advanced", "zcdp", "rdp") for epsilon in grid
    ]
    plain = [(mechanism, "", float("nan")) for mechanism in ("none", "l2", "dropout")]
    for model, (mechanism, accountant, epsilon) in product(MODELS, [*plain, *private]):
        noise = sigma(accountant, epsilon) if accountant else None
        cell = {
            "study": study,
            "dataset": dataset,
            "model": model,
            "defense": f"gaussian-{accountant}-eps={epsilon:g}" if accountant else mechanism,
            "mechanism": mechanism,
            "accountant": accountant,
            "unit": "example" if accountant else "",
            "block": "whole" if accountant else "",
            "bound": "clip" if accountant else "",
            "epsilon": epsilon,
            "delta": DELTA if accountant else float("nan"),
            "noise_multiplier": noise if accountant else float("nan"),
            "epochs": 100,
            "n_members": n,
            "n_records": n,
            "n_nonmembers": n,
        }
        shrink = {"l2": 1.5, "dropout": 0.8}.get(mechanism)
        rows = list(cell_rows(model, noise if shrink is None else 0.1 * shrink, repeats, n, rng))
        if noise is not None:
            numbers = [
                ("noise_multiplier", {}, noise),
                *(("epsilon_spent", s, v) for s, v in spent_rows(accountant, noise, epsilon)),
            ]
            rows += [
                {"metric": metric, "repeat": "all", "value": value, "low": value, "high": value, **said}
                for metric, said, value in [*numbers, *proven_rows(2 * sqrt(100) / noise)]
            ]
        out += [{**cell, **row} for row in rows]
    return completed(pd.DataFrame(out))


def history_frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    rows = []
    for defense, accountant, epsilon, top in (
        ("none", "", float("nan"), 0.95),
        ("gaussian-rdp-eps=1", "rdp", 1.0, 0.6),
        ("gaussian-rdp-eps=10", "rdp", 10.0, 0.8),
        ("gaussian-zcdp-eps=10", "zcdp", 10.0, 0.5),
    ):
        cell = {
            "study": "quickstart",
            "dataset": "digits",
            "model": "mlp",
            "defense": defense,
            "accountant": accountant,
            "epsilon": epsilon,
        }
        cell |= {
            "mechanism": "gaussian" if accountant else "none",
            "unit": "example" if accountant else "",
            "block": "whole" if accountant else "",
            "bound": "clip" if accountant else "",
        }
        cell |= {
            "delta": DELTA if accountant else float("nan"),
            "noise_multiplier": sigma(accountant, epsilon) if accountant else float("nan"),
        }
        for repeat, epoch in product(range(3), range(5, 101, 5)):
            test = top * (1 - np.exp(-epoch / 15)) + 0.01 * rng.standard_normal()
            spent = {"epsilon_spent": epsilon * sqrt(epoch / 100)} if accountant else {"epsilon_spent": float("nan")}
            rows.append(
                {
                    **cell,
                    "repeat": repeat,
                    "epoch": epoch,
                    "loss": 1.0,
                    "test_accuracy": test,
                    "train_accuracy": test + 0.0004 * epoch,
                    **spent,
                }
            )
    return pd.DataFrame(rows)


def lambda_frame() -> pd.DataFrame:
    rows = []
    for model, strength in product(MODELS, (0.0, 1e-8, 1e-6, 1e-5, 1e-4, 1e-2)):
        cell = {
            "study": "s",
            "dataset": "cifar100",
            "model": model,
            "defense": f"l2-{strength:g}",
            "mechanism": "l2",
            "accountant": "",
            "unit": "",
            "block": "",
            "bound": "",
        }
        cell |= {
            "epsilon": float("nan"),
            "delta": float("nan"),
            "noise_multiplier": float("nan"),
            "n_members": 10_000,
            "n_records": 10_000,
            "n_nonmembers": 10_000,
        }
        test = 0.16 - 0.01 * (np.log10(strength + 1e-9) + 5) ** 2 / 16
        for metric, value in (("train_accuracy", 2 * test), ("test_accuracy", test)):
            rows.append(
                {
                    **cell,
                    "l2": strength,
                    "metric": metric,
                    "repeat": "all",
                    "value": value,
                    "low": value - 0.005,
                    "high": value + 0.005,
                }
            )
    return completed(pd.DataFrame(rows))


def quick_frame() -> pd.DataFrame:
    """Like quickstart: one small data set, two models, six budgets, three repeats."""
    return study_frame("quickstart", "digits", QUICK_GRID, 3, 450)


def persons_frame() -> pd.DataFrame:
    """Like quickstart for persons: half of the budgets hide a person; single records tell half as much."""
    frame = quick_frame()
    frame.loc[frame["epsilon"].isin(QUICK_GRID[::2]), ["mechanism", "unit"]] = "person"
    pairs = {"reached_advantage": "record_advantage", "reached_tpr": "record_tpr", "membership_auc": "record_auc"}
    of_records = frame[frame["metric"].isin(pairs) & (frame["repeat"] == "all")]
    halved = of_records.assign(metric=of_records["metric"].map(pairs))
    halved[["value", "low", "high"]] /= 2
    return pd.concat([frame, halved], ignore_index=True)


def _cells(frame: pd.DataFrame) -> pd.DataFrame:
    """A row of each cell, without qualifiers."""
    cells = frame[frame["repeat"] == "all"].drop_duplicates(CELL)
    return completed(cells.drop(columns=[*QUALIFIERS]))


def guesses_frame() -> pd.DataFrame:
    """Like quickstart, with two attacks on attributes beside imputation."""
    frame, rng = quick_frame(), np.random.default_rng(3)
    cells = _cells(frame)
    wanted = [
        ("attribute_accuracy", {"by": by, "of": of})
        for by, of in product(("attack", "imputation"), ("members", "nonmembers"))
    ]
    wanted += [("attribute_added", {"of": of}) for of in ("members", "nonmembers", "difference")]
    rows = []
    for attack, (metric, said) in product(("csmia", "learned_attribute"), wanted):
        value = rng.uniform(0.2, 0.4, len(cells))
        numbers = {"value": value, "low": value - 0.1, "high": value + 0.1}
        rows.append(cells.assign(metric=metric, attack=attack, **said, **numbers))
    return pd.concat([frame, *rows], ignore_index=True)


def groups_frame() -> pd.DataFrame:
    """Like quickstart, with two attacks measured in 15 classes, of which the last has nobody outside."""
    frame, rng = quick_frame(), np.random.default_rng(4)
    cells = _cells(frame).assign(by="class")
    rows = [cells.assign(metric="group_records", group=str(g), value=40.0 + g) for g in range(15)]
    for attack, group, metric in product(("yeom", "lira"), range(15), ("advantage", "auc", "excess")):
        if (group, metric) == (14, "excess"):
            continue
        value = rng.uniform(0.0, 0.4, len(cells))
        numbers = {"value": value, "low": value - 0.1, "high": value + 0.1}
        rows.append(cells.assign(metric=f"group_{metric}", attack=attack, group=str(group), **numbers))
    return pd.concat([frame, *rows], ignore_index=True)


def structure_frame() -> pd.DataFrame:
    """Like quickstart, with what its undefended models give away; of softmax regression all, of the MLP answers."""
    frame = quick_frame()
    cells = _cells(frame[frame["defense"] == "none"])
    linear = cells[cells["model"] == "softmax_regression"]
    rows = [
        cells.assign(metric="smallest_cell", value=1.0, cells="answers"),
        cells.assign(metric="in_small_cells", value=0.995, cells="answers", below=10.0),
        cells.assign(metric="class_disclosed", value=1.0, cells="answers"),
        linear.assign(metric="smallest_cell", value=4.0, cells="leaves"),
        linear.assign(metric="in_small_cells", value=0.25, cells="leaves", below=10.0),
        linear.assign(metric="residual_freedom", value=-1234.0),
        linear.assign(metric="stored_records", value=321.0),
    ]
    return pd.concat([frame, *(part.assign(low=np.nan, high=np.nan) for part in rows)], ignore_index=True)


def audited_frame() -> pd.DataFrame:
    """Like quickstart, with a lower bound for every cell, far below its claim."""
    frame = quick_frame()
    cells = _cells(frame)
    value = cells["epsilon"].fillna(300.0) / 300
    said = {"audit": "losses", "design": "one_run", "neighbors": "replace_one", "claim": "approximate", "seen": "loss"}
    said |= {"bug": "none", "canary": "natural", "start": "random", "alone": 0.4, "reach": 0.9, "confidence": 0.999}
    said |= {"models": 24.0, "coins": 720.0, "guesses": 180.0, "right": 120.0}
    bounds = cells.assign(metric="epsilon_lower_bound", value=value, low=value, high=np.inf, **said)
    return pd.concat([frame, bounds], ignore_index=True)


def score_frame() -> pd.DataFrame:
    """Scores of two attacks on two cells: 300 members and 300 others, three runs."""
    return _scores(np.tile(np.arange(600) < 300, (3, 1)))


def bounded_frame(mu: float = 1.0) -> pd.DataFrame:
    """The same scores, and of the private cell what noise with this μ would prove."""
    scores = score_frame()
    cell = scores[scores["defense"] != "none"].iloc[0]
    columns = cell.drop(["repeat", "record", "member", "score", "flagged", "attack"]).to_dict()
    rows = [
        {"metric": metric, "repeat": "all", "value": value, "low": value, "high": value, **said, **columns}
        for metric, said, value in proven_rows(mu)
    ]
    return completed(pd.concat([scores, pd.DataFrame(rows)], ignore_index=True))


def tossed_frame() -> pd.DataFrame:
    """The same on a pool of 600 records, each in or out of 16 runs by coins; the first 30 give themselves away."""
    frame = _scores(np.random.default_rng(7).random((16, 600)) < 0.5)
    exposed = frame["member"] & (frame["record"] < 30) & (frame["defense"] == "none")
    return frame.assign(score=frame["score"] + 4 * exposed)


def _scores(member: np.ndarray) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    frame = quick_frame()
    parts = []
    for defense, attack in product(("none", "gaussian-rdp-eps=1"), ("yeom", "lira")):
        cell = frame[(frame["model"] == "mlp") & (frame["defense"] == defense)].iloc[0]
        columns = cell.drop([*MEASURED, *QUALIFIERS]).to_dict()
        score = rng.normal(size=member.size) + member.ravel() * (2.0 if defense == "none" else 0.1)
        runs, n = member.shape
        records = {"repeat": np.repeat(np.arange(runs), n), "record": np.tile(np.arange(n), runs)}
        records["member"] = member.ravel()
        parts.append(pd.DataFrame({**records, "score": score, "flagged": score > 1, "attack": attack, **columns}))
    return pd.concat(parts, ignore_index=True)


def paper_frame() -> pd.DataFrame:
    """Like jayaraman2019's CIFAR-100 half: eleven budgets, five repeats, 10,000 members."""
    return study_frame("jayaraman2019", "cifar100", PAPER_GRID, 5, 10_000)


def _inversion_cells() -> Iterator[dict]:
    """The undefended cell, and private ones by their noise."""
    cell = {"study": "zhang2020", "dataset": "mnist", "model": "cnn", "block": "", "bound": "", "epsilon": float("nan")}
    cell |= {"epochs": 10, "n_members": 60_000, "n_records": 60_000, "n_nonmembers": 10_000}
    cell |= {"k_sub": 0, "partition": "", "delta": 1e-3}
    plain = {"mechanism": "none", "accountant": "", "unit": "", "noise_multiplier": float("nan")}
    yield {**cell, **plain, "defense": "none"}
    for noise in (0.65, 1.0, 1.8):
        own = {"mechanism": "gaussian", "accountant": "rdp", "unit": "example", "block": "whole", "bound": "clip"}
        yield {**cell, **own, "noise_multiplier": noise, "defense": f"gaussian-rdp-sigma={noise:g}"}
    for noise in (1.6, 3.0, 3.65):
        own = {
            "mechanism": "subclass",
            "accountant": "class_moments",
            "unit": "subclass",
            "block": "whole",
            "bound": "clip",
            "k_sub": 50,
        }
        defense = f"subclass-k_sub=50-class_moments-sigma={noise:g}"
        yield {**cell, **own, "noise_multiplier": noise, "defense": defense, "accounting_note": "of a fixed partition"}


def inversion_frame() -> pd.DataFrame:
    """Like zhang2020 on MNIST: seven cells, three repeats, two attacks, and the controls on the undefended one."""
    rng = np.random.default_rng(4)
    parts = []
    for cell in _inversion_cells():
        noise = 0.0 if np.isnan(cell["noise_multiplier"]) else cell["noise_multiplier"]
        values = [("test_accuracy", {}, 0.98 - 0.03 * noise)]
        if noise:
            for name, neighbors in (("rdp", "add_remove"),) if cell["accountant"] == "rdp" else (
                ("class_moments", "replace_one"),
                ("class_moments", "add_remove"),
                ("theorem1", "replace_one"),
            ):  # fmt: skip
                said = {"accounted_by": name, "neighbors": neighbors, "valid": name != "theorem1"}
                values.append(("epsilon_spent", said, (10 if neighbors == "replace_one" else 4) / noise))
            values.append(("noise_multiplier", {}, noise))
        rows = [
            {"metric": metric, "repeat": "all", "value": value, "low": value - 0.01, "high": value + 0.01, **said}
            for metric, said, value in values
        ]
        index = pd.MultiIndex.from_product([range(3), range(10)], names=["repeat", "target"]).to_frame(index=False)
        attacks = {"inversion_l1": 6 + noise, "inversion_original": 7.5 + noise, "inversion_tuned_euclidean": 5.5}
        for attack, distance in attacks.items():
            found = {"distance": distance + rng.random(30), "ssim": 0.2 * rng.random(30), "confidence": rng.random(30)}
            rows += measure_inversion(index.assign(restart=0, **found), attack)
        if cell["mechanism"] == "none":
            for number, variant in enumerate(("black", "gray", "mean", "class_mean")):
                found = {"distance": 6.0 + number + rng.random(30), "ssim": 0.1 * rng.random(30), "confidence": 0.1}
                rows += measure_inversion(index.assign(restart=0, variant=variant, **found), "inversion_controls")
        parts.append(pd.DataFrame(rows).assign(**cell))
    return completed(pd.concat(parts, ignore_index=True))


def inversion_images() -> list[tuple[dict, str, dict[str, np.ndarray]]]:
    """What attacks on those cells wrote beside their scores, and the controls with subclasses."""
    rng = np.random.default_rng(5)
    shown = []
    for cell in _inversion_cells():
        made = {
            "reconstruction": rng.random((3, 10, 1, 28, 28)),
            "original": rng.random((3, 10, 1, 28, 28)),
            "target": np.tile(np.arange(10), (3, 1)),
            "distance": 6 + rng.random((3, 10)),
            "ssim": rng.random((3, 10)),
            "confidence": rng.random((3, 10)),
        }
        shown.append((cell, "inversion_l1", {name: array.astype(np.float32) for name, array in made.items()}))
        if cell["mechanism"] == "none":
            subclasses = rng.random((10, 2, 9, 1, 28, 28)).astype(np.float32)
            shown.append((cell, "inversion_controls", {"subclasses": subclasses}))
    return shown


LAYERS = ("conv1", "maxpool1", "conv2", "maxpool2", "conv3", "maxpool3", "dense", "prediction")
# mechanism: (accountant, ε, how much worse inputs are rebuilt, AUC less ½, accuracy)
DEFENDED = (
    ("none", "", float("nan"), 1.0, 0.19, 0.80),
    ("l2", "", float("nan"), 1.5, 0.12, 0.77),
    ("dropout", "", float("nan"), 1.2, 0.08, 0.83),
    ("gaussian", "rdp", 2.0, 0.8, 0.03, 0.60),
    ("gaussian", "rdp", 8.0, 0.9, 0.05, 0.68),
)


def image_cells(datasets: tuple[str, ...], n: int = 50_000) -> Iterator[tuple[dict, float, float, float]]:
    """Cells like lomurno2022's: columns, how much worse inputs are rebuilt, AUC less one half, accuracy."""
    for dataset, (mechanism, accountant, epsilon, worse, auc, accuracy) in product(datasets, DEFENDED):
        private = bool(accountant)
        columns = {
            "study": "lomurno2022",
            "dataset": dataset,
            "model": "cnn",
            "defense": f"gaussian-rdp-eps={epsilon:g}" if private else mechanism,
            "mechanism": mechanism,
            "accountant": accountant,
            "unit": "example" if private else "",
            "block": "whole" if private else "",
            "bound": "clip" if private else "",
            "epsilon": epsilon,
            "delta": DELTA if private else float("nan"),
            "noise_multiplier": 2 / epsilon**0.5,
            "epochs": 4,  # each takes the accountants a second
            "batch_size": 600,
            "projection": "none",
            "projection_noise": float("nan"),
            "n_members": n,
            "n_records": n,
            "n_nonmembers": 5000,
        }
        yield columns, worse, auc, accuracy


def image_frame() -> pd.DataFrame:
    """Like lomurno2022: two data sets, five defenses, errors by layer, two attacks on membership."""
    rows = []
    for columns, worse, auc, accuracy in image_cells(("cifar10", "mnist")):
        numbers: list[tuple[str, dict, float, float]] = [("test_accuracy", {}, accuracy, 0.01)]
        numbers += [("train_accuracy", {}, accuracy + 0.1, 0.01)]
        numbers += [("membership_auc", {"attack": "yeom"}, 0.5 + auc, 0.01)]
        numbers += [("membership_auc", {"attack": "shokri"}, 0.49 + 1.2 * auc, 0.01)]
        for place, layer in enumerate((*LAYERS, "mean_image")):
            said = {"attack": "decoder", "layer": layer, "statistic": "mean"}
            factor = 1.0 if layer == "mean_image" else worse
            numbers.append(("mse", said, 0.01 * (1 + place) * factor, 0.001))
        for metric, said, value, reach in numbers:
            ends = {"value": value, "low": value - reach, "high": value + reach}
            rows.append({**columns, "metric": metric, "repeat": "all", **said, **ends})
    return completed(pd.DataFrame(rows))


def projected_frame() -> pd.DataFrame:
    """Like abadi2016's MNIST: private PCA of several noises, plain PCA, none."""
    kinds = [("pca", float("nan"), 0.0), ("none", float("nan"), 0.01)]
    kinds += [("private_pca", noise, -0.001 * noise) for noise in (1.0, 4.0, 16.0)]
    parts = []
    frame = image_frame()
    kept = frame[(frame["dataset"] == "mnist") & frame["defense"].isin(["none", "gaussian-rdp-eps=8"])]
    for place, (method, noise, change) in enumerate(kinds):
        columns = {"dataset": f"mnist_{place}", "projection": method, "projection_noise": noise}
        parts.append(kept.assign(**columns, **{end: kept[end] + change for end in ("value", "low", "high")}))
    return pd.concat(parts, ignore_index=True)


def timing_frame() -> pd.DataFrame:
    """Like lomurno2022's times: each cell has the rows of all cells of its data set and model."""
    rng = np.random.default_rng(3)
    cells = [columns for columns, *_ in image_cells(("cifar10",))]
    seconds = {"none": 1.0, "l2": 1.1, "dropout": 1.3}
    timed = [(cell["defense"], "ours", seconds.get(cell["mechanism"], 2.0)) for cell in cells]
    timed += [("none", "pytorch", 1.5), ("gaussian-rdp-eps=2", "opacus", 6.0)]
    rows = [
        {"timed": defense, "engine": engine, "round": turn, "seconds": value * rng.uniform(0.9, 1.1), "records": 1000}
        for turn, (defense, engine, value) in product(range(3), timed)
    ]
    return pd.concat([pd.DataFrame(rows).assign(**cell) for cell in cells], ignore_index=True)


def picture_list() -> list[tuple[dict, str, dict[str, np.ndarray]]]:
    """Like lomurno2022's pictures: per cell two originals and what was rebuilt of them from each layer."""
    rng = np.random.default_rng(4)
    shown = []
    for columns, worse, *_ in image_cells(("cifar10", "mnist")):
        shape = (2, 3, 8, 8) if columns["dataset"] == "cifar10" else (2, 1, 8, 8)
        original = rng.uniform(size=shape).astype(np.float32)
        rebuilt = {
            layer: (original + 0.02 * worse * place * rng.normal(size=shape)).clip(0, 1).astype(np.float32)
            for place, layer in enumerate(LAYERS)
        }
        shown.append((columns, "decoder", {"original": original, **rebuilt}))
    return shown


DIRECTIONAL = {
    "none": ("", "", "", ""),
    "gaussian": ("rdp", "example", "whole", "clip"),
    "vmf": ("per_step", "example", "row", "normalize"),
}


def directional_cell(mechanism, epsilon=None, learning_rate=0.001, n_members=4500, dataset="cifar10_r"):
    accountant, unit, block, bound = DIRECTIONAL[mechanism]
    rate = "" if learning_rate == 0.001 else f"-lr={learning_rate:g}"
    return {
        "study": "directional2023",
        "dataset": dataset,
        "model": "lenet",
        "defense": f"{mechanism}{rate}-{epsilon}" if accountant else f"none{rate}",
        "mechanism": mechanism,
        "accountant": accountant,
        "unit": unit,
        "block": block,
        "bound": bound,
        "epsilon": np.nan if epsilon is None else float(epsilon),
        "delta": 1e-5 if accountant else np.nan,
        "noise_multiplier": np.nan,
        "learning_rate": learning_rate,
        "epochs": 100,
        "n_members": n_members,
        "n_records": n_members,
        "n_nonmembers": 900,
    }


def directional_row(columns, value, metric="membership_auc", reach=0.01, **said):
    ends = {"value": value, "low": value - reach, "high": value + reach}
    return {**columns, "metric": metric, "repeat": "all", **ends, **said}


def directional_frame():
    """AUC of LeNet at two budgets under both mechanisms: printed are 0.511 and 0.517, 0.508 and 0.508."""
    values = {("none", None): 0.78, ("gaussian", 1): 0.52, ("gaussian", 50): 0.55, ("vmf", 1): 0.51, ("vmf", 50): 0.50}
    rows = [directional_row(directional_cell(*key), value, attack="attack_r") for key, value in values.items()]
    return completed(pd.DataFrame(rows))


def all_notes(figure: Any) -> str:
    """A figure's notes on one line: those under its panels, then those that a report adds to its caption."""
    if isinstance(figure, Tables):
        return " ".join(" ".join(figure.notes).split())
    return " ".join(f"{figure.get_supxlabel()} {figure.get_label()}".split())


def all_texts(shown: Tables) -> list[str]:
    """Every text of some tables: titles, headings, heads, cells and notes."""
    parts = [shown.title or "", *shown.notes]
    for table in shown.tables:
        parts += [table.heading, *table.heads, *(words for words, _ in table.groups)]
        parts += [text for row in table.rows for text in row]
    return parts
