"""A study of a model that exists already: ``python -m dp_leakage.audit_model --name mine --outputs outputs.parquet``.

Reads what the model said of records (or asks it), says which attacks can be run with that and which cannot and why, and
writes a study file, which ``snakemake mine`` runs to a report. docs/audit-model.md describes the files.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dp_leakage.config import Json
from dp_leakage.data import load, resolve
from dp_leakage.data.outputs import Outputs, aligned, read_outputs
from dp_leakage.data.raw import Raw
from dp_leakage.errors import UserError, plain
from dp_leakage.files import write_text
from dp_leakage.models.architectures import ARCHITECTURES
from dp_leakage.new_study import check_study_name, path_in_study
from dp_leakage.yaml_files import written

SEED = 1
LEAST_MEMBERS = 25  # and non-members: with fewer, intervals are as wide as the whole range
POPULATION = 0.25  # share of the non-members that an attacker is taken to know as such; attacks compare with them
REFERENCES = 16  # trained here, where the user names an architecture for them
QUESTION = "How much do the outputs of this model tell about the records that it was trained on?"
NO_BOUND = (
    "No lower bound on ε is stated: that needs models trained after a coin was tossed for every record (or canary); "
    "here who was a member is as it was."
)


class Given(NamedTuple):
    """What the user has.

    Attributes:
        source: where the records come from.
        model: engine and architecture, as a study has them.
        raw: the records.
        repeats: models under attack.
        reference: the study's words on reference models; None without any.
        online: whether references were trained on some of the records.
        classes: whether probabilities of all classes are known.
        features: whether the records' features are.
    """

    source: Json
    model: Json
    raw: Raw
    repeats: int
    reference: Json | None
    online: bool
    classes: bool
    features: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status, 1 where something does not fit."""
    options = _parser().parse_args(arguments)
    file = options.folder / f"{options.name}.yaml"
    try:
        check_study_name(options.name, file)
        given = _given_outputs(options) if options.outputs else _given_model(options)
        spec, said = study_of(options.name, given)
        write_text(file, written(spec, said, {}))
    except UserError as error:
        print(f"error: {plain(str(error))}", file=sys.stderr)
        return 1
    print("\n".join(map(plain, [*said, f"Wrote {file}. Now run: snakemake {options.name}"])))
    return 0


