"""Cells of a study: the training under each defense, and the measurements of each cell."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from dp_leakage.attacks import ATTACKS, STRONGEST
from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError
from dp_leakage.data.audit_design import AuditDesign
from dp_leakage.data.projection_settings import ProjectionSettings
from dp_leakage.data.roles import POOL, trained_role
from dp_leakage.engines import ENGINES
from dp_leakage.privacy.accounting.rules import POISSON
from dp_leakage.privacy.defenses import CLAIMED, expanded
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.protection import Protection
from dp_leakage.study.protocol import (
    AUDIT,
    COINS,
    GROUPS,
    SPLIT,
    STRUCTURE,
    TRAINING,
    TUNE,
    attacks_on,
    auxiliary_spec,
    design_of,
    keyed,
    model_spec,
    seed_of,
    training_of,
)

MEMBERSHIP = "membership"  # the family of attacks that are also measured together


@dataclass(frozen=True)
class Cell:
    """One (data set, model, defense at one budget) with all its repeats.

    Attributes:
        dataset, model: names in the study.
        defense: folder name, such as ``none`` or ``gaussian-rdp-eps=0.5``.
        columns: columns for selection and drawing: mechanism, accountant, unit, block, bound, epsilon, …
        training: settings of step ``train``, without code and inputs.
        protection: the mechanism of that training, and what fixes its noise; None without a mechanism.
        parts: measurements of the cell: ``training``, then the attacks, ``coins`` and ``audit`` if the study has
            them, ``structure`` and ``groups`` if requested, and ``strongest``: all
            membership attacks together.
        audits: names of the designs of its audit.
        rates: learning rates to try, of which the best trains the cell; empty if its rate is given.
    """

    dataset: str
    model: str
    defense: str
    columns: Json
    training: Json
    protection: Protection | None
    parts: list[str]
    audits: tuple[str, ...] = ()
    rates: tuple[float, ...] = ()

    @property
    def key(self) -> str:
        """``dataset/model/defense``."""
        return f"{self.dataset}/{self.model}/{self.defense}"

    @property
    def names(self) -> dict[str, str]:
        """Its names by wildcard."""
        return {"dataset": self.dataset, "model": self.model, "defense": self.defense}

    @property
    def step(self) -> Mechanism | None:
        """The mechanism of its training."""
        return None if self.protection is None else self.protection.step

    @property
    def noisy(self) -> bool:
        """Return whether its mechanism adds noise, and so makes a claim."""
        return self.protection is not None and self.protection.noisy

    @property
    def membership(self) -> list[str]:
        """Its membership attacks."""
        return [part for part in self.parts if part in ATTACKS and ATTACKS[part].family == MEMBERSHIP]


def together(cell: Cell, attacks: list[str]) -> str:
    """Return the part that measures some of a cell's membership attacks together."""
    return STRONGEST if attacks == cell.membership else f"{STRONGEST}={'+'.join(attacks)}"


def attacks_in(cell: Cell, part: str) -> list[str]:
    """Return the attacks that a part measures; the inverse of `together`."""
    if part == STRONGEST:
        return cell.membership
    return part.removeprefix(f"{STRONGEST}=").split("+")


def auxiliary_defense(spec: Json, cell: Cell, role: str, attack: str | None = None) -> str | None:
    """Return the defense of the cell's auxiliary models (of an attack); None if all cells share them."""
    aware = attack is None or ATTACKS[attack].aware
    same = aware and auxiliary_spec(spec, cell.dataset, role).get("defense") == "same"
    return cell.defense if same and cell.defense != "none" else None


def audit_design(spec: Json, cell: Cell, name: str) -> AuditDesign:
    """Return a design of the study's audit for one cell."""
    return AuditDesign.of(spec["audit"]["designs"][name], cell.step is not None and cell.step.sampler in POISSON)


