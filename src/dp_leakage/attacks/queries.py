"""Queries to trained models: once for all attacks or, for images, several times (Carlini et al. 2022, VI.B).

The first query of an image is the image itself. The others shift it by a pixel and mirror it.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from dp_leakage.attacks.signals import Signals
from dp_leakage.common.errors import UserError
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.roles import asked_roles
from dp_leakage.models.ensemble import Models

LOGITS_AT_ONCE = 1 << 24  # how many numbers; bounds the memory of all models' logits on one part of the records (64 MB)
SHIFTS = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)]
QUERIES = [(mirrored, *shift) for mirrored in (False, True) for shift in SHIFTS]


def asked_records(data: Dataset, roles: Sequence[str] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the records of all (or of the named) roles: row numbers int64 (n,), and the role of each, text (n,).

    Records whose membership is attacked come first, in the order of the split. The others follow role by role,
    ascending.
    """
    chosen = data.roles if roles is None else [role for role in roles if role in data.roles]
    first = [role for role in asked_roles(data.roles) if role in chosen]
    rest = sorted(set(chosen) - set(first))
    rows = [data.roles[role] for role in first] + [np.sort(data.roles[role]) for role in rest]
    return np.concatenate(rows), np.repeat([*first, *rest], [len(part) for part in rows])


def ask(models: Models, data: Dataset, queries: int = 1) -> Signals:
    """Query the models about every record that has a role, without the probabilities of the other classes.

    Args:
        models: K models, which run on the device where they are.
        data: features, labels and roles; images (n, channels, height, width) if ``queries`` > 1.
        queries: number of `QUERIES`, 1 to 18.

    Raises:
        UserError: more queries than exist, or more than one query of records that are not images.
    """
    if not 1 <= queries <= len(QUERIES):
        raise UserError(f"key 'queries' is {queries}; expected 1 to {len(QUERIES)}")
    if queries > 1 and data.x.ndim != 4:
        raise UserError(f"key 'queries' is {queries}, but the records are not images; expected 1")
    record, role = asked_records(data)
    y = data.y[record]
    margin = np.empty((queries, models.size, len(record)))
    correct, rank = np.empty(margin.shape[1:], dtype=bool), np.empty(margin.shape[1:], dtype=np.int32)
    for rows in _blocks(role):
        x = data.x[record[rows]]
        for model, part, z in logits(models, x, data.n_classes):
            place = model, slice(rows.start + part.start, rows.start + part.stop)
            label = torch.from_numpy(y[place[1]]).to(z.device)
            places = _ranks(z, label)
            rank[place] = places.cpu().numpy()
            correct[place] = _correct(z, label, places).cpu().numpy()
            margin[0][place] = _margins(z, label).cpu().numpy()
        for query, how in enumerate(QUERIES[1:queries], start=1):
            margin[query, :, rows] = margins(models, altered(x, *how), y[rows])
    own = data.owners(record)
    return Signals(record, y, role, trained_on(models, record), margin, correct, rank, person=own)


def ask_probabilities(models: Models, data: Dataset, roles: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities of all classes of the records of some roles: rows int64 (n,), float32 (K, n, C)."""
    record, role = asked_records(data, roles)
    result = np.empty((models.size, len(record), data.n_classes), dtype=np.float32)
    for rows in _blocks(role):
        for model, part, z in logits(models, data.x[record[rows]], data.n_classes):
            result[model, rows.start + part.start : rows.start + part.stop] = z.softmax(1).cpu().numpy()
    return record, result


def logits(models: Models, x: np.ndarray, n_classes: int) -> Iterator[tuple[int, slice, Tensor]]:
    """Yield logits (rows, C) of model after model, part by part of x (n, …), with the model and the slice of n.

    They are on the models' device. One model at a time stays in the processor's caches, which all together do not.
    """
    rows = max(1, LOGITS_AT_ONCE // (models.size * n_classes))
    for start in range(0, len(x), rows):
        part = slice(start, min(start + rows, len(x)))
        records = torch.from_numpy(x[part]).to(models.device)
        for model in range(models.size):
            yield model, part, models.logits(records, [model])[0]


def margins(models: Models, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the logit of the true class's probability, ln p_y/(1 − p_y), float64 (K, n), of records x (n, …), y (n,).

    Computed as z_y − ln Σ_{c≠y} exp z_c, which keeps its digits even if p_y rounds to 1. Loss and probability are
    functions of it, and it is LiRA's confidence.
    """
    y = np.asarray(y, dtype=np.int64)
    result = np.empty((models.size, len(x)))
    for model, part, z in logits(models, x, int(y.max(initial=0)) + 1):
        result[model, part] = _margins(z, torch.from_numpy(y[part]).to(z.device)).cpu().numpy()
    return result


def _ranks(z: Tensor, label: Tensor) -> Tensor:
    """Count the logits z (n, C) that are at least the true class's: int32 (n,)."""
    own = z.gather(1, label[:, None])
    return (z >= own).sum(1, dtype=torch.int32)  # without a dtype it would make 8 bytes for each logit


def _correct(z: Tensor, label: Tensor, rank: Tensor) -> Tensor:
    """Return whether argmax predicts the true class, bool (n,).

    A unique largest logit of the true class is correct, and a smaller one is wrong. Only ties need argmax.
    """
    own = z.gather(1, label[:, None])[:, 0]
    correct = rank == 1
    row = torch.nonzero(~correct & ~(own < z.amax(1)))[:, 0]  # NaN is below no number
    correct[row] = z[row].argmax(1) == label[row]
    return correct


def _margins(z: Tensor, label: Tensor) -> Tensor:
    """Return margins from logits z (n, C). Overwrites the entries of the true classes, (n,)."""
    own = label[:, None]
    true = z.gather(1, own)[:, 0]
    return true - z.scatter_(1, own, -torch.inf).logsumexp(1)


def _blocks(role: np.ndarray) -> Iterator[slice]:
    """Yield blocks of records that are queried together: those whose membership is attacked, then role by role."""
    group = np.where(np.isin(role, asked_roles(set(role.tolist()))), "", role)
    ends = [*np.flatnonzero(group[1:] != group[:-1]) + 1, len(role)] if len(role) else []
    yield from (slice(start, end) for start, end in zip([0, *ends], ends, strict=False))


def trained_on(models: Models, record: np.ndarray) -> np.ndarray:
    """Return whether each model was trained on each of the records (row numbers, (n,)): bool (K, n)."""
    return np.stack([np.isin(record, rows) for rows in models.train_indices.cpu().numpy()])


def altered(x: np.ndarray, mirrored: bool, down: int, right: int) -> np.ndarray:
    """Mirror images (n, c, h, w) left to right, then shift them by whole pixels. Zeros move in at the edges."""
    result = np.zeros_like(x)
    height, width = x.shape[2:]
    source = x[..., ::-1] if mirrored else x
    result[:, :, max(down, 0) : height + min(down, 0), max(right, 0) : width + min(right, 0)] = source[
        :, :, max(-down, 0) : height + min(-down, 0), max(-right, 0) : width + min(-right, 0)
    ]
    return result
