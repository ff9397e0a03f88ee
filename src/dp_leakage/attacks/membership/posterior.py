"""Whole posterior: a likelihood ratio of all output probabilities of a record, not only of its own class.

`lira` compares one number, the margin of the record's class. Here a record's output is a vector: the margin, and the
shares of the other classes in the remaining probability. A defense that hides the first still reveals the second.
"""

from typing import NamedTuple

import numpy as np

from dp_leakage.attacks.membership.references import require
from dp_leakage.attacks.signals import Scores, Signals

ATTACK = {
    "family": "membership",
    "needs": "reference",
    "reads": "probabilities",
    "of_person": "sum",
    "settings": {
        "classes": {
            "type": "integer",
            "minimum": 1,
            "default": 2,
            "description": "Number of other classes whose shares are read, the likeliest first.",
        },
        "floor": {
            "type": "number",
            "exclusiveMinimum": 0,
            "exclusiveMaximum": 0.1,
            "default": 0.001,
            "description": "Lower limit on probabilities, since the logarithms of tiny ones are noisy.",
        },
        "hidden": {
            "enum": ["nothing", "top", "scale", "digits", "all_but_label"],
            "default": "nothing",
            "description": "Hidden part of the outputs that the attacker knows of, the largest probability, "
            "the scale of confidences, digits, or all but the predicted class.",
        },
        "shown": {
            "type": "number",
            "exclusiveMinimum": 0,
            "exclusiveMaximum": 1,
            "default": 0.9,
            "description": "For hidden top, the value that replaces the largest probability.",
        },
        "decimals": {
            "type": "integer",
            "minimum": 1,
            "maximum": 7,
            "default": 2,
            "description": "For hidden digits, the decimals to which probabilities are rounded.",
        },
    },
    "variants": {
        "posterior": {},
        # Against a defense of the answers: the references' are hidden in the same way.
        "posterior_masked": {
            "label": "posterior, masked",
            "settings": {"hidden": "top"},
            "adapts": "takes the largest probability to be masked and reads how the others share the rest",
        },
        "posterior_rescaled": {
            "label": "posterior, rescaled",
            "settings": {"hidden": "scale"},
            "adapts": "takes confidences to be rescaled by an unknown temperature and brings all models to one scale",
        },
        "posterior_rounded": {
            "label": "posterior, rounded",
            "settings": {"hidden": "digits"},
            "adapts": "takes probabilities to be rounded and rounds those of its reference models alike",
        },
        "posterior_label": {
            "label": "posterior, label only",
            "settings": {"hidden": "all_but_label"},
            "adapts": "takes the predicted class alone to be shown and compares how often reference models predict it",
        },
    },
}

LEAST = 1e-30  # probability that 0 counts as
NOISE = 1e-3  # least variance of any number, so that numbers that hardly change decide nothing


class Law(NamedTuple):
    """Distribution of outputs, each (d,) or (d, d).

    Attributes:
        mean, spread: mean and spread over the records of the expected output without the record.
        gain, gains: mean and covariance over the records of the effect of training on a record's expected output.
        without, within: covariances of a record's output over models trained without and with the record.
    """

    mean: np.ndarray
    spread: np.ndarray
    gain: np.ndarray
    gains: np.ndarray
    without: np.ndarray
    within: np.ndarray


def score(target: Signals, reference: Signals, settings: dict, seed: int) -> Scores:
    """Score every queried record with ln p(output | in) − ln p(output | out), flagged above 0.

    Outputs are normal around a record's own mean. That mean and the effect of membership on it are unknown. Other
    records show their distribution (`law`), and the references with and without the record update it. A record that no
    reference was trained on is judged by the average effect of membership.

    Args:
        target: of the R models under attack, with probabilities.
        reference: of the reference models, the same records; records of further roles help to estimate the
            distribution.
        settings: ``classes``, the number of other classes whose shares are used, the references' likeliest first;
            ``floor``, a lower limit on probabilities, since the logarithms of tiny ones vary most and tell least;
            ``hidden``, the part of the outputs that the defense hides (`shown`), with ``shown`` and ``decimals``.
        seed: unused, nothing is drawn.

    Raises:
        UserError: no reference model was trained without, or none with, any record.
    """
    inside = reference.trained_on
    require(~inside, "posterior", "without")
    require(inside, "posterior", "with")
    known = answers(reference, reference, settings)
    found = law(known, inside)
    asked = reference.asked
    said, others = answers(target.asked, asked, settings), answers(asked, asked, settings)
    return _of_law(found, said, others, asked.trained_on)


