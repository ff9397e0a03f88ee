"""Warnings about the data that users need before they rely on results."""

import shlex
from collections.abc import Mapping

import numpy as np

from dp_leakage.data.near_copies import Copies, copy_groups, counted
from dp_leakage.data.persons import numbered_files
from dp_leakage.data.raw import Raw, own_columns
from dp_leakage.data.roles import MEMBERS, OUTSIDERS, PLACES, asked_roles, trained_role
from dp_leakage.data.splits import duplicates

FEW_RECORDS = 200  # records in a role; an advantage over 200 + 200 records has a standard error of 0.05
FEW_PER_CLASS = 10
RECORDS_PER_VALUE = 10  # mean number from which on it is no chance that each value of a column has one class
NUMBERED = 0.99  # share of different whole numbers in a column that may number the records
SHOWN = 5  # names in a sentence
TRAINED_HERE = (
    "Splits, attacks and ε are those of single records here, and promise less to a person with several. Records of one "
    "person may lie on both sides of the split, so leakage looks smaller than it is for a person. Say whose each "
    "record is by the source's person (--person {person}), which takes models of engine ensemble, or keep one record "
    "per person."
)
EXISTING = (
    "Intervals take records as independent, so people with several records make them too narrow. If one record of a "
    "person is a member and another is not, leakage looks smaller than it is for a person. Keep one record per person."
)


def profile(
    raw: Raw, roles: Mapping[str, np.ndarray], trained_elsewhere: bool = False, copies: Copies | None = None
) -> list[str]:
    """Return sentences on properties of ``raw``, split into ``roles`` (role → rows), that make results hard to
    judge.

    They report too few records in a role, too few (of people: people) of a class among the members, classes that are
    absent there or where accuracy is measured, a single class, one class that dominates, constant columns, columns
    that give the label away or seem to number the records, records that occur in two roles or twice in one, records
    that nearly do (``copies``, of `copies_of`, if it is known), and columns or names of files that seem to say whose
    record it is. Studies of a model that was ``trained_elsewhere`` know no people, so none are proposed there.
    """
    role = trained_role(roles)
    members, place = roles.get(role, np.arange(len(raw.y))), PLACES[role]
    return [
        *_few_records(roles),
        *_classes(raw, members, place),
        *(_absent(raw, roles[OUTSIDERS], PLACES[OUTSIDERS]) if OUTSIDERS in roles else ()),
        *_constant_columns(raw, members, place),
        *_columns_that_are_no_features(raw),
        *repeated(raw, roles),
        *near_copies(copies_of(raw, roles) if copies is None else copies, trained_elsewhere),
        *several_per_person(raw, trained_elsewhere),
    ]


def is_harmless(remark: str) -> bool:
    """Return whether a remark only informs: a constant column does not affect any measurement."""
    return " with one value in all " in remark


def _few_records(roles: Mapping[str, np.ndarray]) -> list[str]:
    sizes = {role: len(rows) for role, rows in roles.items()}
    said = [
        f"Only {n} records are {PLACES[role]}; at least {FEW_RECORDS} are advisable."
        for role, n in sizes.items()
        if n < FEW_RECORDS
    ]
    if said and {MEMBERS, OUTSIDERS} <= sizes.keys():
        m, n = sizes[MEMBERS], sizes[OUTSIDERS]
        error = np.sqrt(0.25 / m + 0.25 / n)
        said.append(
            f"With {m} members and {n} non-members a membership advantage has a standard error of up to {error:.2f}."
        )
    return said


