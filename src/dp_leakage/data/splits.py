"""Splits of the records: disjoint roles, random inclusion from a pool, and a search for duplicates."""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import derived_seed

# Shares of the roles if the user names no sizes. Shadow models draw members and as many non-members from their pool,
# and a pool is half in, half out.
AUTOMATIC_SHARES = {
    "target_members": 2, "pool": 4, "target_nonmembers": 2, "shadow_pool": 4, "reference_pool": 2, "tuning": 2
}  # fmt: skip


def split(
    y: np.ndarray,
    roles: Mapping[str, int],
    *,
    seed: int,
    stratified: bool,
    given: Mapping[str, np.ndarray] | None = None,
    what: str = "records",
) -> dict[str, np.ndarray]:
    """Draw rows for each role without replacement, so that roles are disjoint.

    Args:
        y: int64, (n,), the classes.
        roles: role → number of records. Roles are drawn in this order, so that a later role's size does not change
            earlier rows. Roles in ``given`` are drawn first.
        seed: of the draw.
        stratified: give each role the class shares of the remaining rows, to the nearest record.
        given: role → rows to draw from, e.g. a publisher's test set; other roles draw from all rows.
        what: name of the drawn units, for error messages.

    Returns:
        role → int64 rows in random order, so that the first k of them are a random k.

    Raises:
        UserError: a size below 1, or more records wanted than there are.
    """
    given = given or {}
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    free = np.ones(len(y), bool)
    rows = {}
    for role in sorted(roles, key=lambda name: name not in given):  # stable: given roles first, else as listed
        size = roles[role]
        if size < 1:
            raise UserError(f"roles: {role} is {size}; expected a number of {what}, at least 1")
        allowed = free.copy()
        if role in given:
            allowed &= np.isin(np.arange(len(y)), given[role])
        candidates = order[allowed[order]]
        if size > len(candidates):
            wanted = ", ".join(f"{name}: {count:,}" for name, count in roles.items())
            raise UserError(
                f"roles: {role} needs {size:,} {what} but only {len(candidates):,} of {len(y):,} are left for it "
                f"(wanted: {wanted}); make the roles smaller"
            )
        rows[role] = _stratum(candidates, y, size) if stratified else candidates[:size]
        free[rows[role]] = False
    return {role: rows[role].astype(np.int64) for role in roles}


def split_persons(person: np.ndarray, roles: Mapping[str, int], *, seed: int) -> dict[str, np.ndarray]:
    """Draw rows for each role, with all records of a person in one role.

    Args:
        person: int64 (n,), the owner of each record, numbered from 0.
        roles: role → number of people, in the order in which they are drawn.
        seed: of the draw.

    Returns:
        role → int64 rows, person by person in random order.

    Raises:
        UserError: a size below 1, or more people wanted than there are.
    """
    everybody = np.zeros(int(person.max()) + 1, np.int64)
    drawn = split(everybody, roles, seed=seed, stratified=False, what="persons")
    by_person = np.argsort(person, kind="stable")
    ends = np.cumsum(np.bincount(person))
    of_each = np.split(by_person, ends[:-1])
    return {role: np.concatenate([of_each[one] for one in chosen]) for role, chosen in drawn.items()}


def heads(n: int, repeats: int, seed: int) -> np.ndarray:
    """Draw random inclusion, bool (repeats, n): a fair coin decides for each record and repeat whether the model trains
    on it.

    Every repeat has its own random stream, so that more repeats do not change the inclusion in earlier ones.
    """
    return np.stack([np.random.default_rng(derived_seed(seed, repeat)).random(n) < 0.5 for repeat in range(repeats)])


def dealt(n: int, size: int, models: int, seed: int) -> np.ndarray:
    """Deal ``size`` of n records to each of several models: int64 (models, size), ascending.

    Each record is in about equally many models. The training sets are disjoint blocks of one shuffle, as many as fit,
    followed by blocks of the next shuffle. (If they hold more than half of the records, the records that they leave out
    are such blocks.) So halves are complementary, and every record is in as many models as it is out of. More models do
    not change the records of earlier ones.
    """
    block = size if 2 * size <= n else n - size
    per_shuffle = n // block if block else 1
    rows = []
    for model in range(models):
        shuffle, place = divmod(model, per_shuffle)
        order = np.random.default_rng([seed, shuffle]).permutation(n)
        own = order[place * block : (place + 1) * block]
        rows.append(np.sort(own) if block == size else np.setdiff1d(order, own))
    return np.stack(rows)


def automatic_roles(n: int, names: Sequence[str]) -> dict[str, int]:
    """Return default sizes of the roles ``names``: fixed shares of ``n`` records."""
    total = sum(AUTOMATIC_SHARES[name] for name in names)
    return {name: n * AUTOMATIC_SHARES[name] // total for name in names}


def balanced(y: np.ndarray, min_per_class: int = 1, per_class: int | None = None, seed: int = 0) -> np.ndarray:
    """Return rows of the classes with at least ``min_per_class`` records, ``per_class`` random ones of each.

    With ``per_class``, classes with fewer records than that are dropped too. Without it, all records of a class stay.
    """
    rng = np.random.default_rng(seed)
    kept = [np.empty(0, np.int64)]
    for c in range(int(y.max()) + 1):
        rows = np.flatnonzero(y == c)
        if len(rows) >= max(min_per_class, per_class or 1):
            kept.append(rows if per_class is None else rng.permutation(rows)[:per_class])
    return np.sort(np.concatenate(kept)).astype(np.int64)


def shares(counts: np.ndarray, size: int) -> np.ndarray:
    """Divide ``size`` in proportion to ``counts`` into whole numbers, int64 (n,); ties go to the first."""
    exact = counts * size / counts.sum()
    wanted = np.floor(exact).astype(np.int64)
    wanted[np.argsort(wanted - exact, kind="stable")[: size - wanted.sum()]] += 1
    return wanted


def duplicates(x: np.ndarray, roles: Mapping[str, np.ndarray]) -> dict[tuple[str, str], int]:
    """Count for each pair of roles the records of the first with the same features as a record of the second.

    A pair (role, role) counts the records that repeat an earlier one of the same role. Pairs with a count of 0 are left
    out.
    """
    keys = {role: [_row_hash(x[row]) for row in rows] for role, rows in roles.items()}
    distinct = {role: set(hashes) for role, hashes in keys.items()}
    found = {(role, role): len(keys[role]) - len(distinct[role]) for role in keys}
    found |= {(a, b): sum(key in distinct[b] for key in keys[a]) for a, b in combinations(keys, 2)}
    return {pair: count for pair, count in found.items() if count}


def _row_hash(record: np.ndarray) -> bytes:
    return hashlib.blake2b((record + 0).tobytes(), digest_size=16).digest()  # + 0 makes -0.0 and 0.0 the same bytes


def _stratum(candidates: np.ndarray, y: np.ndarray, size: int) -> np.ndarray:
    """Return the first ``candidates`` of each class, in order, up to the class's share of ``size``."""
    counts = np.bincount(y[candidates])
    wanted = shares(counts, size)  # at most what a class has, since only fractions round up
    by_class = np.argsort(y[candidates], kind="stable")
    starts = np.cumsum(counts) - counts
    rank = np.empty(len(candidates), np.int64)
    rank[by_class] = np.arange(len(candidates)) - starts[y[candidates][by_class]]
    return candidates[rank < wanted[y[candidates]]]
