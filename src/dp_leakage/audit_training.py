"""Audit of the user's own private training function from outside, by calls with and without canaries.

    dp-leakage audit --train my_module:train --epsilon 4

By default the audit tests the claim of Gaussian noise with the strongest canary, and with enough trainings to detect
half of the claimed noise with 95 % probability (from ε = 0.4 on; below, clipping per batch).

``train(x, y, seed)`` trains on float32 records x (n, …) with int64 labels y (n,), in any way and with any library. It
returns a function: records (m, …) → probabilities or logits (m, classes). Each call is one training, and each canary
is included in its data at random, with probability ½.
"""

import argparse
import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dp_leakage.audits import CONFIDENCE, Claim, approximate_dp, gaussian_dp
from dp_leakage.audits.designs import bound, shortfall
from dp_leakage.audits.power import FAULTS, chances, models_for
from dp_leakage.common.apart import Arrays, apart
from dp_leakage.common.errors import UserError, nearest
from dp_leakage.common.paths import beginning, user_path
from dp_leakage.common.rounding import rounded_down
from dp_leakage.common.shown import duration, show
from dp_leakage.common.user_code import blamed, module_file
from dp_leakage.data.canaries import place
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.raw import check_finite
from dp_leakage.data.sources.arrays import read_archive
from dp_leakage.options.audit_training import MOST_COINS, parser
from dp_leakage.provenance.files import write_text

Predict = Callable[[np.ndarray], np.ndarray]
Train = Callable[[np.ndarray, np.ndarray, int], Predict]
NOT_REFUTED, FAILED, REFUTED = 0, 2, 3  # exit statuses; make turns every failure into 2
VERDICTS = {NOT_REFUTED: "not refuted", FAILED: "error", REFUTED: "refuted"}
MOST = 1e30  # the largest output; margins of much larger ones are infinite
MOST_SEARCH = 0.3  # share of a training's time that the search of its noise takes, from which on it is said
SEARCHES = (
    "Of this, {search} are the search of the noise for a target ε, which make_private_with_epsilon repeats in each "
    "call; call opacus.accountants.utils.get_noise_multiplier once, and make_private(noise_multiplier=…) in each."
)
SAME = (
    "the trained functions say the same about a canary, in or out, so this audit would find no fault; expected a "
    "training that uses the records that it is given, and outputs that depend on them"
)