def _classes(raw: Raw, members: np.ndarray, place: str) -> list[str]:
    counts = np.bincount(raw.y[members], minlength=len(raw.class_names))
    present = np.flatnonzero(counts)
    if len(present) == 1:
        return [f"All records {place} are of the class {raw.class_names[present[0]]}; there is nothing to learn."]
    said = []
    alike: dict[str, list[str]] = {}
    for own in raw.class_names:
        alike.setdefault(own.strip().casefold(), []).append(own)
    said += [
        f"Classes {_listed(list(map(repr, names)))} differ in case or blanks alone. If they are one, write them alike."
        for names in alike.values()
        if len(names) > 1
    ]
    said += _absent(raw, members, place)
    units = _units(raw, members)
    what = "records" if raw.person is None else "people"
    few = [_in_class(raw, c, members) for c in present.tolist() if units[c] < FEW_PER_CLASS]
    if few:
        said.append(
            f"{_count(few, 'class', 'classes')} with fewer than {FEW_PER_CLASS} {what} {place}: {_listed(few)}."
        )
    top = int(counts.argmax())
    share = counts[top] / counts.sum()
    if share > 0.5 + 0.5 / len(present):
        said.append(
            f"{share:.0%} of the records {place} are of the class {raw.class_names[top]}: guessing it always is that "
            "accurate."
        )
    return said


def _absent(raw: Raw, rows: np.ndarray, place: str) -> list[str]:
    counts = np.bincount(raw.y[rows], minlength=len(raw.class_names))
    absent = [raw.class_names[c] for c in np.flatnonzero(counts == 0)]
    return [f"{_count(absent, 'class', 'classes')} without any record {place}: {_listed(absent)}."] if absent else []


def single_class(raw: Raw, roles: Mapping[str, np.ndarray]) -> str:
    """Describe a role with one class, where nothing can be learned and accuracy is meaningless; "" if all roles have
    several.
    """
    everything = np.arange(len(raw.y))
    what = "records" if raw.person is None else "people"
    for role, rows in roles.items():
        if len(held := np.unique(raw.y[rows])) == 1:
            others = np.delete(np.arange(len(raw.class_names)), held)
            known = _listed([_in_class(raw, c, everything) for c in others.tolist()])
            # With one for each role, there is a split in which every role has two classes.
            split = ", or draw another split (SEED)" if _units(raw, everything)[others].sum() >= len(roles) else ""
            return (
                f"all {len(rows):,} records {PLACES[role]} are of the class {raw.class_names[held[0]]}; expected two "
                f"classes in each part of the split: of others there are only {known}, so add more {what}{split}"
            )
    return ""


def _units(raw: Raw, rows: np.ndarray) -> np.ndarray:
    """Count the people with records of each class among ``rows``, or the records if people are unknown: (classes,)."""
    person = rows if raw.person is None else raw.person[rows]
    classes = np.unique(np.stack([raw.y[rows], person]), axis=1)[0]
    return np.bincount(classes, minlength=len(raw.class_names))


def _in_class(raw: Raw, c: int, rows: np.ndarray) -> str:
    """Describe the number of ``rows`` and people in a class: ``ill (8 records of 1 person)``."""
    records = int((raw.y[rows] == c).sum())
    if raw.person is None:
        return f"{raw.class_names[c]} ({records})"
    people = int(_units(raw, rows)[c])
    return f"{raw.class_names[c]} ({_count(records, 'record', 'records')} of {_count(people, 'person', 'people')})"


def _constant_columns(raw: Raw, members: np.ndarray, place: str) -> list[str]:
    if raw.x.ndim != 2:
        return []
    constant = np.flatnonzero(raw.x[members].min(axis=0) == raw.x[members].max(axis=0))
    names = [raw.feature_names[c] if raw.feature_names else f"column {c}" for c in constant]
    if not names:
        return []
    said = [f"{_count(names, 'feature', 'features')} with one value in all records {place}: {_listed(names)}."]
    hidden = [name for c, name in zip(constant, names, strict=True) if c in raw.sensitive]
    if hidden:
        said.append(f"Attribute inference has nothing to guess in {_listed(hidden)}.")
    return said


def _columns_that_are_no_features(raw: Raw) -> list[str]:
    if raw.x.ndim != 2:
        return []
    columns = [(column.name, column.values(part)) for column, part in own_columns(raw)]
    telling = [name for name, values in columns if _gives_away(values, raw.y)]
    # Of records that are known by models' outputs alone, the only feature is their number (`sources.outputs`).
    only_numbered = bool(raw.names) and raw.x.shape[1] == 1
    numbering = [] if only_numbered else [name for name, values in columns if _numbers_records(values)]
    return [
        *(
            f"Column {name!r} gives the label away: records with the same value have the same class. If it was derived "
            f"from the label, leave it out (--drop {_typed(name)}); models have little else to learn while it is there."
            for name in telling
        ),
        *(
            f"Column {name!r} has a different whole number in nearly every record. If it numbers or names the records, "
            f"leave it out (--drop {_typed(name)}), or name the records by it in the report (--key {name}); models "
            "memorize it."
            for name in numbering
        ),
    ]


