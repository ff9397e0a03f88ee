"""Study of an external model: ``dp-leakage attack mine --outputs outputs.parquet``.

This module reads the model's outputs on records (or queries the model), reports which attacks are possible and why
others are not, and writes a study file, which ``dp-leakage run mine`` runs to a report. docs/audit-model.md describes
the files.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import mannwhitneyu

from dp_leakage.common.apart import Limits, apart
from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError, plain
from dp_leakage.common.paths import is_there, user_path
from dp_leakage.common.yaml_files import written
from dp_leakage.data import load, resolve
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.members import is_list
from dp_leakage.data.outputs import Outputs, aligned, read_outputs
from dp_leakage.data.profile import copies_of, near_copies, repeated, several_per_person
from dp_leakage.data.raw import Raw
from dp_leakage.data.roles import MEMBERS, OUTSIDERS
from dp_leakage.engines.asking import OWN_TRIAL, asked
from dp_leakage.engines.onnx_structure import is_read
from dp_leakage.engines.outputs import answers
from dp_leakage.metrics.resemblance import resemblance
from dp_leakage.models.architectures import ARCHITECTURES, build
from dp_leakage.new_study import check_study_name, columns_of, path_in_study
from dp_leakage.options.audit_model import parser
from dp_leakage.provenance.files import write_text
from dp_leakage.report.claims import ClaimWriter
from dp_leakage.report.elsewhere import unlike

SEED = 1
LEAST_MEMBERS = 25  # least number of members and of non-members; with fewer, intervals are as wide as the whole range
LEAST_SHADOWED = 50  # least number of records of which shadow models draw half
POPULATION = 0.25  # share of the non-members that the attacker knows as such, and that attacks compare with
SHADOWED = 0.25  # share of the non-members that shadow models draw from, if there are any
REFERENCES, SHADOWS = 16, 8  # trained here, if the user names an architecture for them
TRAINING: Json = {"optimizer": "adam", "learning_rate": 0.01, "epochs": 30}
NOT_MODELS = (".pt", ".pth", ".safetensors", ".pkl", ".joblib")  # endings of files of weights, and of pickles
TARGETS = [MEMBERS, OUTSIDERS]
QUESTION = "How much do the outputs of this model tell about the records that it was trained on?"
TRAINED_LATER = (
    "The report warns if the reference models, once trained, are unlike your model; attacks that compare with such "
    "references may find less than with references of its own kind."
)
NO_BOUND = (
    "No lower bound on ε is stated: that needs models trained after a coin was tossed for every record (or canary); "
    "here who was a member is as it was."
)
UNREAD = "Structure: leaves and degrees of freedom are not counted: {}."
NOT_GIVEN = "a table of outputs does not say what the model consists of"
NOT_TREES = "{} is neither one ensemble of trees nor one linear model as scikit-learn's converter writes them to ONNX"
# Differences between the shares of references trained on a member and on a non-member of the target. If each
# record is in exactly half of 16 models, of which one is attacked, it is 1/15.
GIVEN_AWAY, NOT_ALIKE, CHANCE = 0.5, 0.15, 1e-3


class Given(NamedTuple):
    """Model, data and references supplied by the user.

    Attributes:
        source: source of the records.
        model: engine and architecture, as a study has them.
        raw: the records.
        repeats: models under attack.
        reference: the study's settings of reference models; None without any.
        shadow: the same for shadow models.
        online: whether references were trained on some of the records.
        features: whether the records' features are known.
        structure: reason why the model's structure is not checked; "" if it is.
        warning: warning about references that differ from the model, or that were trained on more or fewer of its
            members than chance; otherwise "".
    """

    source: Json
    model: Json
    raw: Raw
    repeats: int
    reference: Json | None
    shadow: Json | None
    online: bool
    features: bool
    structure: str = ""
    warning: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status, 1 if something does not fit."""
    options = parser().parse_args(arguments)
    file = options.folder / f"{options.name}.yaml"
    try:
        check_study_name(options.name, file)
        given = _given_outputs(options) if options.outputs else _given_model(options)
        spec, said = study_of(options.name, given)
        write_text(file, written(spec, said, {}))
    except UserError as error:
        print(f"error: {plain(str(error))}", file=sys.stderr)
        return 1
    print("\n".join(map(plain, [*said, f"Wrote {file}. Now run: dp-leakage run {options.name}"])))
    return 0


