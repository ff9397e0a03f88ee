"""The cells of a study: what is trained under which defense, and how each cell is measured."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path

from dp_leakage.attacks import ATTACKS, OF_PERSON, STRONGEST
from dp_leakage.common.config import Json, merged
from dp_leakage.common.errors import UserError, nearest
from dp_leakage.common.identity import derived_seed
from dp_leakage.data import resolve
from dp_leakage.data.projection_settings import fitted_privately
from dp_leakage.data.roles import POOL, trained_role
from dp_leakage.engines import ENGINES, GIVEN
from dp_leakage.privacy.defenses import CLAIMED, expanded
from dp_leakage.privacy.target import Target

SPLIT, COINS = "split", "coins"  # the designs of a study; COINS is also the name of the part that guesses the coins
TRAINING = "training"  # the part that needs no attack: accuracies and spent ε
AUDIT = "audit"  # the part that trains models of its own
STRUCTURE = "structure"  # the part that checks what models consist of; also the study's key
GROUPS = "groups"  # the part that measures membership by groups of records; also the study's key
MEMBERSHIP = "membership"  # the family of attacks that are also measured together
TUNE = "tune"  # the study's key for learning rates to try
# Defaults of an audit's design.
AUDIT_DEFAULTS: Json = {
    "canary": "mislabelled",
    "canaries": 1,
    "score": "loss",
    "relation": "replace_one",
    "start": "random",
    "start_epochs": 30,
    "bug": None,
    "beyond_reach": "refuse",
}


@dataclass(frozen=True)
class Cell:
    """One (data set, model, defense at one budget) with all its repeats.

    Attributes:
        dataset, model: names in the study.
        defense: folder name, such as ``none`` or ``gaussian-rdp-eps=0.5``.
        columns: what figures select and draw by: mechanism, accountant, unit, block, epsilon, …
        training: settings of step ``train``, without code and inputs.
        parts: what is measured of it: ``training``, then the attacks, ``coins`` in that design, ``audit`` where it has
            one, ``structure`` and ``groups`` where
            the study asks for them, and ``strongest``, all membership attacks together.
        audits: names of the designs of its audit.
        rates: learning rates to try, of which the best trains the cell; empty if its rate is given.
    """

    dataset: str
    model: str
    defense: str
    columns: Json
    training: Json
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
    def membership(self) -> list[str]:
        """Its membership attacks."""
        return [part for part in self.parts if part in ATTACKS and ATTACKS[part].family == MEMBERSHIP]


def adds_noise(cell: Cell) -> bool:
    """Whether the cell's own mechanism is a claim that its coins can test."""
    return (cell.training["mechanism"] or {}).get("noise", "none") != "none"


def together(cell: Cell, attacks: list[str]) -> str:
    """The part in which some of a cell's membership attacks are measured together."""
    return STRONGEST if attacks == cell.membership else f"{STRONGEST}={'+'.join(attacks)}"


def attacks_in(cell: Cell, part: str) -> list[str]:
    """The attacks that a part measures; the inverse of `together`."""
    if part == STRONGEST:
        return cell.membership
    return part.removeprefix(f"{STRONGEST}=").split("+")