# ---------------------------------------------------------------------- how cells are made
def cells_of(study: str, spec: Json) -> dict[str, Cell]:
    """Return ``Cell.key`` → cell, in the order of the study file.

    Args:
        study: folder below ``results``.
        spec: the study file after overrides and scale.

    Raises:
        UserError: two cells have the same name.
    """
    cells: dict[str, Cell] = {}
    for dataset, model in product(spec["datasets"], spec["models"]):
        for cell in _cells_at(spec, _Place.of(study, spec, dataset, model)):
            if cell.key in cells:
                raise UserError(
                    f"study {spec['study']}: two defenses are both called '{cell.defense}' ({dataset}, {model}); "
                    "use each budget once per mechanism and accountant"
                )
            cells[cell.key] = cell
    return cells


@dataclass(frozen=True)
class _Place:
    """Settings shared by all cells of a data set and a model.

    Attributes:
        study, dataset, model: their names.
        described: the model as the study describes it.
        engine: engine of the training.
        training: settings of the training, before those of a defense.
        roles: number of records (or people) in each role.
        projection: projection of the features.
        attacks: attacks on the data set.
        design: choice of the members.
    """

    study: str
    dataset: str
    model: str
    described: Json
    engine: str
    training: Json
    roles: dict[str, int]
    projection: ProjectionSettings
    attacks: list[str]
    design: str

    @classmethod
    def of(cls, study: str, spec: Json, dataset: str, model: str) -> "_Place":
        described, given = model_spec(spec, dataset, model), spec["datasets"][dataset]
        engine = described.get("engine", "ensemble")
        training = training_of(spec, dataset, model, engine)
        projection = ProjectionSettings.read(given.get("projection"))
        attacks = attacks_on(spec, dataset)
        return cls(
            study, dataset, model, described, engine, training, given["roles"], projection, attacks, design_of(spec)
        )

    @property
    def records(self) -> int:
        """Return the number of records (or people) for batch rates and steps."""
        return self.roles[trained_role(self.roles)]

    @property
    def names(self) -> dict[str, str]:
        return {"study": self.study, "dataset": self.dataset, "model": self.model}


def _cells_at(spec: Json, place: _Place) -> Iterator[Cell]:
    noise = released_noise(place.projection)
    for entry in spec["defenses"]:
        if place.dataset in entry.get("datasets", [place.dataset]) and place.model in entry.get(
            "models", [place.model]
        ):
            for name, protection, given in expanded(entry, spec):
                whole = None if protection is None else replace(protection, projection_noise=noise)
                yield _cell(spec, place, entry, name, whole, dict(given))


def _cell(spec: Json, place: _Place, entry: Json, defense: str, protection: Protection | None, given: Json) -> Cell:
    """Return the cell of one budget of a defense. ``given`` holds its changes to the training and a library's
    claimed ε.
    """
    claimed = given.pop(CLAIMED, None)
    changes = _in_records(given, place.records)
    tuned = TUNE in spec and place.engine not in ENGINES and "learning_rate" not in changes
    training = {
        **place.names,
        "defense": defense,
        "role": "target",
        "engine": place.engine,
        "architecture": _architecture(place.described, claimed),
        "dropout": entry.get("dropout", 0.0),
        "training": place.training | changes,
        "mechanism": None if protection is None else protection.settings,
        "repeats": entry.get("repeats", spec["repeats"]),
        "seed": seed_of(spec, place.dataset, place.model, defense, "target"),
        **({STRUCTURE: True} if keyed(spec, STRUCTURE) and place.engine in ("estimator", "onnx") else {}),
    }
    columns = {**place.names, "defense": defense, "mechanism": entry["defense"]}
    columns |= _columns(place, entry, protection, changes) | ({"learning_rate": None} if tuned else {})
    audits = _audits_of(spec, entry)
    return Cell(
        place.dataset,
        place.model,
        defense,
        columns | _claim(place, protection, claimed),
        training,
        protection,
        _parts_of(spec, place, entry, bool(audits)),
        audits,
        tuple(map(float, spec[TUNE]["learning_rate"])) if tuned else (),
    )


