"""Robust membership inference (RMIA, Zarifzadeh, Liu & Shokri 2024): compare a record's likelihood ratio with other
records'.
"""

from typing import NamedTuple

import numpy as np

from dp_leakage.attacks.membership.references import mean_where, population, require
from dp_leakage.attacks.signals import Scores, Signals, losses

# ``alpha`` is the level of the attack's own test: near the best advantage for weak and strong leaks.
ATTACK = {
    "family": "membership",
    "needs": "reference",
    "roles": ["reference_pool"],
    "settings": {
        "online": {"$ref": "#/$defs/online"},
        "a": {
            "anyOf": [{"enum": ["auto"]}, {"type": "number", "minimum": 0, "maximum": 1}],
            "default": "auto",
            "description": "A model trained on x is assumed to give it a·P + 1 − a, where P is that of models "
            "that did not (the paper's equation 11); `auto` chooses a on the reference models.",
        },
        "temperature": {
            "anyOf": [{"enum": ["auto"]}, {"type": "number", "exclusiveMinimum": 0}],
            "default": "auto",
            "description": "Divisor of logits; `auto` chooses it on the reference models.",
        },
        "fpr": {
            "type": "number",
            "exclusiveMinimum": 0,
            "exclusiveMaximum": 1,
            "default": 0.01,
            "description": "The false positive rate for which `auto` chooses.",
        },
        "gamma": {
            "type": "number",
            "exclusiveMinimum": 0,
            "default": 1.0,
            "description": "The ratio from which a record counts as likelier than another.",
        },
        "queries": {"$ref": "#/$defs/queries"},
        "alpha": {"$ref": "#/$defs/alpha"},
    },
    "variants": {
        "rmia": {"label": "RMIA"},
        "rmia_online": {"label": "RMIA online", "settings": {"online": True}},
        # An attacker who does not know the defense: the references are undefended models.
        "rmia_unaware": {"label": "RMIA unaware", "settings": {"online": True}, "aware": False},
    },
}

