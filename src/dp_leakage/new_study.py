"""Study of your own data: ``dp-leakage new mine --data my.csv --label diagnosis``.

This module reads the data, describes them, warns of properties that make results hard to judge, and writes a study file
with the standard grid, which ``dp-leakage run mine`` runs to a report.
"""

import argparse
import os
import re
import secrets
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import ceil, log10
from pathlib import Path
from typing import Any

import numpy as np

from dp_leakage.attacks import ATTACKS
from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError, plain
from dp_leakage.common.names import check_name
from dp_leakage.common.paths import is_there, user_path
from dp_leakage.common.places import STUDIES
from dp_leakage.common.rounding import two_digits
from dp_leakage.common.shown import capital
from dp_leakage.common.utilities import ACCURACY, label_of
from dp_leakage.common.yaml_files import read_yaml, written
from dp_leakage.data import by_person, load, resolve
from dp_leakage.data.near_copies import TOGETHER, together
from dp_leakage.data.profile import copies_of, is_harmless, profile, single_class
from dp_leakage.data.raw import Raw, filled
from dp_leakage.data.roles import OUTSIDERS, POOL, TUNING
from dp_leakage.data.splits import automatic_roles, split, split_persons
from dp_leakage.metrics.utility import utility_for
from dp_leakage.options.new_study import parser
from dp_leakage.provenance.files import write_text
from dp_leakage.report.answer import Acceptable
from dp_leakage.report.caveats import RARELY
from dp_leakage.report.forecast import WANTED
from dp_leakage.report.planned import LEAKS, LOSES, Planned
from dp_leakage.study.file import study_files
from dp_leakage.study.protocol import seed_of

LEAST_POOL = 50  # with fewer, intervals are as wide as the whole range
LEAST_MEMBERS = LEAST_POOL // 2  # mean number of records that a model trains on
LEAST_TUNING = 200  # least number of records set apart; with fewer, very different rates look alike
ROLES = {
    POOL: "for each model a coin says of each of these whether it trains on it; attacks must tell which way it fell",
    OUTSIDERS: "no model trains on these: accuracy is measured on them",
    TUNING: "set apart: learning rates are tried on these alone, which costs the others no privacy",
}
SCALING = ", and scaling is fitted on them"
RATES = [0.001, 0.003, 0.01, 0.03]  # for Adam; the best rates of undefended and of noisy training are seldom the same
NAMES = re.compile(r'\s*(?:"([^"]*)"|([^,]*))\s*(?:,|$)')  # between commas, in double quotes or bare
NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
SIDE = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)
SURE = 0.99  # a probability above which none is told
MOST_FEATURES = 5  # columns that attribute inference guesses