def study_of(name: str, given: Given) -> tuple[Json, list[str]]:
    """The study, and sentences on what it can and cannot tell.

    Raises:
        UserError: there are too few members or non-members to judge by.
    """
    members, outsiders = (len(given.raw.given[part]) for part in ("train", "test"))
    for count, words in ((members, "members"), (outsiders, "non-members")):
        if count < LEAST_MEMBERS:
            raise UserError(
                f"{given.source['path']} has {count} {words}; at least {LEAST_MEMBERS} are needed to judge by"
            )
    known = int(outsiders * POPULATION)
    roles = {"target_members": members, "target_nonmembers": outsiders - known, "reference_pool": known}
    attacks, cannot = attacks_for(given)
    spec: Json = {
        "study": name,
        "title": f"What {name} tells about its training records",
        "question": QUESTION,
        "seed": SEED,
        "repeats": given.repeats,
        "datasets": {name: {"source": given.source, "roles": roles, "official_split": True, "projection": None}},
        "models": {"audited": given.model},
        "training": {
            "optimizer": "adam",
            "learning_rate": 0.01,
            "epochs": 30,
            "batch_size": max(1, min(64, members // 4)),
        },
        "defenses": [{"defense": "none"}],
        **({"reference": _sized(given.reference, roles)} if given.reference else {}),
        "attacks": {attack: {} for attack in attacks},
        "figures": {
            "fig_roc": {"kind": "roc", "title": "Members named at small rates of false alarms", "parts": attacks},
            "table_members_exposed": {
                "kind": "members_exposed",
                "title": "Members exposed",
                "parts": [attacks[-1]],
                "settings": {"attack": attacks[-1]},
            },
        },
        "choices": [
            f"Of the {outsiders:,} non-members {known:,}, drawn by chance, are what the attacker compares with; "
            "membership is asked of the others.",
            NO_BOUND,
            *cannot,
        ],
    }
    sizes = [f"{members:,} members, {outsiders - known:,} non-members, {known:,} more that attacks compare with."]
    return spec, [*sizes, f"Attacks: {', '.join(attacks)}.", *cannot, NO_BOUND]


def attacks_for(given: Given) -> tuple[list[str], list[str]]:
    """Names of the attacks that can be run, the strongest last, and why others cannot."""
    attacks, cannot = ["yeom", "attack_p"], []
    if given.features:
        attacks.append("quantile_regression")
    else:
        cannot.append(
            "quantile_regression cannot be run: it learns from the records' features, which outputs alone do not have."
        )
    if given.reference is None:
        cannot.append(
            "lira, rmia, attack_r cannot be run: they compare with reference models, of which none are given."
        )
    else:
        attacks += ["attack_r", "lira", "rmia"]
        if given.online:
            attacks += ["lira_online", "rmia_online"]
        else:
            cannot.append(
                "lira_online, rmia_online cannot be run: no reference model was trained on any of the records."
            )
    cannot.append("shokri, shokri_trees cannot be run: they need shadow models on records of their own.")
    cannot.append("yeom_attribute, inversion and reconstruction cannot be run: they take the model itself.")
    return attacks, cannot


def _given_outputs(options: argparse.Namespace) -> Given:
    path = Path(options.outputs).expanduser()
    source = resolve({"source": "outputs", "path": path_in_study(path)})
    raw, found = load(source, Path("data")), read_outputs(path)
    reference, online = None, False
    if options.reference_model:
        raise UserError(
            "reference_model: references are trained on features, which outputs do not have; valid is references"
        )
    if options.references:
        file = Path(options.references).expanduser()
        others = aligned(read_outputs(file, member=False), found.record, file)
        _check_labels(found, others, path, file)
        online = others.member is not None and bool(others.member.any())
        architecture = {"name": path_in_study(file), "of": source["path"]}
        reference = {"count": others.margin.shape[1], "engine": "outputs", "architecture": architecture}
    model = {"engine": "outputs", "architecture": {"name": source["path"]}}
    repeats = found.margin.shape[1]
    return Given(source, model, raw, repeats, reference, online, found.log_probability is not None, False)


def _given_model(options: argparse.Namespace) -> Given:
    if not options.model:
        raise UserError("nothing to audit: valid is OUTPUTS=… (a table), or MODEL=… with DATA=… and MEMBERS=…")
    for key in ("data", "members"):
        if not getattr(options, key):
            raise UserError(
                f"{key} is missing; MODEL needs DATA, the records, and MEMBERS, the column of who was trained on"
            )
    if options.references:
        raise UserError("references: outputs of references go with OUTPUTS; valid with MODEL is REFERENCE_MODEL")
    source = {"path": path_in_study(Path(options.data).expanduser()), "member": options.members}
    if options.label:
        source["label"] = options.label
    source = resolve(source)
    raw = load(source, Path("data"))
    if options.weights or ":" in options.model:
        if not options.weights:
            raise UserError(
                f"model {options.model} is an import path; valid with it is WEIGHTS=…, a .safetensors or state dict"
            )
        weights = path_in_study(Path(options.weights).expanduser())
        model = {"engine": "module", "architecture": {"name": options.model, "weights": weights}}
    else:
        model = {"engine": "onnx", "architecture": {"name": path_in_study(Path(options.model).expanduser())}}
    _asked_once(model, raw)
    reference = None
    if options.reference_model:
        reference = {
            "count": REFERENCES,
            "pool": ["target_members", "target_nonmembers"],
            **_reference_of(options.reference_model),
        }
    return Given(source, model, raw, 1, reference, reference is not None, True, True)


def _asked_once(model: Json, raw: Raw) -> None:
    """Ask the model about a few records, so that what does not fit is said now."""
    from importlib import import_module

    from dp_leakage.data.dataset import Dataset
    from dp_leakage.engines import ENGINES

    rows = np.unique(np.concatenate([np.unique(raw.y, return_index=True)[1], np.arange(min(8, len(raw.y)))]))
    roles = {"target_members": rows[:1], "target_nonmembers": rows[1:]}
    few = Dataset(raw.x[rows], raw.y[rows], roles, np.array([], dtype=np.int64))
    settings = {"engine": model["engine"], "architecture": model["architecture"], "role": "target"}
    import_module(ENGINES[model["engine"]]).answers(settings, few, np.zeros((1, 1), dtype=np.int64), [0])


def _reference_of(name: str) -> Json:
    """Engine and architecture of reference models that are trained here, from a built-in name or an import path."""
    if ":" in name:
        return {"engine": "estimator", "architecture": {"name": name}}
    if name not in ARCHITECTURES:
        raise UserError(
            f"reference_model {name!r} is unknown; valid are {', '.join(sorted(ARCHITECTURES))}, or the import "
            "path of a classifier such as sklearn.ensemble:RandomForestClassifier"
        )
    return {"engine": "ensemble", "architecture": {"name": name}}


def _sized(reference: Json, roles: dict[str, int]) -> Json:
    """How many records a reference trains on: half of those asked about, where they are trained here."""
    asked = roles["target_members"] + roles["target_nonmembers"]
    pool = reference.get("pool", ["target_members", "target_nonmembers"])
    return reference | {"pool": pool, "size": asked // 2}


def _check_labels(found: Outputs, others: Outputs, path: Path, file: Path) -> None:
    differ = [str(a) != str(b) for a, b in zip(found.label.tolist(), others.label.tolist(), strict=True)]
    if any(differ):
        row = differ.index(True)
        raise UserError(
            f"record {found.record[row]} has the label {found.label[row]} in {path} and {others.label[row]} "
            f"in {file}; valid is one"
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dp_leakage.audit_model", description=__doc__.splitlines()[0])
    parser.add_argument("--name", required=True, help="of the study: small letters, digits and _")
    parser.add_argument("--outputs", default="", help="what the model said: .csv, .tsv, .parquet or .npz")
    parser.add_argument("--references", default="", help="the same of reference models, for the same records")
    parser.add_argument("--model", default="", help="an .onnx file, or module:Class of a torch.nn.Module")
    parser.add_argument("--weights", default="", help="of a module: .safetensors, or a state dict (.pt)")
    parser.add_argument("--data", default="", help="the records as the model takes them: a table or .npz")
    parser.add_argument("--label", default="", help="column of a table that holds the class")
    parser.add_argument("--members", default="", help="column (or array) that says who was trained on: 1 and 0")
    parser.add_argument(
        "--reference-model", default="", help="architecture of reference models to train: mlp, or module:Class"
    )
    parser.add_argument("--folder", type=Path, default=Path("studies"), help="where to write (default: studies)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