def shown(probability: np.ndarray, settings: dict) -> np.ndarray:
    """Transform probabilities (R, n, C) to undo or imitate a known hiding of outputs. The transformation is idempotent.

    ``nothing``; ``top``: the largest counts as ``shown``, and the others share the rest; ``scale``: the logarithms of a
    model's answers are divided by their standard deviation, which undoes any temperature; ``digits``: rounded to
    ``decimals``; ``all_but_label``: 1 for the largest.
    """
    hidden = settings["hidden"]
    probability = np.maximum(probability.astype(np.float64), LEAST)
    if hidden == "nothing":
        return probability
    if hidden == "digits":
        return np.round(probability, settings["decimals"])
    if hidden == "scale":
        logs = np.log(probability)
        logs -= logs.mean(axis=-1, keepdims=True)
        powers = np.exp(logs / np.maximum(logs.std(axis=(1, 2), keepdims=True), LEAST))
        return powers / powers.sum(axis=-1, keepdims=True)
    top = np.arange(probability.shape[-1]) == probability.argmax(axis=-1)[..., None]
    if hidden == "all_but_label":
        return top.astype(np.float64)
    rest = np.where(top, 0.0, probability)
    return np.where(top, settings["shown"], (1 - settings["shown"]) * rest / rest.sum(axis=-1, keepdims=True))


def answers(said: Signals, reference: Signals, settings: dict) -> np.ndarray:
    """Return vectors of R models' outputs on n records, float64 (R, n, d): the margin, and logarithms of shares.

    Args:
        said: of the models, with probabilities of C classes.
        reference: of the reference models, the same records; they order each record's other classes.
        settings: as of `score`; d is 1 + ``classes``, at most C − 1.
    """
    own, shares = _parts(said, settings)
    _, expected = _parts(reference, settings)
    kept = min(settings["classes"], shares.shape[2] - 1)  # the shares add up to 1, so that the last one tells nothing
    order = np.argsort(-expected.mean(axis=0), axis=-1, kind="stable")[:, :kept]
    return np.concatenate([own[..., None], np.take_along_axis(shares, order[None], axis=2)], axis=2)


def _parts(said: Signals, settings: dict) -> tuple[np.ndarray, np.ndarray]:
    """Return margins (R, n), and log shares of the other classes in the remaining probability (R, n, C − 1)."""
    assert said.probability is not None  # the attack declares that it reads probabilities
    probability = np.maximum(shown(said.probability, settings), settings["floor"])
    n_classes = probability.shape[2]
    other = np.arange(n_classes - 1) + (np.arange(n_classes - 1) >= said.y[:, None])
    own = np.take_along_axis(probability, said.y[None, :, None], axis=2)[..., 0]
    others = np.take_along_axis(probability, other[None], axis=2)
    rest = others.sum(axis=2)
    return np.log(own) - np.log(rest), np.log(others) - np.log(rest)[..., None]