@dataclass(frozen=True)
class Cells:
    """A checked study at one scale, as cells.

    Attributes:
        name: folder below ``results`` (the study's name, with the scale unless that is ``paper``).
        spec: the study file after overrides and scale, as the schema describes it.
        folder: where its file lies, and what belongs to it alone.
    """

    name: str
    spec: Json
    folder: Path = Path()

    @property
    def target(self) -> str:
        """Name of the Snakemake target that runs the whole study."""
        return self.spec["study"]

    @property
    def targets(self) -> list[str]:
        """Names of its Snakemake targets: the study, its report, check and figures; its audit and release if it has
        them.
        """
        parts = ["report", "verify", *self.audited, *(["release"] if self.releases else []), *self.spec["figures"]]
        return [self.target, *(f"{self.target}_{part}" for part in parts)]

    @property
    def releases(self) -> bool:
        """Whether the study names the cell whose model is given away."""
        return "cell" in self.spec.get("release", {})

    @cached_property
    def cells(self) -> dict[str, Cell]:
        """``Cell.key`` → cell, in the order of the study file."""
        cells: dict[str, Cell] = {}
        for dataset, model in product(self.spec["datasets"], self.spec["models"]):
            for cell in self._cells_of(dataset, model):
                if cell.key in cells:
                    raise UserError(
                        f"study {self.target}: two defenses are both called '{cell.defense}' ({dataset}, {model}); "
                        "valid is each budget once per mechanism and accountant"
                    )
                cells[cell.key] = cell
        return cells

    def cell(self, dataset: str, model: str, defense: str) -> Cell:
        """The cell of these names. Raises UserError for names that the study does not have."""
        key = f"{dataset}/{model}/{defense}"
        if key not in self.cells:
            raise UserError(f"study {self.target} has no cell '{key}'; {nearest(key, self.cells)}")
        return self.cells[key]

    def cell_named(self, name: str) -> Cell:
        """The private cell ``model/defense``, or ``dataset/model/defense``. Raises UserError if there is none."""
        found = [cell for key, cell in self.cells.items() if name in (key, f"{cell.model}/{cell.defense}")]
        if len(found) == 1:
            return found[0]
        if found:
            words = " or ".join(cell.key for cell in found)
            raise UserError(f"CELL: {name!r} is one of several data sets; write {words}")
        short = {f"{cell.model}/{cell.defense}" for cell in self.cells.values() if cell.training["mechanism"]}
        raise UserError(f"CELL: study {self.target} has no cell {name!r}; {nearest(name, short)}")

    def check_file(
        self,
        dataset: str | None = None,
        model: str | None = None,
        defense: str | None = None,
        role: str | None = None,
        attack: str | None = None,
        part: str | None = None,
    ) -> None:
        """Raises UserError if the wildcards of a path hold a name that the study does not have."""
        for name, valid, what in (
            (dataset, self.spec["datasets"], "data set"),
            (model, self.spec["models"], "model"),
            (attack, self.spec["attacks"], "attack"),
        ):
            if name is not None and name not in valid:
                raise UserError(f"study {self.target} has no {what} '{name}'; {nearest(name, valid)}")
        if dataset and model and defense:
            cell = self.cell(dataset, model, defense)
            for name in ([attack] if attack and role is None else []) + (attacks_in(cell, part) if part else []):
                if name not in cell.parts:
                    raise UserError(f"cell '{cell.key}' is not attacked by '{name}'; {nearest(name, cell.parts)}")
            if role is not None and self.auxiliary_defense(cell, role) != defense:
                raise UserError(f"cell '{cell.key}' has no {role} models of its own")
        if dataset and role is not None and not self.auxiliary_spec(dataset, role):
            raise UserError(f"study {self.target} has no {role} models")

    def source(self, dataset: str) -> Json:
        """Where the records come from, as ``data.resolve`` returns it. Raises UserError for a wrong spec."""
        given = self.spec["datasets"][dataset]["source"]
        return resolve({"source": given} if isinstance(given, str) else given)

    def seed_of(self, dataset: str, *what: str) -> int:
        """The seed of one random draw of the study on a data set.

        The user's own data count without the name that the study gives them, so that the same study under another name
        has the same results.
        """
        source = self.spec["datasets"][dataset]["source"]
        own = not isinstance(source, str) and "path" in source
        return derived_seed(self.spec["seed"], "" if own else dataset, *what)

    def by_person(self, dataset: str) -> bool:
        """Whether it is known whose each record is, so that roles, coins and scores are those of persons."""
        source = self.spec["datasets"][dataset]["source"]
        return not isinstance(source, str) and "person" in source

    def attacks_on(self, dataset: str) -> list[str]:
        """The attacks that are run on a data set, in the study's order."""
        own = self.spec["datasets"][dataset].get("attacks", self.spec["attacks"])
        return [attack for attack in self.spec["attacks"] if attack in own]

    def settings_of_attack(self, attack: str) -> Json:
        """An attack's own settings, with its defaults."""
        asked = {key: value for key, value in self.spec["attacks"][attack].items() if key != OF_PERSON}
        return {**ATTACKS[attack].settings, **asked}

    def way_of_person(self, attack: str) -> str:
        """How an attack's scores of a person's records become one (`attacks.persons`)."""
        return str(self.spec["attacks"][attack].get(OF_PERSON, ATTACKS[attack].of_person))

    def auxiliary_spec(self, dataset: str, role: str) -> Json:
        """The study's settings of shadow or reference models, overridden by the data set's own; empty if there are
        none.
        """
        return merged(self.spec.get(role, {}), self.spec["datasets"][dataset].get(role, {}))

    @property
    def design(self) -> str:
        """How members are chosen: ``split`` fixes them; ``coins`` trains each repeat on another half of a pool."""
        return str(self.spec.get("design", SPLIT))

    @property
    def bounded(self) -> list[str]:
        """The parts that state lower bounds on ε: ``coins`` in design coins, and ``audit`` if the study has one."""
        return [*([COINS] if self.design == COINS else []), *self.audited]

    @property
    def audited(self) -> list[str]:
        """The part ``audit``, if the study has one."""
        return [AUDIT] if self.spec.get("audit") else []

    @property
    def structured(self) -> list[str]:
        """The part ``structure``, if the study asks what models of trees and linear models consist of."""
        return [STRUCTURE] if self.spec.get(STRUCTURE) else []

    @property
    def grouped(self) -> list[str]:
        """The part ``groups``, if the study has groups of records."""
        return [GROUPS] if self.spec.get(GROUPS) else []

    def _model_spec(self, dataset: str, model: str) -> Json:
        return merged(self.spec["models"][model], self.spec["datasets"][dataset].get("models", {}).get(model, {}))

    def training_of(self, dataset: str, model: str, engine: str) -> Json:
        """The settings by which an engine trains a model; none for models that were trained elsewhere, of which they
        are not known.
        """
        given = self.spec.get("training")
        if engine in GIVEN or given is None:
            return {}
        training = merged({"momentum": 0.0, "l2": 0.0, "evaluate_every": given["epochs"]}, given)
        training = merged(training, self._model_spec(dataset, model).get("training", {}))
        if not training.pop("l2_applied", True):
            training["l2"] = 0.0
        return training

    def _cells_of(self, dataset: str, model: str) -> Iterator[Cell]:
        spec = self.spec
        model_spec = self._model_spec(dataset, model)
        engine = model_spec.get("engine", "ensemble")
        training = self.training_of(dataset, model, engine)
        roles, own_attacks = spec["datasets"][dataset]["roles"], self.attacks_on(dataset)
        records = roles[trained_role(roles)]
        projection = spec["datasets"][dataset].get("projection") or {}
        released = {} if (noise := released_noise(projection)) is None else {"projection_noise": noise}
        for entry in spec["defenses"]:
            if dataset not in entry.get("datasets", [dataset]) or model not in entry.get("models", [model]):
                continue
            for name, alone, given in expanded(entry, spec):
                mechanism = None if alone is None else alone | released
                claimed = given.get(CLAIMED)
                changes = _in_records({key: value for key, value in given.items() if key != CLAIMED}, records)
                own = (mechanism or {}).get("settings", {})
                tuned = TUNE in spec and engine not in ENGINES and "learning_rate" not in changes
                by_noise = (mechanism or {}).get("noise_multiplier")  # if the study gives the cell's noise, not its ε
                columns = {
                    "study": self.name,
                    "dataset": dataset,
                    "model": model,
                    "defense": name,
                    "mechanism": entry["defense"],
                    "accountant": "",
                    "unit": "",
                    "block": "",
                    "sigma": by_noise,
                    "k_sub": own.get("k_sub", 0),
                    "partition": own.get("partition", ""),
                    "l2": changes.get("l2", 0.0),  # the defense's own λ
                    # None if step ``tune`` finds it.
                    "learning_rate": None if tuned else changes.get("learning_rate", training.get("learning_rate")),
                    "epsilon": None,
                    "target": "",  # the risk that the noise was chosen by, in words
                    "delta": None,
                    # How σ was solved for, if it was.
                    "rdp_sigma": (mechanism or {}).get("rdp_sigma") or "" if not by_noise else "",
                    "accounting_note": entry.get("accounting_note", ""),
                    "epochs": (training | changes).get("epochs"),
                    "batch_size": (training | changes).get("batch_size"),
                    "projection": projection.get("method", "none"),
                    "projection_noise": projection.get("noise"),
                    "n_members": records if self.design == SPLIT else records // 2,
                    "n_nonmembers": roles["target_nonmembers"] if self.design == SPLIT else records - records // 2,
                    "n_records": records,  # the number of records (or persons) behind batch rates and steps
                }
                if claimed is not None:
                    words = f"ε as claimed by {model_spec.get('private', {}).get('by', 'its library')}"
                    columns |= claimed | {"accountant": CLAIMED, "accounting_note": words}
                if mechanism is not None:
                    columns |= {k: mechanism[k] for k in ("accountant", "unit", "block", "epsilon", "delta")}
                    columns["target"] = target_words(mechanism)
                yield Cell(
                    dataset,
                    model,
                    name,
                    columns,
                    {
                        "study": self.name,
                        "dataset": dataset,
                        "model": model,
                        "defense": name,
                        "role": "target",
                        "engine": engine,
                        "architecture": _architecture(model_spec, claimed),
                        "dropout": entry.get("dropout", 0.0),
                        "training": training | changes,
                        "mechanism": mechanism,
                        "repeats": entry.get("repeats", spec["repeats"]),
                        "seed": self.seed_of(dataset, model, name, "target"),
                        **({STRUCTURE: True} if self.structured and engine == "estimator" else {}),
                    },
                    self._parts_of(entry, own_attacks, engine),
                    self._audits_of(entry),
                    tuple(map(float, spec[TUNE]["learning_rate"])) if tuned else (),
                )

    def _parts_of(self, entry: Json, own_attacks: list[str], engine: str) -> list[str]:
        """What is measured of the cells of a defense (`Cell.parts`)."""
        attacks = [attack for attack in entry.get("attacks", own_attacks) if attack in own_attacks]
        together = any(ATTACKS[attack].family == MEMBERSHIP for attack in attacks)
        audited = self.audited if self._audits_of(entry) else []
        by_coins = [COINS] if self.design == COINS else []
        checked = self.structured if engine in ENGINES else []
        return [TRAINING, *attacks, *by_coins, *audited, *checked, *([STRONGEST, *self.grouped] if together else [])]

    def _audits_of(self, entry: Json) -> tuple[str, ...]:
        """The audit's designs for the cells of a defense: those that it names, else all without a planted bug."""
        designs = self.spec.get("audit", {}).get("designs", {})
        return tuple(entry.get("audits", [name for name, design in designs.items() if not design.get("bug")]))

    def audit_design(self, cell: Cell, name: str) -> Json:
        """A design of the study's audit with its defaults filled in, for one cell."""
        given = self.spec["audit"]["designs"][name]
        mechanism = cell.training["mechanism"]
        claim = given.get("claim", "approximate")
        whole = AUDIT_DEFAULTS | {"share": _default_share(given["design"], claim)} | given | {"claim": claim}
        poisson = mechanism is not None and mechanism["sampler"] in ("poisson", "class_poisson")
        presence = "add_remove" if poisson else "zero_out"
        return whole | {"neighbours": "replace_one" if whole["relation"] == "replace_one" else presence}

    @cached_property
    def bounds_together(self) -> int:
        """How many lower bounds on ε must hold together, from audits and coins: all that the study states, or each one
        alone.
        """
        if self.spec.get("audit", {}).get("hold", "together") == "each":
            return 1
        by_coins = sum(1 + adds_noise(cell) for cell in self.cells.values()) if self.design == COINS else 0
        return max(sum(len(cell.audits) for cell in self.cells.values()) + by_coins, 1)

    def auxiliary_defense(self, cell: Cell, role: str, attack: str | None = None) -> str | None:
        """The defense under which the cell's auxiliary models (of an attack) train; None if all cells share them."""
        aware = attack is None or ATTACKS[attack].aware
        same = aware and self.auxiliary_spec(cell.dataset, role).get("defense") == "same"
        return cell.defense if same and cell.defense != "none" else None

    def by_coins(self, attack: str) -> bool:
        """Whether an attack uses the repeats of a cell as references for each other, so that none are trained
        separately.
        """
        return self.design == COINS and ATTACKS[attack].needs == "reference"

    def _reference_cell(self, cell: Cell, attack: str) -> str:
        """The defense whose repeats are an attack's references: the cell's own, or none."""
        known = self.auxiliary_spec(cell.dataset, "reference").get("defense", "same") == "same"
        return cell.defense if known and ATTACKS[attack].aware else "none"