QUESTION = (
    "Which ε keeps a model of these data useful, what does an attacker still learn about the training records there, "
    "and which ε does the accounting prove?"
)
COMMENTS = {
    "seed": "All that is random follows from it. Whoever knows it can draw the noise again: keep it to yourself.",
    "design": (
        "In each repeat every record of the pool is in or out of training by a fair coin; the other repeats of a cell "
        "are the attackers' references, so that no further model is trained."
    ),
    "utility": "The measure of use: nearly all records have one class, so that accuracy would say little.",
    "repeats": (
        "Models per cell. One look is planned, which may err in 5 % of studies; to look again with 32, add the key "
        "looks: [16, 32] before the first run, and each look may err in 2.5 %."
    ),
    "defenses": "The last has Poisson batches, accounted for with Rényi divergences: the usual way; a cell for each ε.",
    "tune": (
        "Each cell trains with the rate that is best on the records of the role tuning. Without this key, with the one "
        "above."
    ),
    "scales": "A first look: dp-leakage run NAME --scale smoke",
}
SCALES: Json = {
    "smoke": {
        "repeats": 4,
        "epsilon": [1, 100],
        "training": {"epochs": 4, "evaluate_every": 4},
    }
}
TABLES = (".csv", ".tsv", ".parquet")
FEWER_RATES: Json = {"tune": {"learning_rate": [0.003, 0.03]}}  # at scale smoke
SOFTMAX: Json = {"architecture": {"name": "softmax_regression"}}
# A wide layer and a small rate: on 446 binary columns of 30 classes .635 right where two layers of 64 at .01 have .544.
TABLE_MODELS: Json = {
    "softmax_regression": SOFTMAX,
    "mlp": {"architecture": {"name": "mlp", "hidden": [256]}, "training": {"learning_rate": 0.001}},
}
IMAGE_MODELS: Json = {
    "softmax_regression": SOFTMAX,
    "cnn_small": {"architecture": {"name": "cnn_small"}, "training": {"learning_rate": 0.003}},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status, 1 if the data or a name is not valid."""
    options = parser().parse_args(arguments)
    file = options.folder / f"{options.name}.yaml"
    try:
        if not options.name:
            raise UserError("name is missing; give the study one of lowercase letters, digits and _, such as mine")
        check_study_name(options.name, file)
        source = source_of(options)
        source, raw = _with_copies(source, load(source, Path("data")))
        text, said = study_text(options.name, source, raw, _seed(options.seed))
        write_text(file, text)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    look = f"A first look in minutes: dp-leakage run {options.name} --scale smoke"
    print("\n".join(map(plain, [*said, f"Wrote {file}. Now run: dp-leakage run {options.name}", look])))
    return 0


def source_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the data set's ``source`` for a study file. Raises UserError for keys that its kind does not have."""
    if not options.data:
        raise UserError("data is missing; name a table, an .npz, a folder of images or a zip of one")
    path = user_path(options.data)
    if not is_there(path):
        raise UserError(f"data: {options.data} does not exist; expected a table, an .npz, a folder of images or a zip")
    if path.suffix.lower() in TABLES and not options.label:
        raise UserError(f"label is missing; name the column of {options.data} that holds the class")
    source: dict[str, Any] = {"path": path_in_study(path)}
    source |= {key: getattr(options, key) for key in ("label", "key", "person", "missing") if getattr(options, key)}
    for key in ("sensitive", "categorical", "drop"):
        source |= columns_of(options, key, path)
    if options.leave_out:
        source["leave_out"] = [name.strip() for name in options.leave_out.split(",") if name.strip()]
    if options.skip_damaged:
        source["skip_damaged"] = True
    if options.size:
        source["size"] = _size(options.size)
    resolve(source)
    return source


def _with_copies(source: dict[str, Any], raw: Raw) -> tuple[dict[str, Any], Raw]:
    """Return the source, in which near-copies are included together, and its records.

    Data with persons are left alone, and so are data with attributes to guess, since a guess is about a single record.
    """
    if by_person(source) or "sensitive" in source or not copies_of(raw, {POOL: np.arange(len(raw.y))}).groups:
        return source, raw
    return source | {"copies": TOGETHER}, together(raw)


def columns_of(options: argparse.Namespace, key: str, path: Path) -> dict[str, list[str | int]]:
    """Return a source's key for a list of columns, from a comma-separated option; empty without columns.

    Names with commas need double quotes.
    """
    found = NAMES.findall(getattr(options, key))
    names = [name for name in (quoted or bare.strip() for quoted, bare in found) if name]
    numbered = path.suffix == ".npz"
    return {key: [int(name) if numbered and NUMBER.fullmatch(name) else name for name in names]} if names else {}


def path_in_study(path: Path) -> str:
    """Return a file's path for a study file: relative if it lies below this folder, else absolute. UserError if not
    UTF-8.
    """
    path = Path(os.path.realpath(path))  # which a loop of links does not make fail
    if any("\ud800" <= c <= "\udfff" for c in str(path)):
        raise UserError(f"{str(path)!r} has a name that is not UTF-8 text; rename it")
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def study_text(name: str, source: dict[str, Any], raw: Raw, study_seed: int) -> tuple[str, list[str]]:
    """Return the study file for these records, and remarks for the screen.

    Raises:
        UserError: there are too few records, or a role has only one class.
    """
    units = len(raw.y) if raw.person is None else int(raw.person.max()) + 1
    what = "records" if raw.person is None else "persons"
    roles = automatic_roles(units, tuple(ROLES))
    if roles[TUNING] < LEAST_TUNING:
        roles = automatic_roles(units, (POOL, OUTSIDERS))
    classes = len(raw.class_names)
    least = max(LEAST_POOL, 2 * classes)
    if roles[POOL] < least:
        share = units / max(roles[POOL], 1)
        raise UserError(
            f"{source['path']}: only {units:,} {what} of {classes} classes; at least {ceil(share * least):,} are "
            "needed, since models train on a third of them"
        )
    as_in_settings = dict(sorted(roles.items()))  # the draw depends on their order
    # Step that will draw the roles, so that the remarks are true of the actual split.
    seed = seed_of({"seed": study_seed, "datasets": {name: {"source": source}}}, name, "split")
    if raw.person is None:
        rows = split(raw.y, as_in_settings, seed=seed, stratified=True)
    else:
        rows = split_persons(raw.person, as_in_settings, seed=seed)
    if one_sided := single_class(raw, rows):
        raise UserError(f"{source['path']}: {one_sided}")
    raw = filled(raw, rows)
    remarks = profile(raw, rows)
    shape = f"{raw.x.shape[1]} features" if raw.x.ndim == 2 else f"images of {' × '.join(map(str, raw.x.shape[1:]))}"
    of_whom = "" if raw.person is None else f" of {units:,} persons"
    summary = f"{Path(source['path']).name}: {len(raw.y):,} records{of_whom}, {shape}, {classes} classes."
    header = [
        summary,
        f"Made by dp-leakage new; change what you like, then run: dp-leakage run {name}",
        *beware(remarks),
    ]
    comments = {key: words.replace("NAME", name) for key, words in COMMENTS.items()}
    projection = _projection(raw)
    measure = utility_for(None, raw.y[rows[POOL]], raw.y[rows[OUTSIDERS]])
    spec = _spec(name, study_seed, source, roles, projection, _askable(raw, rows), measure)
    y = raw.y[rows[OUTSIDERS]]
    # The precision of a measure of rare classes depends on the records of the rarest class.
    tested = roles[OUTSIDERS] if measure == ACCURACY else 2 * int(np.unique(y, return_counts=True)[1].min())
    power = _power(spec, roles, what, min(tested, roles[OUTSIDERS]))
    text = written(spec, [*header, *power], comments)
    fitted = (projection or {}).get("fit_on", [])
    sizes = [
        f"  {role:<18}{count:>7,}   {ROLES[role]}{SCALING if role in fitted else ''}" for role, count in roles.items()
    ]
    untuned = (
        []
        if TUNING in roles
        else [f"Learning rates are not tuned: for that, {LEAST_TUNING} {what} would have to be set apart."]
    )
    unguessed = (
        [f"No attack guesses {', '.join(source['sensitive'])}: guesses about one person's records are not independent."]
        if "sensitive" in source and raw.person is not None
        else []
    )
    judged = [] if measure == ACCURACY else [f"Use is judged by {label_of(measure)}, since one class dominates."]
    return text, [summary, *raw.notes, *sizes, *judged, *untuned, *unguessed, *power, *beware(remarks)]


def _power(spec: Json, roles: dict[str, int], what: str, tested: int) -> list[str]:
    """Return the probability of recommending a setting well within the limits, and what would raise it to `WANTED`.

    Args:
        spec: the study.
        roles: role → number of its records, or persons.
        what: their name: records or persons.
        tested: effective number of records on which use is measured.
    """
    membership = sum(ATTACKS[attack].family == "membership" for attack in spec["attacks"])
    planned = Planned(roles[POOL], tested, (spec["repeats"],), membership, len(spec["models"]))
    limits = Acceptable()
    (probability,) = planned.probabilities(limits)
    words = (
        f"With {spec['repeats']} repeats, a setting that loses {100 * LOSES * limits.accuracy_loss:g} % and has an "
        f"advantage of {LEAKS * limits.advantage:g} is recommended with a probability of {_about(probability)}."
    )
    if probability >= WANTED:
        return [words]
    wanted, looks = f"{100 * WANTED:.0f} %", (spec["repeats"], 2 * spec["repeats"])
    at_first, by_second = map(_about, replace(planned, looks=looks).probabilities(limits))
    twice = f"With looks: {[*looks]}, it is {at_first} at the first look and {by_second} by the second."
    if (enough := planned.enough(limits)) is not None:
        return [f"{words} {enough[0]} repeats make it {wanted} (key repeats).", twice]
    if (times := planned.times_records(limits)) is None:
        return [words, twice]
    more = two_digits(times * sum(roles.values()))
    return [f"{words} More repeats do not make it {wanted}; about {more:,} {what} do.", twice]


def _about(probability: float) -> str:
    """Return a probability in words, without the digits that it does not have."""
    about = "less than" if probability < RARELY else "more than" if probability > SURE else "about"
    return f"{about} {100 * min(max(probability, RARELY), SURE):.0f} %"


def beware(remarks: list[str]) -> list[str]:
    """Return the remarks for the screen, with "Beware" before those on misleading properties."""
    return [remark if is_harmless(remark) else f"Beware: {remark}" for remark in remarks]


def _projection(raw: Raw) -> Json | None:
    """Return the scaling of a table's columns, except for zeros and ones (`projection.scale`); None for images."""
    if raw.x.ndim != 2:
        return None
    binary = bool(((raw.x == 0) | (raw.x == 1)).all())
    return {} if binary else {"scale": "standard", "fit_on": [OUTSIDERS]}


def _spec(
    name: str,
    seed: int,
    source: Json,
    roles: dict[str, int],
    projection: Json | None,
    features: int,
    measure: str,
) -> Json:
    """Return the study as written to its file.

    Args:
        name: name of the study and its data set.
        source: source of the records.
        roles: number of records in each role.
        projection: scaling of a table's columns; None for images.
        features: number of features to guess by attribute inference; 0: none.
        measure: measure of use.
    """
    pool = roles[POOL]
    members = pool // 2
    epochs = 60 if members <= 1000 else 30 if members <= 10_000 else 15
    table, tuned = projection is not None, TUNING in roles
    attacks: Json = {"yeom": {}, "lira_online": {}, "rmia_online": {}}
    if features:
        attacks["yeom_attribute"] = {"features": features, "candidates": "distinct_quartiles"}
    choice = (
        "Features are scaled by records that no model trains on, so that costs those that are trained on no privacy; "
        "zeros and ones stay so."
        if projection
        else "Features are zeros and ones and stay so."
        if table
        else "Pixels are used as they are, in [0, 1]."
    )
    return {
        "study": name,
        "title": f"What a privacy budget buys on {name}",
        "question": QUESTION,
        "seed": seed,
        "design": "coins",
        **({} if measure == ACCURACY else {"utility": measure}),
        "repeats": 16,
        "delta": min(1e-5, 10.0 ** -ceil(log10(pool) + 1)),
        "epsilon": [0.1, 1, 2, 5, 10, 50, 100, 1000],
        "datasets": {
            name: {
                "source": source,
                "roles": roles,
                "stratified": not by_person(source),
                "projection": projection or None,
            }
        },
        "models": TABLE_MODELS if table else IMAGE_MODELS,
        "training": {
            "optimizer": "adam",
            "learning_rate": 0.01,
            "epochs": epochs,
            "batch_size": max(1, min(512, pool // 4)),
            "evaluate_every": epochs // 5,
        },
        **({"tune": {"learning_rate": RATES}} if tuned else {}),
        "defenses": [
            {"defense": "none"},
            {"defense": "l2", "l2": 0.01},
            {"defense": "dropout", "dropout": 0.5, "models": ["mlp" if table else "cnn_small"]},
            *([{"defense": "person", "accountant": "rdp"}] if by_person(source) else []),
            {"defense": "gaussian", "accountant": "rdp", "sampler": "poisson"},
        ],
        "attacks": attacks,
        **({"groups": ["class", "sensitive"]} if _has_groups(source) else {}),
        "figures": _figures(
            attribute=features > 0, network="mlp" if table else "cnn_small", source=source, use=label_of(measure)
        ),
        "choices": [choice],
        "scales": {"smoke": SCALES["smoke"] | (FEWER_RATES if tuned else {})},
    }


def _has_groups(source: Json) -> bool:
    """Return whether groups can be compared: single records with sensitive values."""
    return "sensitive" in source and not by_person(source)


def _figures(*, attribute: bool, network: str, source: Json, use: str) -> Json:
    use = capital(use)
    person = by_person(source)
    guessed = {"attack": "yeom_attribute", "definition": "gap"}
    membership = ["yeom", "lira_online", "rmia_online"]
    lira = {"attack": "lira_online"}
    exposed = _attacked("vulnerability", "Who is exposed", lira | {"budgets": 3})
    return {
        "fig_pareto": _figure("pareto", f"{use} against leakage", ["training", *membership]),
        "fig_accuracy_loss": _figure("accuracy_loss", f"{use} lost to each privacy budget", ["training"]),
        "fig_leakage_yeom": _attacked("leakage", "Membership, loss threshold (Yeom)", {"attack": "yeom"}),
        "fig_leakage_lira": _attacked("leakage", "Membership, likelihood ratio (LiRA)", lira),
        "fig_leakage_rmia": _attacked("leakage", "Membership, against others (RMIA)", {"attack": "rmia_online"}),
        "fig_vulnerability": exposed | {"select": {"model": [network]}},
        **({"fig_leakage_attribute": _attacked("leakage", "Attribute inference (Yeom)", guessed)} if attribute else {}),
        "fig_spent_epsilon": _figure("spent_epsilon", "The accounted ε", ["training"]),
        "table_members_exposed": _attacked("members_exposed", "Members exposed by the likelihood ratio", lira),
        **({"fig_groups": _figure("groups", "Who pays", ["groups"])} if _has_groups(source) else {}),
        **({"table_persons": _attacked("persons_table", "People and their records", lira)} if person else {}),
    }


def _figure(kind: str, title: str, parts: list[str]) -> Json:
    return {"kind": kind, "title": title, "parts": parts}


def _attacked(kind: str, title: str, settings: Json) -> Json:
    return _figure(kind, title, [settings["attack"]]) | {"settings": dict(settings)}


def _askable(raw: Raw, rows: dict[str, np.ndarray]) -> int:
    """Return the number of features that attribute inference can guess; 0 for images, and for data with persons."""
    if raw.x.ndim != 2 or raw.person is not None:  # guesses about a person's records are not independent
        return 0
    columns = raw.sensitive if len(raw.sensitive) else np.arange(raw.x.shape[1])
    return int(min(MOST_FEATURES, (np.ptp(raw.x[rows[POOL]][:, columns], axis=0) > 0).sum()))


def _seed(given: str) -> int:
    """Return the given seed, or a random one. Raises UserError for an invalid seed."""
    if not given:
        return secrets.randbelow(10**9)
    if not NUMBER.fullmatch(given):
        raise UserError(f"seed: {given!r} is not a seed; expected a whole number of at most nine digits")
    return int(given)


def check_study_name(name: str, file: Path) -> None:
    """Refuse a name that would break this or another study's targets."""
    check_name(name, "name")
    if file.exists() or file.is_symlink():
        raise UserError(f"name: {file} exists already; choose another name, or remove it")
    for other in [*study_files(STUDIES), *study_files(file.parent)]:
        if name in _targets(other):
            raise UserError(f"name: '{name}' is a target of the study in {other}; choose another name")


def _targets(file: Path) -> set[str]:
    """Return the targets of a study file; empty if it cannot be read, since it then runs nothing."""
    try:
        spec = read_yaml(file)
    except UserError:
        return set()
    figures = spec.get("figures")
    parts = ["report", "audit", *(figures if isinstance(figures, dict) else [])]
    return {str(spec.get("study")), *(f"{spec.get('study')}_{part}" for part in parts)}


def _size(text: str) -> list[int]:
    """Parse ``32x24``, or ``32`` for a square. Raises UserError."""
    sides = text.split("x")
    if len(sides) > 2 or not all(SIDE.fullmatch(side) for side in sides):
        raise UserError(
            f"size: {text!r} is not a size; expected HEIGHTxWIDTH in pixels, such as 32x32, up to 9999 each"
        )
    return [int(sides[0]), int(sides[-1])]