def _gives_away(values: np.ndarray, y: np.ndarray) -> bool:
    """Return whether all records with the same value have the same class, more than chance explains."""
    for asked in (FEW_RECORDS, len(y)):  # a few suffice to refuse most columns
        different, places = np.unique(values[:asked], return_inverse=True)
        pairs = np.unique(places * (y.max() + 1) + y[:asked])
        if len(pairs) > len(different):
            return False
    return y.min() < y.max() and len(different) <= len(y) / RECORDS_PER_VALUE


def _numbers_records(values: np.ndarray) -> bool:
    """Return whether nearly every record has a unique whole number."""
    return all(
        len(part) >= FEW_RECORDS and (part % 1 == 0).all() and len(np.unique(part)) >= NUMBERED * len(part)
        for part in (values[:FEW_RECORDS], values)
    )


def _typed(name: str) -> str:
    """Return a column's name quoted for a shell and --drop."""
    return shlex.quote(f'"{name}"' if "," in name else name)


def repeated(raw: Raw, roles: Mapping[str, np.ndarray]) -> list[str]:
    """Return sentences on records that occur in two roles, or twice in one."""
    said = []
    for (a, b), count in duplicates(raw.x, roles).items():
        some, end = f"{_count(count, 'record', 'records')} {PLACES[a]}", "s" if count == 1 else ""
        if a == b:
            said.append(f"{some} repeat{end} another one there.")
        else:
            said.append(f"{some} also occur{end} {PLACES[b]}, where no attack can tell them apart.")
    return said


def copies_of(raw: Raw, roles: Mapping[str, np.ndarray]) -> Copies:
    """Find the near-copies among the records whose membership is attacked.

    There are none if people are included as a whole, or if the records are known only by outputs.
    """
    rows = np.concatenate([roles[role] for role in asked_roles(roles) if role in roles])
    if raw.person is not None or (raw.names and raw.x.ndim == 2 and raw.x.shape[1] == 1):
        return Copies(0, 0, len(rows))
    return counted(copy_groups(raw.x[rows]))


def near_copies(found: Copies, trained_elsewhere: bool) -> list[str]:
    """Return a sentence on near-copies and the remedy, if the data have any."""
    if not found.records:
        return []
    way_out = (
        "Keep one record of each group."
        if trained_elsewhere
        else "Toss one coin for each group (the source's key copies: together), or keep one record of it."
    )
    return [
        f"{found.records:,} of {found.among:,} records are equal to another one or nearly so, like several pictures of "
        f"one person, in {_count(found.groups, 'group', 'groups')}. A copy may be a member where a record is none, "
        f"which hides what the records leak. {way_out}"
    ]


def several_per_person(raw: Raw, trained_elsewhere: bool) -> list[str]:
    """Return sentences on columns and file names that seem to identify people, and the remedy.

    Args:
        raw: the records.
        trained_elsewhere: whether the study is of a model that exists already, where nothing counts people.
    """
    said, n = EXISTING if trained_elsewhere else TRAINED_HERE, len(raw.y)
    found = [
        f"Column {name!r} seems to name persons: {different:,} values in {n:,} records. {said.format(person=name)}"
        for name, different in raw.persons
    ]
    if raw.x.ndim == 4 and raw.person is None and (files := numbered_files(raw.names, raw.y)):
        found.append(
            f"Files seem to be named by persons, with a number behind ({files.example}): {files.persons:,} names in "
            f"{n:,} records. {said.format(person=shlex.quote(files.pattern))}"
        )
    return found


def _count(things: list | int, one: str, many: str) -> str:
    n = things if isinstance(things, int) else len(things)
    return f"{n:,} {one if n == 1 else many}"


def _listed(names: list[str]) -> str:
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest:,} more" if rest > 0 else "")