def scored(
    train: Train, data: Dataset, canary: str, canaries: int, models: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Call ``train`` once for each model, all in one separate process.

    Args:
        train: see the module.
        data: its members are trained on, ``canaries`` of them replaced.
        canary: ``mislabeled``, ``optimized``, ``blank`` or ``feature``.
        canaries: m, per model, at positions drawn separately for each model.
        models: K.
        seed: draws canaries and coins; the trainings get seeds derived from it.

    Returns:
        Scores float64 (K, m), the margin of the canary's label, and coins bool (K, m).

    Raises:
        UserError: the outputs are not finite numbers, one row a record, one column a class; or ``train`` raises
            anything or ends its process.
    """
    placed = place(data, canary, canaries, False, seed)
    rng = np.random.default_rng([seed, 1])
    held = rng.random((models, canaries)) < 0.5
    seeds = rng.integers(2**31, size=models)
    scores = np.empty(held.shape)
    x, y = placed.x[placed.held], placed.y[placed.held]
    everybody, orders = np.concatenate([placed.fixed, placed.held]), np.random.default_rng([seed, 2])

    def outputs() -> Iterator[Arrays]:
        for coins, own in zip(held, seeds, strict=True):
            # In an order independent of the coins. At the end, where many trainings hold records out or drop an
            # incomplete batch, a canary would never be trained on.
            order = orders.permutation(everybody)
            rows = order[~np.isin(order, placed.held[~coins])]
            with search_seconds() as searched:
                predict = train(placed.x[rows], placed.y[rows], int(own))
            outputs = _outputs(predict(x.copy()), canaries, data.n_classes)
            yield {"outputs": outputs, "searched": np.array(sum(searched))}

    ended = [time.monotonic()]
    for model, found in enumerate(apart("the training function", outputs)):
        scores[model] = _margins(found["outputs"], y)
        if model < 2:
            ended.append(time.monotonic())
        if model == 1:  # the first also starts a process and loads libraries
            first, second = ended[1] - ended[0], ended[2] - ended[1]
            together = duration(first + second * (models - 1))
            print(f"The second training took {duration(second)}; all take about {together}.", flush=True)
            if (searched := float(found["searched"])) > MOST_SEARCH * second:
                print(SEARCHES.format(search=duration(searched)), flush=True)
        show(f"\rtraining {model + 1} of {models}")
    show("\n")
    return scores, held


@contextmanager
def search_seconds() -> Iterator[list[float]]:
    """Yield a list with the durations of Opacus' searches for a noise multiplier, if Opacus is already loaded."""
    seconds: list[float] = []
    engine = sys.modules.get("opacus.privacy_engine")
    if engine is None:
        yield seconds
        return
    search = engine.get_noise_multiplier

    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.monotonic()
        try:
            return search(*args, **kwargs)
        finally:
            seconds.append(time.monotonic() - start)

    engine.get_noise_multiplier = timed  # type: ignore[attr-defined]
    try:
        yield seconds
    finally:
        engine.get_noise_multiplier = search  # type: ignore[attr-defined]


def _outputs(said: object, records: int, classes: int) -> np.ndarray:
    """Check and return a trained function's outputs, float64 (records, classes or more). Raises UserError
    otherwise.
    """
    valid = f"for {records} records of {classes} classes; expected finite numbers, one row a record, one column a class"
    try:
        found = np.asarray(said)
    except Exception as error:  # lists of unequal lengths, or an object's own way of becoming an array
        raise UserError(f"the trained function gives no array ({error}) {valid}") from None
    if found.ndim != 2 or len(found) != records or found.shape[1] < classes or found.dtype.kind not in "biuf":
        raise UserError(f"the trained function gives {found.dtype} of shape {found.shape} {valid}")
    outputs = found.astype(np.float64)
    if not np.isfinite(outputs).all():
        raise UserError(f"the trained function gives {outputs[~np.isfinite(outputs)][0]} {valid}")
    if np.abs(outputs).max(initial=0) > MOST:
        raise UserError(f"the trained function gives {np.abs(outputs).max():g} in size {valid} up to {MOST:g}")
    return outputs


def _margins(outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return ln p_y/(1 − p_y), from probabilities or logits."""
    if (outputs >= 0).all() and np.allclose(outputs.sum(1), 1, atol=1e-4):
        outputs = np.log(np.maximum(outputs, 1e-300))
    own = np.take_along_axis(outputs, y[:, None], 1)[:, 0]
    others = outputs.copy()
    np.put_along_axis(others, y[:, None], -np.inf, 1)
    return own - np.logaddexp.reduce(others, axis=1)


def training_function(path: str) -> Train:
    """Return the function at ``module:function``, imported when it is first called. Its errors become one sentence.

    Raises:
        UserError: ``path`` is not an import path; or, when called, the function does not exist.
    """
    module, _, name = path.partition(":")
    if not module or not name:
        raise UserError(f"--train is {path!r}; expected module:function, such as my_module:train")

    def train(x: np.ndarray, y: np.ndarray, seed: int) -> Predict:
        function, file = _imported(path)
        with blamed(f"--train {path}", file):
            predict = function(x, y, seed)
        if not callable(predict):
            raise UserError(
                f"--train {path} returns {type(predict).__name__}; expected a function from records to outputs"
            )

        def asked(records: np.ndarray) -> np.ndarray:
            with blamed(f"--train {path}", file):
                return predict(records)

        return asked

    return train


@cache
def _imported(path: str) -> tuple[Train, Path | None]:
    """Return the function of an import path, and its file. Raises UserError if it does not exist."""
    module, _, name = path.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    file = module_file(module)
    with blamed(f"--train {path}", file):
        function = getattr(importlib.import_module(module), name)
    if not callable(function):
        raise UserError(f"--train {path} is {type(function).__name__}; expected a function (x, y, seed)")
    return function, file


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 if the claim is not refuted, 3 if it is, 2 if the audit cannot run.

    The last line of the output, and the file of ``--verdict``, say the same in a word: `VERDICTS`.
    """
    given = parser().parse_args(arguments)
    try:
        verdict = verdict_file(given.verdict) if given.verdict else None
        _write_verdict(verdict, FAILED)  # until there is another, however this ends
        status = _audited(given)
        _write_verdict(verdict, status)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    print(f"verdict: {VERDICTS[status]}", flush=True)
    return status


def verdict_file(name: str) -> Path:
    """Return the path for the verdict. Raises UserError if another file than an older verdict exists there."""
    path = user_path(name)
    if os.path.lexists(path) and beginning(path, 100) not in {f"{word}\n".encode() for word in VERDICTS.values()}:
        raise UserError(f"--verdict {name} exists and is not a verdict; name a file that does not exist")
    return path


def _write_verdict(path: Path | None, status: int) -> None:
    if path is not None:
        write_text(path, f"{VERDICTS[status]}\n")


def _audited(given: argparse.Namespace) -> int:
    """Run the audit, print its result and return the exit status. Raises UserError if it cannot run."""
    if given.claim == "gaussian" and given.delta == 0:
        raise UserError("--delta is 0, at which Gaussian noise has no ε; --claim gaussian needs more than 0")
    gaussian = given.claim == "gaussian" or (not given.claim and given.delta > 0)
    claim = (gaussian_dp if gaussian else approximate_dp)(given.delta)
    design = "many_runs" if given.canaries == 1 else "one_run"
    share = 1.0 if design == "many_runs" and gaussian else 0.25
    models = given.models or _chosen(design, claim, share, given)
    if models * given.canaries > MOST_COINS:
        words = f"--models {models} with --canaries {given.canaries} make {models * given.canaries:,} coins"
        raise UserError(f"{words}; expected up to {MOST_COINS:,}")
    found = _announce(design, models, claim, share, given)
    data = _data(given.data, given.records)
    scores, held = scored(training_function(given.train), data, given.canary, given.canaries, models, given.seed)
    if np.ptp(scores, axis=0 if models > 1 else None).max() == 0:
        raise UserError(SAME)
    audit = bound(design, scores.ravel(), held.ravel(), claim, CONFIDENCE, share, given.seed)
    print(f"{audit.right} of {audit.guesses} guesses are right.")
    proven = rounded_down(audit.epsilon, 3)
    print(f"So ε ≥ {proven} at δ = {given.delta:g} with 95 % confidence, for one record added or removed.")
    if audit.epsilon > given.epsilon:
        print(f"This refutes the claim of {_claimed(claim, given.epsilon)}.")
        return REFUTED
    print(f"The claim of {_claimed(claim, given.epsilon)} is not refuted.")
    for fault, chance in found.items():
        print(f"This audit would have found {fault} with a chance of {_percent(chance)}{ASSUMED[fault]}.")
    print("It says nothing about other faults, nor about other records.")
    return NOT_REFUTED


# Assumptions behind the power.
ASSUMED = dict(
    zip(
        FAULTS,
        (
            ", if the canary shows nine tenths of what that reveals",
            ", if the canary's gradient is four times as long as the clipping norm",
        ),
        strict=True,
    )
)


def _percent(chance: float) -> str:
    return "over 99 %" if chance > 0.99 else f"{100 * chance:.0f} %"


def _claimed(claim: Claim, epsilon: float) -> str:
    how = " by Gaussian noise" if claim.kind == "gaussian" else ""
    return f"ε = {epsilon:g} at δ = {claim.delta:g}{how}"


def _chosen(design: str, claim: Claim, share: float, given: argparse.Namespace) -> int:
    """Return the default number of trainings of an audit."""
    return models_for(claim, given.epsilon, CONFIDENCE, share) if design == "many_runs" else 1


def _announce(design: str, models: int, claim: Claim, share: float, given: argparse.Namespace) -> dict[str, float]:
    """Print the plan and power of the audit before training; return the probability of detecting each fault.

    Raises:
        UserError: even perfect guesses would not refute the claim.
    """
    coins = models * given.canaries
    short = shortfall(given.epsilon, design, coins, claim, 1, share, CONFIDENCE)
    if short and not given.beyond_reach:
        words = f"with --models {models} and --canaries {given.canaries}, this audit {short}"
        raise UserError(f"{words}; raise --models, or train anyway with --beyond-reach")
    found = chances(design, coins, claim, given.epsilon, CONFIDENCE, share)
    said = " and ".join(f"{fault} with {_percent(chance)}" for fault, chance in found.items())
    print(f"The audit tests the claim of {_claimed(claim, given.epsilon)} (--claim).")
    print(f"It trains {models} models (--models) with the canary '{given.canary}' (--canary) in or out by a fair coin.")
    print(f"It finds {said}.", flush=True)
    return found


def _data(path: str, records: int) -> Dataset:
    """Return x and y from an ``.npz`` file, or the bundled digits; the first ``records`` of a fixed order."""
    if path:
        file = user_path(path)
        if file.suffix != ".npz":
            raise UserError(f"--data {path}: expected an .npz with the arrays x and y")
        x, y = read_archive(file, lambda names: _wanted(names, file)).values()
    else:
        from sklearn.datasets import load_digits

        x, y = load_digits(return_X_y=True)
        x = x / 16
    where = f"--data {path or 'digits'}"
    if x.dtype.kind not in "biuf" or x.ndim < 2 or not x.size or len(x) != len(y):
        raise UserError(
            f"{where}: x is {x.dtype} of shape {x.shape} and y of {y.shape}; expected numbers (n, …) and (n,)"
        )
    if y.dtype.kind not in "biuf" or y.ndim != 1 or not (np.isfinite(y) & (y == np.floor(y)) & (y >= 0)).all():
        raise UserError(
            f"{where}: y is {y.dtype} of shape {y.shape}; expected a class number, counted from 0, for each record"
        )
    with np.errstate(over="ignore"):  # becomes an infinity, which is refused
        x = x.astype(np.float32)
    check_finite(x, where)
    if not 0 < y.max() < len(y):
        raise UserError(f"{where}: y goes up to {y.max():g}; expected classes 0 and 1 or more, fewer than the records")
    if records > len(x):
        raise UserError(f"--records is {records}; expected 2 to the {len(x)} records of the data")
    rows = np.random.default_rng(0).permutation(len(x))
    # The same records, since mislabeling does not need non-members.
    roles = {"target_members": rows[:records], "target_nonmembers": rows[:records]}
    return Dataset(x, y.astype(np.int64), roles, np.array([], dtype=np.int64))


def _wanted(names: list[str], file: Path) -> list[str]:
    for name in ("x", "y"):
        if name not in names:
            raise UserError(f"--data {file} has no array {name!r}; {nearest(name, names)}")
    return ["x", "y"]