def law(said: np.ndarray, inside: np.ndarray) -> Law:
    """Fit the distribution of outputs (K, n, d) of models with training sets ``inside``, bool (K, n)."""
    out, apart_out, free_out = _around(said, ~inside)
    within, apart_in, free_in = _around(said, inside)
    outs, ins = (~inside).sum(axis=0), inside.sum(axis=0)
    both = (outs > 0) & (ins > 0)
    if not both.any():  # no record was seen by some and not by others: records are compared with each other
        gain = within[ins > 0].mean(axis=0) - out[outs > 0].mean(axis=0)
        differ = np.zeros((1, len(gain)))
    else:
        differ = within[both] - out[both]
        gain = differ.mean(axis=0)
    gains = np.atleast_2d(np.cov(differ.T)) if len(differ) > 1 else np.zeros((len(gain), len(gain)))
    if free_out + free_in == 0:  # one model of each kind: chance and what membership adds are not told apart
        one = other = gains / 2
        gains = np.zeros_like(gains)
    else:
        pooled = (apart_out + apart_in) / (free_out + free_in)
        one, other = (
            part / free if free > 10 * len(gain) else pooled
            for part, free in ((apart_out, free_out), (apart_in, free_in))
        )
        chance = [one / outs[k] + other / ins[k] for k in np.flatnonzero(both)] if both.any() else [0.0]
        gains = _firm(gains - np.mean(chance, axis=0), 0.0)
    spread = np.atleast_2d(np.cov(out[outs > 0].T))
    return Law(out[outs > 0].mean(axis=0), _firm(spread), gain, gains, _firm(one), _firm(other))


def _around(said: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the means (n, d) of the chosen outputs, the scatter matrix around them (d, d), and its
    degrees of freedom.
    """
    counts = chosen.sum(axis=0)
    mean = np.where(chosen[..., None], said, 0.0).sum(axis=0) / np.maximum(counts, 1)[:, None]
    apart = (said - mean)[chosen]
    return mean, apart.T @ apart, int(np.maximum(counts - 1, 0).sum())


def _firm(matrix: np.ndarray, least: float = NOISE) -> np.ndarray:
    """Return the nearest symmetric matrix with eigenvalues of at least ``least``."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


def _of_law(found: Law, said: np.ndarray, others: np.ndarray, inside: np.ndarray) -> Scores:
    """Score outputs (R, n, d), given the references' (K, n, d) and their training sets, bool (K, n)."""
    ratio = np.empty(said.shape[:2])
    counts = np.stack([(~inside).sum(axis=0), inside.sum(axis=0)], axis=1)
    means = [_around(others, chosen)[0] for chosen in (~inside, inside)]
    kinds, own = np.unique(counts, axis=0, return_inverse=True)
    for kind, count in enumerate(kinds):
        rows = np.flatnonzero(own.reshape(-1) == kind)
        seen = np.concatenate([mean[rows] for mean, some in zip(means, count, strict=True) if some], axis=1)
        out, within = predicted(found, count, seen)
        ratio[:, rows] = _log_density(said[:, rows], *within) - _log_density(said[:, rows], *out)
    return Scores(ratio, ratio > 0)


def predicted(found: Law, counts: np.ndarray, seen: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Return the mean (m, d) and covariance (d, d) of a further output on m records: without them in training, and with
    them.

    Args:
        found: distribution of outputs.
        counts: numbers of references trained without these records, and with them.
        seen: the mean answers of those (m, d), side by side; (m, 2 d) if there are both.
    """
    d = len(found.mean)
    eye, zero = np.eye(d), np.zeros((d, d))
    prior = np.block([[found.spread, zero], [zero, found.gains]])
    start = np.concatenate([found.mean, found.gain])
    views = np.block([[eye, zero], [eye, eye]])  # from (expectation, gain) to the expected answer without and with
    chances = (found.without, found.within)
    some = [k for k in (0, 1) if counts[k]]
    view = np.concatenate([views[k * d : (k + 1) * d] for k in some])
    chance = np.zeros((len(view), len(view)))
    for place, k in enumerate(some):
        chance[place * d : (place + 1) * d, place * d : (place + 1) * d] = chances[k] / counts[k]
    weight = np.linalg.solve(view @ prior @ view.T + chance, view @ prior).T
    mean, left = start + (seen - view @ start) @ weight.T, prior - weight @ view @ prior
    parts = zip((views[:d], views[d:]), chances, strict=True)
    return tuple((mean @ part.T, part @ left @ part.T + own) for part, own in parts)


def _log_density(values: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return the normal log density of values (R, m, d), without the constant: (R, m)."""
    lower = np.linalg.cholesky(_firm(covariance))
    apart = np.linalg.solve(lower, (values - mean).reshape(-1, len(lower)).T)
    return np.asarray(-0.5 * (apart**2).sum(axis=0).reshape(values.shape[:2]) - np.log(lower.diagonal()).sum())
