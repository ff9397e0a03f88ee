"""From a study file to cells, paths, step settings and targets. Pure; nobody else builds a path.

Every step gets one JSON value, its *settings*: what it computes, the fingerprint of the code that computes it, and the
identities of what it computes from. The hash of the settings is the step's *identity*, and files carry both; so a file
says what made it, and a changed value reaches exactly the steps that it should.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path

from dp_leakage.attacks import ATTACKS, PICTURING
from dp_leakage.config import Json, merged
from dp_leakage.data import SOURCES, resolve
from dp_leakage.data.roles import POOL, asked_roles, trained_role
from dp_leakage.data.trees import content_of
from dp_leakage.defenses import CLAIMED, expanded
from dp_leakage.engines import ENGINES
from dp_leakage.engines import FILES as EXISTING
from dp_leakage.errors import UserError, nearest
from dp_leakage.figures import COMMON, FIGURES, FigureKind
from dp_leakage.fingerprint import code_fingerprint
from dp_leakage.identity import canonical, derived_seed, identity
from dp_leakage.privacy.accounting.rules import relation_of_game
from dp_leakage.privacy.mechanisms import MECHANISM_FILES, noise_module
from dp_leakage.privacy.target import Target
from dp_leakage.user_code import FILES, module_files

RESULTS = Path("results")
# Parts of a cell's metrics that need no attack: its accuracies and spent ε, at the end and by epoch.
TRAINING, CURVE = "training", "curve"
PROVEN = "proven"  # the ROC that no attack can exceed; part of what a figure asks for that draws it
SCORES = "scores"  # what a figure asks for that draws them themselves
IMAGES = "images"  # what a figure asks for that shows pictures
TIMING = "timing"  # what a figure asks for that shows how long training takes
AUDIT = "audit"  # the part that trains models of its own
# What step ``query`` writes of a group of models: signals of all records, and the probabilities of all classes.
SIGNALS, CLASS_SCORES = "signals", "class_scores"
# Options of the steps that attack.
READ_BY_ATTACKS = (
    SIGNALS, CLASS_SCORES, f"reference_{SIGNALS}", f"reference_{CLASS_SCORES}", "fitted", "data", "target"
)  # fmt: skip
TARGETS_FILE, AUXILIARY_FILE = "target.safetensors", "models.safetensors"
BESIDE_MODELS = ("training.parquet", "timing.json")  # what a training writes beside its models
TARGET = "target"  # the group of models under attack; the others are the attacker's own, shadow and reference
# A registry must not count as code of the steps that look things up in it: a new line would rerun its neighbours.
REGISTRIES = (
    "dp_leakage.attacks",
    "dp_leakage.data",
    "dp_leakage.figures",
    "dp_leakage.plugins",
    "dp_leakage.privacy.mechanisms",
)
LAUNCHING = ("dp_leakage.jobs", "dp_leakage.jobs.handover")  # which process a step runs in, not what it computes
# σ is solved in the training job, but an accountant's edit must not retrain what keeps its σ: `measure` checks that.
ACCOUNTING = (
    "dp_leakage.privacy.calibration",
    "dp_leakage.privacy.accounting",
    *(f"dp_leakage.privacy.accounting.{file.stem}" for file in Path(__file__).parent.glob("privacy/accounting/*.py")),
)
SPLIT, COINS = "split", "coins"  # designs of a study
TEMPLATE = Path(__file__).parent / "report" / "template.html"  # no code, but what the page says
# What a design of an audit is where the study does not say.
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
MAX_ARGUMENT = 100_000  # bytes; Linux allows 131,072 for one argument of a command
Input = tuple[Path, str]  # a file that a step reads, and its identity


@dataclass(frozen=True)
class Cell:
    """One (data set, model, defense at one budget) with all its repeats.

    Attributes:
        dataset, model: names in the study.
        defense: folder name, such as ``none`` or ``gaussian-rdp-eps=0.5``.
        columns: what figures select and draw by: mechanism, accountant, unit, block, epsilon, …
        training: settings of step ``train``, without code and inputs.
        parts: what is measured of it: ``training``, then the attacks, then ``audit`` where it has one.
        audits: names of the designs of its audit.
    """

    dataset: str
    model: str
    defense: str
    columns: Json
    training: Json
    parts: list[str]
    audits: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """``dataset/model/defense``."""
        return f"{self.dataset}/{self.model}/{self.defense}"


@dataclass(frozen=True)
class Study:
    """A checked study at one scale.

    Attributes:
        name: folder below ``results`` (the study's name, with the scale unless that is ``paper``).
        spec: the study file after overrides and scale, as the schema describes it.
    """

    name: str
    spec: Json

    @property
    def target(self) -> str:
        """Name of the Snakemake target that runs the whole study."""
        return self.spec["study"]

    @property
    def targets(self) -> list[str]:
        """Names of its Snakemake targets: the study, its report, check and figures, and its audit where it has one."""
        return [
            self.target,
            *(f"{self.target}_{part}" for part in ["report", "verify", *self.audited, *self.spec["figures"]]),
        ]

    @property
    def root(self) -> Path:
        """Folder of the study's results."""
        return RESULTS / self.name

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

    def check_file(
        self,
        dataset: str | None = None,
        model: str | None = None,
        defense: str | None = None,
        role: str | None = None,
        attack: str | None = None,
    ) -> None:
        """Refuse names of a path (as the rules have them) that the study does not have. Raises UserError."""
        for name, valid, what in (
            (dataset, self.spec["datasets"], "data set"),
            (model, self.spec["models"], "model"),
            (attack, self.spec["attacks"], "attack"),
        ):
            if name is not None and name not in valid:
                raise UserError(f"study {self.target} has no {what} '{name}'; {nearest(name, valid)}")
        if dataset and model and defense:
            cell = self.cell(dataset, model, defense)
            if attack is not None and role is None and attack not in cell.parts:
                raise UserError(f"cell '{cell.key}' is not attacked by '{attack}'; {nearest(attack, cell.parts)}")
            if role is not None and self.auxiliary_defense(cell, role) != defense:
                raise UserError(f"cell '{cell.key}' has no {role} models of its own")
        if dataset and role is not None and not self.auxiliary_spec(dataset, role):
            raise UserError(f"study {self.target} has no {role} models")

    def source(self, dataset: str) -> Json:
        """Where the records come from, as ``data.resolve`` returns it. Raises UserError for a wrong spec."""
        given = self.spec["datasets"][dataset]["source"]
        return resolve({"source": given} if isinstance(given, str) else given)

    def attacks_on(self, dataset: str) -> list[str]:
        """The attacks that are run on a data set, in the study's order."""
        own = self.spec["datasets"][dataset].get("attacks", self.spec["attacks"])
        return [attack for attack in self.spec["attacks"] if attack in own]

    def auxiliary_spec(self, dataset: str, role: str) -> Json:
        """The study's words on shadow or reference models, with the data set's own over them; empty if none."""
        return merged(self.spec.get(role, {}), self.spec["datasets"][dataset].get(role, {}))

    @property
    def design(self) -> str:
        """Who trains: ``split``, fixed members, or ``coins``, in each repeat another half of a pool."""
        return str(self.spec.get("design", SPLIT))

    @property
    def bounded(self) -> list[str]:
        """The parts that state lower bounds on ε: ``coins`` in design coins, and ``audit`` where the study has one."""
        return [*([COINS] if self.design == COINS else []), *self.audited]

    @property
    def audited(self) -> list[str]:
        """The part ``audit``, where the study has one."""
        return [AUDIT] if self.spec.get("audit") else []

    # ------------------------------------------------------------------ cells
    def _cells_of(self, dataset: str, model: str) -> Iterator[Cell]:
        spec = self.spec
        overrides = spec["datasets"][dataset].get("models", {}).get(model, {})
        model_spec = merged(spec["models"][model], overrides)
        training = merged({"momentum": 0.0, "l2": 0.0, "evaluate_every": spec["training"]["epochs"]}, spec["training"])
        training = merged(training, model_spec.get("training", {}))
        if not training.pop("l2_applied", True):
            training["l2"] = 0.0
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
                by_noise = (mechanism or {}).get("noise_multiplier")  # where the cell is given by its noise, not by ε
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
                    "learning_rate": changes.get("learning_rate", training["learning_rate"]),
                    "epsilon": None,
                    "target": "",  # the risk that it was given by, in words
                    "delta": None,
                    # How σ was solved for, where it was.
                    "rdp_sigma": (mechanism or {}).get("rdp_sigma") or "" if not by_noise else "",
                    "accounting_note": entry.get("accounting_note", ""),
                    "epochs": (training | changes)["epochs"],
                    "batch_size": (training | changes)["batch_size"],
                    "projection": projection.get("method", "none"),
                    "projection_noise": projection.get("noise"),
                    "n_members": records if self.design == SPLIT else records // 2,
                    "n_nonmembers": roles["target_nonmembers"] if self.design == SPLIT else records - records // 2,
                    "n_records": records,  # that batch rates and steps are of
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
                        "engine": model_spec.get("engine", "ensemble"),
                        "architecture": _architecture(model_spec, claimed),
                        "dropout": entry.get("dropout", 0.0),
                        "training": training | changes,
                        "mechanism": mechanism,
                        "repeats": entry.get("repeats", spec["repeats"]),
                        "seed": derived_seed(spec["seed"], dataset, model, name, "target"),
                    },
                    [
                        TRAINING,
                        *(attack for attack in entry.get("attacks", own_attacks) if attack in own_attacks),
                        *([COINS] if self.design == COINS else []),
                        *(self.audited if self._audits_of(entry) else []),
                    ],
                    self._audits_of(entry),
                )

    def _audits_of(self, entry: Json) -> tuple[str, ...]:
        """The designs of audit for the cells of a defense: those that it names, else all without a planted bug."""
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
        """Lower bounds on ε that the study states together, by audits and by its coins: all of them, or each alone."""
        if self.spec.get("audit", {}).get("hold", "together") == "each":
            return 1
        by_coins = len(self.cells) if self.design == COINS else 0
        return max(sum(len(cell.audits) for cell in self.cells.values()) + by_coins, 1)

    # ------------------------------------------------------------------ paths
    def prepared(self, dataset: str) -> Path:
        """Features before the projection."""
        return self.root.joinpath(dataset, "prepared.npz")

    def data(self, dataset: str) -> Path:
        """Features, labels and roles that everything else reads."""
        return self.root.joinpath(dataset, "data.npz")

    def trained(self, dataset: str, model: str, defense: str) -> Path:
        """The cell's target models."""
        return self.root.joinpath(dataset, model, defense, TARGETS_FILE)

    def auxiliary(self, dataset: str, model: str, role: str, defense: str | None = None) -> Path:
        """Shadow or reference models: shared, or of one defense where the study says ``defense: same``."""
        return self.root.joinpath(dataset, model, *([defense] if defense else []), role, AUXILIARY_FILE)

    def models(self, dataset: str, model: str, role: str, defense: str | None = None) -> Path:
        """The models of a group: a cell's targets, or shadow or reference models, shared or of one defense."""
        if role == TARGET:
            return self.trained(dataset, model, defense or "none")
        return self.auxiliary(dataset, model, role, defense)

    def answers(self, dataset: str, model: str, role: str, defense: str | None = None, what: str = SIGNALS) -> Path:
        """What the models of a group say: ``signals``, or ``class_scores``."""
        return self.models(dataset, model, role, defense).with_name(f"{what}.npz")

    def fitted(self, dataset: str, model: str, attack: str, defense: str | None = None) -> Path:
        """What an attack learnt from shadow or reference models, where it has a step of its own for that."""
        role = ATTACKS[attack].needs or ""
        return self.auxiliary(dataset, model, role, defense).with_name(f"{attack}.safetensors")

    def scores(self, dataset: str, model: str, defense: str, attack: str) -> Path:
        """The attack's scores of a cell."""
        return self.root.joinpath(dataset, model, defense, "attack", f"{attack}.parquet")

    def images(self, cell: Cell, attack: str) -> Path:
        """The pictures that an attack made of a cell's models."""
        return self.root.joinpath(cell.dataset, cell.model, cell.defense, "attack", f"{attack}.npz")

    def audit(self, dataset: str, model: str, defense: str) -> Path:
        """Scores of the canaries of a cell's audit."""
        return self.root.joinpath(dataset, model, defense, "audit.parquet")

    def timed(self, dataset: str, model: str) -> Path:
        """How long an epoch of each of a model's defenses takes."""
        return self.root.joinpath(dataset, model, "timed.parquet")

    def measured(self, dataset: str, model: str, defense: str) -> Path:
        """Metrics of a cell that need no attack: accuracies, spent ε, what is proven; beside it more of the same."""
        return self.root.joinpath(dataset, model, defense, "measured", "training.parquet")

    def metrics(self, dataset: str, model: str, defense: str) -> Path:
        """All metrics of a cell."""
        return self.root.joinpath(dataset, model, defense, "metrics.parquet")

    def figure_files(self, figure: str) -> dict[str, Path]:
        """The figure as ``pdf``, ``png`` and ``csv``."""
        return {kind: self.root / "figures" / f"{figure}.{kind}" for kind in ("pdf", "png", "csv")}

    @property
    def report(self) -> Path:
        """The study's page."""
        return self.root / "report.html"

    # ------------------------------------------------------------------ what a cell needs
    def auxiliary_defense(self, cell: Cell, role: str, attack: str | None = None) -> str | None:
        """The defense under which the cell's auxiliary models (of an attack) train; None where they are shared."""
        aware = attack is None or ATTACKS[attack].aware
        same = aware and self.auxiliary_spec(cell.dataset, role).get("defense") == "same"
        return cell.defense if same and cell.defense != "none" else None

    def _by_coins(self, attack: str) -> bool:
        """Whether an attack's references are repeats of a cell, each judged by all others, and none trained apart."""
        return self.design == COINS and ATTACKS[attack].needs == "reference"

    def _reference_cell(self, cell: Cell, attack: str) -> str:
        """The defense whose repeats are an attack's references: the cell's own, or none."""
        known = self.auxiliary_spec(cell.dataset, "reference").get("defense", "same") == "same"
        return cell.defense if known and ATTACKS[attack].aware else "none"

    def figure_cells(self, figure: str) -> list[Cell]:
        """The cells that a figure draws. Raises UserError where it selects none."""
        select = self.spec["figures"][figure].get("select", {})
        chosen = [
            cell for cell in self.cells.values() if all(cell.columns[key] in values for key, values in select.items())
        ]
        if not chosen:
            raise UserError(f"study {self.target}: key 'figures.{figure}.select' fits no cell of the study: {select}")
        return chosen

    def figure_parts(self, figure: str, cell: Cell) -> list[str]:
        """The parts of a cell's metrics that a figure draws."""
        if self._figure_kind(figure).needs == "training":
            return [CURVE]
        if self._figure_kind(figure).needs == TIMING:
            return [TIMING]
        wanted = self.spec["figures"][figure].get("parts", [TRAINING, *self.spec["attacks"], *self.bounded])
        if self._figure_kind(figure).needs == SCORES:
            wanted = [part for part in wanted if part in ATTACKS and ATTACKS[part].family == "membership"]
        if self._figure_kind(figure).needs == IMAGES:
            wanted = [part for part in wanted if pictures(part)]
        found = [part for part in wanted if part in cell.parts]
        proven = found and self._figure_kind(figure).proven and cell.columns["accountant"]
        return [*found, PROVEN] if proven else found

    # ------------------------------------------------------------------ settings of the steps
    def prepare_settings(self, dataset: str) -> Json:
        """Of step ``prepare``."""
        spec, source = self.spec["datasets"][dataset], self.source(dataset)
        return {
            "study": self.name,
            "dataset": dataset,
            "source": source,
            "content": self._content(dataset, source),
            "roles": spec["roles"],
            "stratified": spec.get("stratified", False),
            "official_split": spec.get("official_split", False),
            "augment": spec.get("augment"),
            "seed": derived_seed(self.spec["seed"], dataset, "split"),
            "code": _code("prepare", f"dp_leakage.data.sources.{SOURCES[source['source']].module}"),
        }

    def _content(self, dataset: str, source: Json) -> str | None:
        """Digest of the user's own file or folder, so that an edit reaches what is made of it; None for other sources.

        Raises:
            UserError: there is none.
        """
        if "path" not in source:
            return None
        try:
            return self._remembered("content", dataset, lambda: content_of(Path(source["path"]).expanduser()))
        except UserError as error:
            raise UserError(f"study {self.target}: key 'datasets.{dataset}.source.path': {error}") from None

    def project_settings(self, dataset: str) -> Json:
        """Of step ``project``."""
        return {
            "study": self.name,
            "dataset": dataset,
            "projection": self.spec["datasets"][dataset].get("projection") or {},
            "seed": derived_seed(self.spec["seed"], dataset, "projection"),
            "prepared": identity(self.prepare_settings(dataset)),
            "code": _code("project"),
        }

    def data_identity(self, dataset: str) -> str:
        """Identity of ``data.npz``."""
        return self._remembered("data", dataset, lambda: identity(self.project_settings(dataset)))

    def train_settings(self, cell: Cell) -> Json:
        """Of step ``train`` for the cell's target models."""
        return self._trained(
            cell.training | {"subset": self._subset(cell.dataset, cell.columns["n_records"])}, cell.dataset
        )

    def _trained(self, settings: Json, dataset: str) -> Json:
        """Settings of step ``train`` with the data, the code, and the content of models that exist already."""
        engine = settings["engine"]
        files = [
            str(settings["architecture"][key]) for key in EXISTING.get(engine, ()) if key in settings["architecture"]
        ]
        content = {"content": [self._content_of(file) for file in files]} if files else {}
        modules = [*([ENGINES[engine]] if engine in ENGINES else []), *_noise_modules(settings)]
        code = _code("train", *modules, exclude=ACCOUNTING, own=_own_files(settings))
        return settings | content | {"data": self.data_identity(dataset), "code": code}

    def _content_of(self, file: str) -> str:
        """Digest of a file of the user's, so that an edit reaches what is made of it. UserError if there is none."""
        return self._remembered("content", file, lambda: content_of(Path(file).expanduser()))

    def _subset(self, dataset: str, records: int) -> Json:
        """What target models train on. Every cell of a data set has the same coins, so that cells compare in pairs."""
        if self.design == SPLIT:
            return {"pool": ["target_members"], "size": records}
        return {"pool": [POOL], "size": records, "coins": derived_seed(self.spec["seed"], dataset, COINS)}

    def auxiliary_settings(self, dataset: str, model: str, role: str, defense: str | None = None) -> Json:
        """Of step ``train`` for shadow or reference models."""
        cell = self.cell(dataset, model, defense or "none")
        spec = self.auxiliary_spec(dataset, role)
        # Online attacks want every record in as many references as it is not; shadows are drawn as their paper has it.
        dealt = {"dealt": True} if role == "reference" else {}
        settings = cell.training | {
            **{key: spec[key] for key in ("engine", "architecture") if key in spec},
            "role": role,
            "repeats": spec["count"],
            "subset": {"pool": spec.get("pool", [f"{role}_pool"]), "size": spec["size"]} | dealt,
            "seed": derived_seed(self.spec["seed"], dataset, model, cell.defense, role),
        }
        return self._trained(settings, dataset)

    def query_settings(
        self, dataset: str, model: str, role: str, defense: str | None = None, what: str = SIGNALS
    ) -> Json:
        """Of step ``query``."""
        made = self._models_settings(dataset, model, role, defense)
        asks = {"queries": self._queries(role)} if what == SIGNALS else {"roles": self._judged(dataset, role)}
        return {
            **{key: made[key] for key in ("study", "dataset", "model", "defense", "role")},
            **asks,
            "models": identity(made),
            "data": self.data_identity(dataset),
            "code": _code("query", own=_own_files(made)),
        }

    def _models_settings(self, dataset: str, model: str, role: str, defense: str | None) -> Json:
        """Of step ``train`` for a group of models."""
        if role == TARGET:
            return self.train_settings(self.cell(dataset, model, defense or "none"))
        return self.auxiliary_settings(dataset, model, role, defense)

    def _queries(self, role: str) -> int:
        """How often the models of a role are asked about each record: as often as any attack on them wants."""
        used = {name: ATTACKS[name].settings | given for name, given in self.spec["attacks"].items()}
        return max(
            (given.get("queries", 1) for name, given in used.items() if role in (TARGET, ATTACKS[name].needs)),
            default=1,
        )

    def _judged(self, dataset: str, role: str) -> list[str]:
        """Roles of the records whose class scores are kept: those asked about, and those of the attacker's own."""
        pool = {f"{role}_pool", *self.auxiliary_spec(dataset, role).get("pool", [])}
        asked = set(asked_roles(self.spec["datasets"][dataset]["roles"]))
        return sorted({"target": asked, "shadow": pool, "reference": pool | asked}[role])

    def fit_inputs(self, dataset: str, model: str, attack: str, defense: str | None = None) -> dict[str, Input]:
        """What step ``fit_attack`` reads: option → file and its identity."""
        return self._asked(dataset, model, ATTACKS[attack].needs or "", defense, attack)

    def fit_settings(self, dataset: str, model: str, attack: str, defense: str | None = None) -> Json:
        """Of step ``fit_attack``."""
        entry = ATTACKS[attack]
        return {
            "study": self.name,
            "dataset": dataset,
            "model": model,
            "attack": attack,
            "module": entry.module,
            "settings": entry.settings | self.spec["attacks"][attack],
            "seed": derived_seed(self.spec["seed"], dataset, model, attack, "fit"),
            "inputs": _identities(self.fit_inputs(dataset, model, attack, defense)),
            "code": _code("fit_attack", entry.module),
        }

    def attack_inputs(self, cell: Cell, attack: str) -> dict[str, Input]:
        """What an attack on a cell reads: option of its step → file and its identity."""
        entry, names = ATTACKS[attack], (cell.dataset, cell.model)
        if entry.reads == "models":
            target = self._remembered(TARGET, cell.key, lambda: identity(self.train_settings(cell)))
            data = self.data(cell.dataset), self.data_identity(cell.dataset)
            return {"data": data, "target": (self.trained(*names, cell.defense), target)}
        inputs = self._asked(*names, TARGET, cell.defense, attack)
        if self._by_coins(attack):
            others = self._asked(*names, TARGET, self._reference_cell(cell, attack), attack)
            inputs |= {f"reference_{option}": file for option, file in others.items() if option != "data"}
        elif entry.needs:
            own = self.auxiliary_defense(cell, entry.needs, attack)
            if entry.learns:
                key = "/".join((*names, own or "", attack))
                fitted = self._remembered("fitted", key, lambda: identity(self.fit_settings(*names, attack, own)))
                inputs["fitted"] = self.fitted(*names, attack, own), fitted
            else:
                others = self._asked(*names, entry.needs, own, attack)
                inputs |= {f"reference_{option}": file for option, file in others.items() if option != "data"}
        return inputs

    def everything(self) -> list[Path]:
        """All that the study's target asks for: every output of every job that the study makes, but for temporary ones.

        A file that nothing asks for by name would stay away once it was lost, as the job's others are still there.
        """
        files = [self.report]
        for figure in self.spec["figures"]:
            files += [*self.figure_files(figure).values(), *self.figure_inputs(figure)]
        for cell in self.cells.values():
            names = (cell.dataset, cell.model, cell.defense)
            files += [self.data(cell.dataset), self.trained(*names), self.metrics(*names)]
            files += [self.part_file(cell, part) for part in (TRAINING, CURVE, PROVEN, *cell.parts)]
            files += [self.images(cell, part) for part in cell.parts if pictures(part)]
            files += self.made_for(cell)
        models = [path for path in files if path.name in (TARGETS_FILE, AUXILIARY_FILE)]
        files += [path.with_name(name) for path in models for name in BESIDE_MODELS]
        return list(dict.fromkeys(files))

    def made_for(self, cell: Cell) -> list[Path]:
        """Every file between the training of a cell and its scores: auxiliary models, answers, what attacks learnt."""
        names, files = (cell.dataset, cell.model), []
        for attack in cell.parts:
            if attack not in ATTACKS:
                continue
            entry = ATTACKS[attack]
            if entry.needs and not self._by_coins(attack):
                own = self.auxiliary_defense(cell, entry.needs, attack)
                files.append(self.auxiliary(*names, entry.needs, own))
                if entry.learns:
                    files += [path for path, _ in self.fit_inputs(*names, attack, own).values()]
            files += [path for path, _ in self.attack_inputs(cell, attack).values()]
        return list(dict.fromkeys(files))

    def _asked(self, dataset: str, model: str, role: str, defense: str | None, attack: str) -> dict[str, Input]:
        """What an attack reads of one group of models, and the data where it looks at features."""
        reads, group = ATTACKS[attack].reads, (dataset, model, role, defense)
        inputs = {SIGNALS: self._answered(*group, SIGNALS)}
        if reads == "probabilities":
            inputs[CLASS_SCORES] = self._answered(*group, CLASS_SCORES)
        if reads == "features":
            inputs["data"] = self.data(dataset), self.data_identity(dataset)
        return inputs

    def _answered(self, dataset: str, model: str, role: str, defense: str | None, what: str) -> Input:
        """What a group of models says, asked once."""
        key, group = "/".join((dataset, model, role, defense or "")), (dataset, model, role, defense)
        made = self._remembered(what, key, lambda: identity(self.query_settings(*group, what)))
        return self.answers(*group, what), made

    def attack_settings(self, cell: Cell, attack: str) -> Json:
        """Of step ``attack``, ``attack_models`` or ``reconstruct``."""
        entry = ATTACKS[attack]
        return {
            "study": self.name,
            "dataset": cell.dataset,
            "model": cell.model,
            "defense": cell.defense,
            "attack": attack,
            "module": entry.module,
            "settings": entry.settings | self.spec["attacks"][attack],
            # Not of the cell: what an attack draws at random (features, say) is the same in all cells.
            "seed": derived_seed(self.spec["seed"], cell.dataset, attack),
            "inputs": _identities(self.attack_inputs(cell, attack)),
            "leave_one_out": self._by_coins(attack),
            "code": _code("attack_models" if entry.reads == "models" else "attack", entry.module),
        }

    def audit_settings(self, cell: Cell) -> Json:
        """Of step ``audit``."""
        return cell.training | {
            "role": AUDIT,
            "designs": {name: self.audit_design(cell, name) for name in cell.audits},
            "delta": self._delta(cell),
            "seed": derived_seed(self.spec["seed"], cell.dataset, cell.model, cell.defense, AUDIT),
            "data": self.data_identity(cell.dataset),
            "code": _code("audit", *_noise_modules(cell.training), exclude=ACCOUNTING, own=_own_files(cell.training)),
        }

    def timing_settings(self, dataset: str, model: str) -> Json:
        """Of step ``time_training``."""
        cells = [cell for cell in self.cells.values() if (cell.dataset, cell.model) == (dataset, model)]
        return {
            "study": self.name,
            "dataset": dataset,
            "model": model,
            "n_records": cells[0].columns["n_records"],
            **self.spec["timing"],
            "cells": [cell.training for cell in cells],
            "seed": derived_seed(self.spec["seed"], dataset, model, TIMING),
            "data": self.data_identity(dataset),
            "code": _code("time_training", *_noise_modules(*(cell.training for cell in cells)), exclude=ACCOUNTING),
        }

    def measure_training_settings(self, cell: Cell) -> Json:
        """Of step ``measure_training``."""
        baseline = self.cell(cell.dataset, cell.model, "none")
        return {
            "columns": cell.columns,
            "training": identity(self.train_settings(cell)),
            "baseline": identity(self.train_settings(baseline)),
            "design": self.design,
            "code": _code("measure_training", *MECHANISM_FILES, own=_own_files(cell.training)),
        }

    def measure_settings(self, cell: Cell) -> Json:
        """Of step ``measure``."""
        return {
            "columns": cell.columns,
            "parts": [self._part(cell, part) for part in cell.parts],
            "code": _code("measure"),
        }

    def _part(self, cell: Cell, part: str) -> list[str | int]:
        """[part, identity of the file that holds it, family of the attack or ``""``, what the family needs to know]."""
        if part == AUDIT:
            return [part, identity(self.audit_settings(cell)), AUDIT, self.bounds_together]
        if part == COINS:
            inputs = self._answered(cell.dataset, cell.model, TARGET, cell.defense, SIGNALS)
            sampler = (cell.training["mechanism"] or {}).get("sampler", "poisson")
            claim = {"delta": self._delta(cell), "neighbours": relation_of_game(COINS, sampler)}
            return [part, inputs[1], COINS, self.bounds_together, claim]
        if part in (TRAINING, CURVE, PROVEN):
            measured = self._remembered(TRAINING, cell.key, lambda: identity(self.measure_training_settings(cell)))
            return [part, measured, ""]
        if part == TIMING:
            return [part, identity(self.timing_settings(cell.dataset, cell.model)), ""]
        scored = self._remembered(part, cell.key, lambda: identity(self.attack_settings(cell, part)))
        return [part, scored, ATTACKS[part].family]

    def part_file(self, cell: Cell, part: str) -> Path:
        """The file that a part of a cell's metrics is read from: measured training, or an attack's scores."""
        names = (cell.dataset, cell.model, cell.defense)
        if part in (TRAINING, CURVE, PROVEN):
            return self.measured(*names).with_name(f"{part}.parquet")
        if part == TIMING:
            return self.timed(cell.dataset, cell.model)
        if part == COINS:
            return self.answers(cell.dataset, cell.model, TARGET, cell.defense)
        return self.audit(*names) if part == AUDIT else self.scores(*names, part)

    def _delta(self, cell: Cell) -> float:
        return self.spec["delta"] if cell.columns["delta"] is None else cell.columns["delta"]

    def figure_settings(self, figure: str) -> Json:
        """Of step ``figure``."""
        spec, kind = self.spec["figures"][figure], self._figure_kind(figure)
        cells = self.figure_cells(figure)

        def part_of(cell: Cell, part: str) -> list[str | int]:
            name, made, *family = self._part(cell, part)
            return [name, made, *([kind.needs] if kind.needs in (SCORES, IMAGES) and part != PROVEN else family)]

        return _short_enough(
            {
                "study": self.name,
                "figure": figure,
                "module": kind.module,
                "settings": {
                    **COMMON,
                    **kind.settings,
                    **spec.get("settings", {}),
                    "title": spec.get("title"),
                },
                # Lists, not mappings: those are sorted in JSON, and the files come in this order.
                "columns": list(cells[0].columns),
                "cells": [
                    [list(cell.columns.values()), [part_of(cell, part) for part in self.figure_parts(figure, cell)]]
                    for cell in cells
                ],
                "code": _code("figure", kind.module),
            },
            f"figures.{figure}",
        )

    def report_settings(self) -> Json:
        """Of step ``report``."""
        captions = {figure: self.caption(figure) for figure in self.spec["figures"]}
        return _short_enough(
            {
                "study": self.name,
                "spec": {k: v for k, v in self.spec.items() if k != "scales"},
                "figures": {figure: identity(self.figure_settings(figure)) for figure in self.spec["figures"]},
                "cells": [[key, identity(self.measure_settings(cell))] for key, cell in self.cells.items()],
                "data": [[dataset, self.data_identity(dataset)] for dataset in self.spec["datasets"]],
                "scores": [
                    [cell.dataset, cell.model, cell.defense, attack, self._part(cell, attack)[1]]
                    for cell, attack in self._exposed()
                ],
                "aware": self.aware,
                "words": identity({"template": TEMPLATE.read_text(encoding="utf-8"), "captions": captions}),
                "code": _code("report"),
            },
            "defenses",
        )

    @property
    def aware(self) -> bool:
        """Whether on every data set a membership attack learns from models under the defense that it attacks."""

        def learns(dataset: str, attack: str) -> bool:
            entry = ATTACKS[attack]
            usual = "same" if self._by_coins(attack) else "none"
            same = entry.needs is not None and self.auxiliary_spec(dataset, entry.needs).get("defense", usual) == "same"
            return same and entry.aware and entry.family == "membership"

        return all(any(learns(d, attack) for attack in self.attacks_on(d)) for d in self.spec["datasets"])

    def caption(self, figure: str) -> str:
        """How to read a figure: the study's words, else its kind's."""
        return self.spec["figures"][figure].get("caption") or self._figure_kind(figure).caption

    def figure_inputs(self, figure: str) -> list[Path]:
        """Inputs of a figure, in the order of its settings."""
        file = self.images if self._figure_kind(figure).needs == IMAGES else self.part_file
        return [file(cell, part) for cell in self.figure_cells(figure) for part in self.figure_parts(figure, cell)]

    def exposed_scores(self) -> list[Path]:
        """Membership scores of the undefended and the private models: whom some of them single out is in the report."""
        return [self.scores(cell.dataset, cell.model, cell.defense, attack) for cell, attack in self._exposed()]

    def _exposed(self) -> list[tuple[Cell, str]]:
        return [
            (cell, attack)
            for cell in self.cells.values()
            for attack in cell.parts
            if (cell.defense == "none" or cell.columns["accountant"])
            and attack in ATTACKS
            and ATTACKS[attack].family == "membership"
        ]

    @cached_property
    def _identities(self) -> dict[tuple[str, str], str]:
        return {}

    def _remembered(self, what: str, name: str, made: Callable[[], str]) -> str:
        """An identity, hashed once: with many cells this is most of the time before the first job."""
        if (what, name) not in self._identities:
            self._identities[what, name] = made()
        return self._identities[what, name]

    def _figure_kind(self, figure: str) -> FigureKind:
        return FIGURES[self.spec["figures"][figure]["kind"]]