# What "auto" tries. The first value is used if there is only one reference model, so none to attack.
A = np.array([0.3, 0.0, 0.1, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
TEMPERATURES = np.array([1.0, 2.0, 4.0])
MODELS, RECORDS = 8, 4000  # at most this many references are attacked, on at most this many records, to make the choice
FEWEST = 5  # false positives that the rate must allow among these records; otherwise a higher rate is used


class Reach(NamedTuple):
    """Parameters by which one form of the attack computes expected probabilities.

    Attributes:
        a: offline, and for records that no reference saw, P_in is taken as a·P_out + 1 − a (the paper's equation 11).
        temperature: divides margins before they become probabilities. This is a softmax temperature with two classes,
            the record's own and all others.
        online: whether models trained with a record count.
    """

    a: float
    temperature: float
    online: bool


def score(target: Signals, reference: Signals, settings: dict, seed: int) -> Scores:
    """Score every queried record x with ln [Pr(x | target)/Pr(x)], minus a threshold from other records.

    The paper's score is the share of records z for which LR(x, z) = [Pr(x | target)/Pr(x)] / [Pr(z | target)/Pr(z)] ≥ γ
    (equation 3). For one target, that share is an increasing function of x's own ratio. It has ties if x is beyond all
    z, and these decide low false positive rates. So the score is the logarithm of the ratio, minus the value from which
    the share is at least 1 − ``alpha``, and the attack flags at 0. Offline, the records z are the population. Online,
    they are the queried records, each under the references that did not train on it, since nobody knows P_in of the
    population.

    Args:
        target: of the R models under attack; offline the records z are those of ``reference_pool``.
        reference: of the reference models, the same records.
        settings: ``online``; ``a`` in [0, 1] and ``temperature`` > 0, or ``auto`` (see `chosen`); ``fpr``, the false
            positive rate for which ``auto`` chooses; ``gamma``, ``alpha``; ``queries``, number of averaged margins.
        seed: unused, nothing is drawn.

    Raises:
        UserError: ``reference_pool`` is empty, or every reference model was trained on every record asked about.
    """
    queries, n = settings["queries"], len(target.asked.record)
    asked, others = reference.asked, population(reference, "rmia")
    require(~asked.trained_on, "rmia", "without")
    both = ([part.mean_margin(queries) for part in (asked, others)], [asked.trained_on, others.trained_on])
    margin, inside = (np.concatenate(parts, axis=1) for parts in both)
    reach = chosen(margin, inside, settings)
    before = np.log(expected(margin, inside, reach))
    ratio = -losses(target.asked.mean_margin(queries) / reach.temperature) - before[:n]
    if settings["online"]:
        of_z = (-losses(margin[:, :n] / reach.temperature) - before[:n])[~asked.trained_on][None]
    else:
        usable = ~others.trained_on.all(axis=0)
        of_z = -losses(population(target, "rmia").mean_margin(queries) / reach.temperature) - before[n:]
        of_z = of_z[:, usable]
    excess = ratio - level(of_z, settings["alpha"]) - np.log(settings["gamma"])
    return Scores(excess, excess >= 0)


def level(of_z: np.ndarray, alpha: float) -> np.ndarray:
    """Return the least value that a share 1 − alpha of the logarithms (R, Z) does not exceed: (R, 1)."""
    place = max(int(np.ceil((1 - alpha) * of_z.shape[1] - 1e-9)), 1) - 1
    return np.partition(of_z, place, axis=1)[:, place, None]


def expected(margin: np.ndarray, inside: np.ndarray, reach: Reach) -> np.ndarray:
    """Return the expected probabilities of the true class before seeing the target, Pr(x) > 0, float64 (n,).

    Pr = (P_in + P_out)/2, means over the reference models trained with and without a record.

    Args:
        margin: under the reference models, (K, n).
        inside: membership of each record in each model's training set, bool (K, n).
        reach: parameters of the attack.
    """
    probability = np.exp(-losses(margin / reach.temperature))
    without = mean_where(probability, ~inside)
    within = assumed(without, reach.a)
    if reach.online:
        within = np.where(inside.any(axis=0), mean_where(probability, inside), within)
    return np.maximum((within + without) / 2, np.finfo(np.float64).tiny)


def assumed(without: np.ndarray, a: float | np.ndarray) -> np.ndarray:
    """Return P_in as the offline form derives it from P_out, of any shape."""
    return a * without + 1 - a


def chosen(margin: np.ndarray, inside: np.ndarray, settings: dict) -> Reach:
    """Choose a and the temperature that let an offline attack on the reference models identify most members.

    It maximizes the share of their training records that the attack, helped by the other models, finds at the false
    positive rate ``fpr``, over `RECORDS` of the records and `MODELS` of the models. Ties go to the first value. Values
    that the settings fix are not chosen.

    Args:
        margin, inside: as of `expected`, K ≥ 1.
        settings: ``a``, ``temperature``, ``online``, ``fpr``.
    """
    a, temperatures = (
        values if settings[key] == "auto" else np.array([float(settings[key])])
        for key, values in (("a", A), ("temperature", TEMPERATURES))
    )
    best: tuple[int, ...] = (0, 0)
    if len(a) * len(temperatures) > 1 and len(margin) > 1:
        rows = np.linspace(0, margin.shape[1] - 1, min(RECORDS, margin.shape[1])).round().astype(int)
        found = [_found(margin[:, rows] / t, inside[:, rows], a, settings["fpr"]) for t in temperatures]
        best = tuple(map(int, np.unravel_index(np.argmax(found), np.shape(found))))
    return Reach(float(a[best[1]]), float(temperatures[best[0]]), settings["online"])


def _found(margin: np.ndarray, inside: np.ndarray, a: np.ndarray, fpr: float) -> np.ndarray:
    """Return the mean share of a reference model's members that each value of ``a`` identifies with the other models:
    (len(a),).
    """
    own = -losses(margin)
    without = mean_where(np.exp(own), ~inside, left_out=True)
    told = (~inside).sum(axis=0) - ~inside > 0  # some other model was trained without the record
    shares = np.zeros(len(a))
    for model in range(min(MODELS, len(margin))):
        members, nonmembers = ((told[model] & (inside[model] == kind)).nonzero()[0] for kind in (True, False))
        count = len(nonmembers)
        if not len(members) or not count:
            continue
        rows = np.concatenate([nonmembers, members])
        outside = without[model, rows]
        expects = (assumed(outside, a[:, None]) + outside) / 2
        with np.errstate(divide="ignore"):  # at a = 1, of a record whose class no other model deems possible
            ratios = own[model, rows] - np.log(expects, out=expects)
        rate = min(max(fpr, FEWEST / count), 0.5)
        place = count - 1 - int(np.floor(rate * count + 1e-9))
        limit = np.partition(ratios[:, :count], place, axis=1)[:, place]
        shares += (ratios[:, count:] > limit[:, None]).mean(axis=1)
    return shares