def released_noise(projection: Json) -> float | None:
    """Noise multiplier of a private PCA or a private scaling that was fitted on the members, and so spends their budget
    too; else None.
    """
    if not fitted_privately(projection):
        return None
    fit_on = projection.get("fit_on", "all")
    return float(projection["noise"]) if fit_on == "all" or {"target_members", POOL} & set(fit_on) else None


def _default_share(design: str, claim: str) -> float:
    """The share of its coins that an audit guesses: all if many runs claim a curve, else the surest quarter."""
    return 1.0 if design == "many_runs" and claim != "approximate" else 0.25


def target_words(mechanism: Json) -> str:
    """The risk that a mechanism's noise was chosen by, such as ``advantage ≤ 0.1``; "" if it was given otherwise."""
    wanted = {key: value for key, value in mechanism.get("target", {}).items() if key != "neighbours"}
    return Target.read(wanted).words if wanted else ""


def _architecture(model: Json, claimed: Json | None) -> Json:
    """The architecture that a cell trains: the model's own, or its private version with the budget that its library
    gets.
    """
    if claimed is None:
        return dict(model["architecture"])
    return {key: value for key, value in model.get("private", {}).items() if key != "by"} | {CLAIMED: claimed}


def _in_records(changes: Json, records: int) -> Json:
    """Changes to training, with a sampling rate turned into the nearest batch size in records."""
    if "sampling_rate" not in changes:
        return changes
    kept = {key: value for key, value in changes.items() if key != "sampling_rate"}
    return kept | {"batch_size": max(1, round(changes["sampling_rate"] * records))}