def _identities(inputs: dict[str, Input]) -> dict[str, str]:
    return {option: made for option, (_, made) in inputs.items()}


def released_noise(projection: Json) -> float | None:
    """Noise multiplier of a private PCA that was fitted on the members, and so spends of their budget; else None."""
    if projection.get("method") != "private_pca":
        return None
    fit_on = projection.get("fit_on", "all")
    return float(projection["noise"]) if fit_on == "all" or {"target_members", POOL} & set(fit_on) else None


def _default_share(design: str, claim: str) -> float:
    """Of the coins that an audit guesses about: all where a curve is claimed of many runs, else the surest quarter."""
    return 1.0 if design == "many_runs" and claim != "approximate" else 0.25


def target_words(mechanism: Json) -> str:
    """The risk by which a mechanism's noise is given, as ``advantage ≤ 0.1``; "" where it is given otherwise."""
    wanted = {key: value for key, value in mechanism.get("target", {}).items() if key != "neighbours"}
    return Target.read(wanted).words if wanted else ""


def pictures(part: str) -> bool:
    """Does this part of a cell come with pictures?"""
    return part in ATTACKS and ATTACKS[part].family in PICTURING


def _architecture(model: Json, claimed: Json | None) -> Json:
    """What a cell trains: the model's, or the private one in its place, with the budget that its library is told."""
    if claimed is None:
        return dict(model["architecture"])
    return {key: value for key, value in model.get("private", {}).items() if key != "by"} | {CLAIMED: claimed}