def _columns(place: _Place, entry: Json, protection: Protection | None, changes: Json) -> Json:
    """Return a cell's columns for selection and drawing, besides its names. `_claim` adds the claim."""
    training, split = place.training | changes, place.design == SPLIT
    step = None if protection is None else protection.step
    own = {} if step is None else step.settings
    by_noise = None if step is None else step.noise_multiplier  # if the study gives the cell's noise, not its ε
    rdp_sigma = None if protection is None or by_noise else protection.rdp_sigma
    return {
        "accountant": "",
        "unit": "",
        "block": "",
        "bound": "",
        "sampler": "" if step is None else step.sampler,
        "sigma": by_noise,
        "k_sub": own.get("k_sub", 0),
        "partition": own.get("partition", ""),
        "most": None if own.get("most") == "all" else own.get("most"),  # records of a person in a batch
        "l2": changes.get("l2", 0.0),  # the defense's own λ
        "learning_rate": training.get("learning_rate"),  # None if step ``tune`` finds it
        "epsilon": None,
        "target": "",  # the risk that the noise was chosen by, in words
        "delta": None,
        "rdp_sigma": rdp_sigma or "",  # how σ was solved for, if it was
        "accounting_note": entry.get("accounting_note", ""),
        "epochs": training.get("epochs"),
        "batch_size": training.get("batch_size"),
        "projection": place.projection.method,
        "projection_noise": place.projection.noise,
        "n_members": place.records if split else place.records // 2,
        "n_nonmembers": place.roles["target_nonmembers"] if split else place.records - place.records // 2,
        "n_records": place.records,
    }


def _claim(place: _Place, protection: Protection | None, claimed: Json | None) -> Json:
    """Return the columns with the target ε of the cell's own mechanism, or the claim of the library that trained
    it.
    """
    if protection is not None:
        step, target = protection.step, protection.target
        return {
            "accountant": protection.accountant,
            "unit": step.unit,
            "block": step.block,
            "bound": step.bound,
            "epsilon": protection.epsilon,
            "delta": protection.delta,
            "target": "" if target is None else target.words,
        }
    if claimed is None:
        return {}
    words = f"ε as claimed by {place.described.get('private', {}).get('by', 'its library')}"
    return claimed | {"accountant": CLAIMED, "accounting_note": words}


def _parts_of(spec: Json, place: _Place, entry: Json, audited: bool) -> list[str]:
    """Return the parts of the cells of a defense (`Cell.parts`)."""
    attacks = [attack for attack in entry.get("attacks", place.attacks) if attack in place.attacks]
    together = any(ATTACKS[attack].family == MEMBERSHIP for attack in attacks)
    return [
        TRAINING,
        *attacks,
        *([COINS] if place.design == COINS else []),
        *(keyed(spec, AUDIT) if audited else []),
        *(keyed(spec, STRUCTURE) if place.engine in ENGINES else []),
        *([STRONGEST, *keyed(spec, GROUPS)] if together else []),
    ]


def _audits_of(spec: Json, entry: Json) -> tuple[str, ...]:
    """Return the audit designs of a defense's cells: the entry's own, otherwise all without a planted bug."""
    designs = spec.get("audit", {}).get("designs", {})
    return tuple(entry.get("audits", [name for name, design in designs.items() if not design.get("bug")]))


def released_noise(projection: ProjectionSettings) -> float | None:
    """Return the noise multiplier of a private PCA or scaling fitted on the members, which spends their budget too;
    otherwise None.
    """
    spends = projection.private and projection.fitted_on(("target_members", POOL))
    return float(projection.noise) if spends else None


def _architecture(model: Json, claimed: Json | None) -> Json:
    """Return the architecture that a cell trains: the model's own, or its private version with the budget that its
    library gets.
    """
    if claimed is None:
        return dict(model["architecture"])
    return {key: value for key, value in model.get("private", {}).items() if key != "by"} | {CLAIMED: claimed}


def _in_records(changes: Json, records: int) -> Json:
    """Return changes to training, with a sampling rate turned into the nearest batch size in records."""
    if "sampling_rate" not in changes:
        return changes
    kept = {key: value for key, value in changes.items() if key != "sampling_rate"}
    return kept | {"batch_size": max(1, round(changes["sampling_rate"] * records))}