def study_of(name: str, given: Given) -> tuple[Json, list[str]]:
    """Return the study, and sentences on what it can and cannot show.

    Raises:
        UserError: there are too few members or non-members to judge by.
    """
    members, nonmembers = (len(given.raw.given[part]) for part in ("train", "test"))
    for count, words in ((members, "members"), (nonmembers, "non-members")):
        if count < LEAST_MEMBERS:
            raise UserError(
                f"{given.source['path']} has {count} {words}; at least {LEAST_MEMBERS} are needed to judge by"
            )
    known, shadowed = int(nonmembers * POPULATION), int(nonmembers * SHADOWED) if given.shadow else 0
    asked = nonmembers - known - shadowed
    if given.shadow and shadowed < LEAST_SHADOWED:
        raise UserError(
            f"{given.source['path']} has {nonmembers} non-members, and shadow models would know "
            f"{shadowed} of them; expected at least {int(LEAST_SHADOWED / SHADOWED)} non-members for shadow models"
        )
    roles = {MEMBERS: members, OUTSIDERS: asked, "reference_pool": known}
    roles |= {"shadow_pool": shadowed} if given.shadow else {}
    attacks, cannot = attacks_for(given)
    cannot += [UNREAD.format(given.structure)] if given.structure else []
    # The target's own training is unknown: these are for models that are trained here.
    trained = any(spec["engine"] == "ensemble" for spec in (given.reference, given.shadow) if spec)
    training = {**TRAINING, "batch_size": max(1, min(64, members // 4))} if trained else {}
    drawn = {"pool": TARGETS, "size": (members + asked) // 2}
    spec: Json = {
        "study": name,
        "title": f"What {name} tells about its training records",
        "question": QUESTION,
        "seed": SEED,
        "repeats": given.repeats,
        "datasets": {name: {"source": given.source, "roles": roles, "official_split": True, "projection": None}},
        "models": {"audited": given.model},
        **({"training": training} if training else {}),
        "defenses": [{"defense": "none"}],
        **({"shadow": {"size": shadowed // 2} | given.shadow} if given.shadow else {}),
        **({"reference": drawn | given.reference} if given.reference else {}),
        "structure": True,
        "attacks": {attack: {} for attack in attacks},
        "figures": {
            "fig_roc": {"kind": "roc", "title": "Members identified at small false positive rates", "parts": attacks},
            "table_members_exposed": {
                "kind": "members_exposed",
                "title": "Members exposed",
                "parts": [attacks[-1]],
                "settings": {"attack": attacks[-1]},
            },
        },
        "choices": [
            f"Of the {nonmembers:,} non-members {known:,}, drawn by chance, are what the attacker compares with; "
            "membership is asked of the others.",
            *([f"Shadow models know {shadowed:,} more of the non-members."] if given.shadow else []),
            NO_BOUND,
            *cannot,
        ],
        "scales": {"smoke": {}},  # the same
    }
    more = f", {shadowed:,} more for shadow models" if given.shadow else ""
    sizes = [f"{members:,} members, {asked:,} non-members, {known:,} more that attacks compare with{more}."]
    later = [TRAINED_LATER] if given.reference and given.reference["engine"] != "outputs" else []
    warned = [given.warning] if given.warning else later
    parts = {MEMBERS: given.raw.given["train"], OUTSIDERS: given.raw.given["test"]}
    copies = [*repeated(given.raw, parts), *near_copies(copies_of(given.raw, parts), True)] if given.features else []
    people = several_per_person(given.raw, trained_elsewhere=True)
    return spec, [*sizes, *copies, *people, f"Attacks: {', '.join(attacks)}.", *cannot, NO_BOUND, *warned]


def attacks_for(given: Given) -> tuple[list[str], list[str]]:
    """Return the names of the possible attacks, the strongest last, and the reasons why others are impossible."""
    attacks, cannot = ["yeom", "attack_p"], []
    if given.shadow:
        attacks += ["shokri", "shokri_trees"]
    else:
        cannot.append("shokri, shokri_trees cannot be run: they learn from shadow models, of which none are given.")
    if given.features:
        attacks.append("quantile_regression")
    else:
        cannot.append(
            "quantile_regression cannot be run: it learns from the records' features, which outputs alone do not have."
        )
    if given.reference is None:
        cannot.append(
            "attack_r, lira, rmia, lira_online, rmia_online cannot be run: they compare with reference models, of "
            "which none are given."
        )
    else:
        attacks += ["attack_r", "lira", "rmia"]
        if given.online:
            attacks += ["lira_online", "rmia_online"]
        else:
            cannot.append(
                "lira_online, rmia_online cannot be run: no reference model was trained on any of the records."
            )
    cannot.append("attribute inference, inversion and reconstruction cannot be run: they take the model itself.")
    return attacks, cannot


def _given_outputs(options: argparse.Namespace) -> Given:
    path = user_path(options.outputs)
    source = resolve({"source": "outputs", "path": path_in_study(path)})
    raw, found = load(source, Path("data")), read_outputs(path)
    for key in ("reference_model", "shadow_model"):
        if getattr(options, key):
            option, valid = f"--{key.replace('_', '-')}", "--references" if key == "reference_model" else "--shadows"
            words = "such models are trained on features, which outputs do not have"
            raise UserError(f"{option}: {words}; expected {valid}")
    if options.model:
        raise UserError("model: a table of outputs is audited without it; use --outputs or --model, not both")
    for key in ("weights", "draws", "data", "label", "members", "key", "drop", "categorical", "missing"):
        if getattr(options, key):
            raise UserError(f"--{key}: needs --model; a table of outputs has label, member and record as columns")
    reference, online, warning = None, False, ""
    if options.references:
        file = user_path(options.references)
        others, reference = _given_models(file, found, path)
        unlike = _resemblance(raw, path, file, found.margin.shape[1], others.margin.shape[1])
        warning = " ".join(filter(None, (_dependence(raw, others, file), unlike)))
        online = others.member is not None and bool(others.member.any())
    shadow = _given_shadows(user_path(options.shadows), found, path, raw) if options.shadows else None
    model = {"engine": "outputs", "architecture": {"name": source["path"]}}
    return Given(source, model, raw, found.margin.shape[1], reference, shadow, online, False, NOT_GIVEN, warning)


def _dependence(raw: Raw, others: Outputs, file: Path) -> str:
    """Warn if the references were trained on more, or fewer, of the model's members than of other records; else "".

    Attacks that compare models with and without a record would identify members from that alone.

    Raises:
        UserError: they were trained on nearly the same records, or on nearly the complement.
    """
    if others.member is None:
        return ""
    of_members, of_others = (others.member[:, raw.given[part]].mean(axis=0) for part in ("train", "test"))
    difference = float(abs(of_members.mean() - of_others.mean()))
    words = (
        f"references: {file} (column member): of the records that the model under attack was trained on, "
        f"{of_members.mean():.0%} were in a reference's training set on average, of the others {of_others.mean():.0%}"
    )
    if difference >= GIVEN_AWAY:
        raise UserError(
            f"{words}; this alone would reveal its members; expected models trained on random halves of all records, "
            "or on none of them"
        )
    if difference < NOT_ALIKE or mannwhitneyu(of_members, of_others).pvalue > CHANCE:
        return ""
    return f"Warning: {words}. This alone may reveal its members; train each on a random half of all records."


def _resemblance(raw: Raw, path: Path, file: Path, models: int, references: int) -> str:
    """Warn if the references differ from the models under attack; otherwise ""."""
    data = Dataset(raw.x, raw.y, {}, np.array([], dtype=np.int64))
    said = []
    for role, count, architecture in (
        ("target", models, {"name": str(path)}),
        ("reference", references, {"name": str(file), "of": str(path)}),
    ):
        found = answers({"role": role, "architecture": architecture}, data, [], [0] * count)
        said += [found.correct(raw.y), found.trained_on]
    return unlike(resemblance(*said), ClaimWriter()).strip()


def _given_models(file: Path, found: Outputs, path: Path) -> tuple[Outputs, Json]:
    """Return other models' outputs on the same records, and the study's settings for them."""
    others = aligned(read_outputs(file, member=False), file, found, path)
    architecture = {"name": path_in_study(file), "of": path_in_study(path)}
    return others, {"count": others.margin.shape[1], "engine": "outputs", "architecture": architecture}


def _given_shadows(file: Path, found: Outputs, path: Path, raw: Raw) -> Json:
    """As `_given_models`, for shadow models: each was trained on some non-members, and outputs probabilities of all
    classes.
    """
    others, shadow = _given_models(file, found, path)
    for outputs, name in ((found, path), (others, file)):
        if outputs.log_probability is None:
            raise UserError(f"shadows: {name} has only losses or margins; expected outputs for every class")
    if others.member is None:
        raise UserError(
            f"shadows: {file} has no column 'member'; it must list the training records of each shadow model"
        )
    inside = others.member[:, raw.given["test"]]
    for model, row in enumerate(inside, start=1):
        count = int(min(row.sum(), (~row).sum()))
        if count < LEAST_MEMBERS:
            raise UserError(
                f"shadows: model {model} of {file} was trained on {int(row.sum())} of the {len(row)} records that "
                f"the model under attack was not trained on; expected at least {LEAST_MEMBERS} of them, "
                "and as many left out"
            )
    return shadow


def _given_model(options: argparse.Namespace) -> Given:
    if not options.model:
        raise UserError("nothing to attack: use --outputs (a table), or --model with --data and --members")
    for key in ("data", "members"):
        if not getattr(options, key):
            raise UserError(
                f"--{key} is missing; --model needs --data, the records, and --members, the training records: a "
                "column or array, or a file that lists them"
            )
    for key in ("references", "shadows"):
        if getattr(options, key):
            valid = "--reference-model" if key == "references" else "--shadow-model"
            raise UserError(f"--{key}: outputs of other models need --outputs; use {valid} with --model")
    path = user_path(options.data)
    source: Json = {"path": path_in_study(path)}
    if os.sep in options.members and not is_there(user_path(options.members)):
        raise UserError(f"members: {options.members} does not exist; expected a column, or a file that lists them")
    if is_list(options.members):
        source["members"] = path_in_study(user_path(options.members))
    else:
        source["member"] = options.members
    source |= {key: getattr(options, key) for key in ("label", "key", "missing") if getattr(options, key)}
    for key in ("categorical", "drop"):
        source |= columns_of(options, key, path)
    source = _resolved(source, options.members)
    raw = load(source, Path("data"))
    if options.weights or ":" in options.model:
        if not options.weights:
            raise UserError(
                f"model {options.model} is an import path; it needs --weights, a .safetensors or state dict"
            )
        weights = path_in_study(user_path(options.weights))
        model = {"engine": "module", "architecture": {"name": options.model, "weights": weights, **_draws(options)}}
    elif Path(options.model).suffix in NOT_MODELS:
        raise UserError(
            f"model: {options.model} holds weights or a pickle, which cannot be run alone; expected an .onnx file, "
            "or --model my_module:Class with --weights"
        )
    else:
        model = {"engine": "onnx", "architecture": {"name": path_in_study(user_path(options.model))}}
    _asked_once(model, raw)
    reference, shadow = (
        {"count": count, **trained_here(getattr(options, key), key, raw)} if getattr(options, key) else None
        for key, count in (("reference_model", REFERENCES), ("shadow_model", SHADOWS))
    )
    return Given(source, model, raw, 1, reference, shadow, reference is not None, True, _unread(model))


def _unread(model: Json) -> str:
    """Return why a model's structure cannot be read; "" if it can."""
    name = model["architecture"]["name"]
    read = model["engine"] == "onnx" and is_read(user_path(name))
    return "" if read else NOT_TREES.format(name)


def _draws(options: argparse.Namespace) -> dict[str, int]:
    """Return the number of averaged queries, for a model with random outputs."""
    if not options.draws:
        return {}
    if not options.draws.isdecimal() or int(options.draws) < 1:
        raise UserError(f"draws: {options.draws}; expected the number of answers to average, at least 1")
    return {"draws": int(options.draws)}


def _resolved(source: Json, members: str) -> Json:
    """Return the data set's source. Raises UserError if it is unsuitable, or has no possible column of members."""
    try:
        return resolve(source)
    except UserError as error:
        if str(error).startswith("member:") or "no key 'member'" in str(error):  # a zip of images, or a folder
            raise UserError(
                f"members: {members} is not a file; images need a file (.txt, .csv, .npy) that lists the training "
                "images by their names in the folder"
            ) from None
        raise


def _asked_once(model: Json, raw: Raw) -> None:
    """Query the model about a few records, so that errors show now."""

    rows = np.unique(np.concatenate([np.unique(raw.y, return_index=True)[1], np.arange(min(8, len(raw.y)))]))
    roles = {"target_members": rows[:1], "target_nonmembers": rows[1:]}
    few = Dataset(raw.x[rows], raw.y[rows], roles, np.array([], dtype=np.int64))
    members = [np.zeros(1, dtype=np.int64)]
    asked(model["engine"], model | {"role": "target"}, few, members, [0], trial=True)


def trained_here(name: str, key: str, raw: Raw) -> Json:
    """Return engine and architecture of models to train, from a built-in name or the import path of an estimator or
    module.

    Raises:
        UserError: the name does not exist, is not a model, or does not fit the records.
    """
    if ":" in name:
        (found,) = apart(f"{key} {name!r}", lambda: [{"engine": np.array(_engine_of(name, raw))}], Limits(OWN_TRIAL))
        return {"engine": str(found["engine"]), "architecture": {"name": name}}
    if name not in ARCHITECTURES:
        raise UserError(
            f"{key} {name!r} is unknown; expected {', '.join(sorted(ARCHITECTURES))}, or the import path of a "
            "classifier such as sklearn.ensemble:RandomForestClassifier, or of a torch.nn.Module"
        )
    build(name, raw.x.shape[1:], len(raw.class_names))
    return {"engine": "ensemble", "architecture": {"name": name}}


def _engine_of(path: str, raw: Raw) -> str:
    """Return the engine that trains the user's class, which is imported and instantiated once. Raises UserError
    otherwise.
    """
    from dp_leakage.engines.estimator import is_estimator, made
    from dp_leakage.models.user_module import module_factory

    if is_estimator(path):
        made({"name": path}, SEED)
        return "estimator"
    module_factory(path, raw.x.shape[1:], len(raw.class_names))
    return "ensemble"