def _in_records(changes: Json, records: int) -> Json:
    """Changes to training with the rate at which a unit is in a batch as a number of records, to the nearest one."""
    if "sampling_rate" not in changes:
        return changes
    kept = {key: value for key, value in changes.items() if key != "sampling_rate"}
    return kept | {"batch_size": max(1, round(changes["sampling_rate"] * records))}


@cache
def _code(step: str, *modules: str, exclude: tuple[str, ...] = (), own: tuple[Path, ...] = ()) -> str:
    ours = [name for name in modules if name not in FILES]
    own = (*own, *(FILES[name] for name in modules if name in FILES))
    return code_fingerprint(
        f"dp_leakage.steps.{step}", *ours, exclude=(*REGISTRIES, *LAUNCHING, *exclude), extra_files=own
    )


def _noise_modules(*trainings: Json) -> tuple[str, ...]:
    """The files of the noise of some trainings: their code is found by name, so no import shows it."""
    named = [training["mechanism"]["noise"] for training in trainings if training["mechanism"]]
    return tuple(noise_module(noise) for noise in dict.fromkeys(named) if noise != "none" and noise not in FILES)


def _own_files(training: Json) -> tuple[Path, ...]:
    """The files of a user's own torch module and mechanism, so that an edit to them retrains."""
    mechanism = training["mechanism"] or {}
    names = dict.fromkeys(mechanism.get(part) for part in ("bound", "noise", "sampler", "unit"))
    files = [FILES[name] for name in names if name in FILES]
    if training["engine"] in ("opacus", "module"):
        files += module_files(training["architecture"]["name"].partition(":")[0])
    return tuple(files)


def _short_enough(settings: Json, key: str) -> Json:
    size = len(canonical(settings))
    if size > MAX_ARGUMENT:
        raise UserError(
            f"key '{key}' reaches so many cells that their names take {size:,} bytes; valid is up to {MAX_ARGUMENT:,}"
        )
    return settings
