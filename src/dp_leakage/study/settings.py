"""The settings of every step: what it computes, with which code, and from which inputs.

The hash of the settings is the step's *identity*. Files carry both, so a file says what made it, and a changed value
reruns exactly the steps that it concerns.
"""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from dp_leakage.attacks import ATTACKS
from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import identity
from dp_leakage.common.paths import user_path
from dp_leakage.data import SOURCES
from dp_leakage.data.roles import POOL, asked_roles
from dp_leakage.data.trees import content_of, content_of_source
from dp_leakage.engines import ENGINES, GIVEN, files_of
from dp_leakage.engines.onnx_files import content_of_model
from dp_leakage.study.cells import COINS, SPLIT, TUNE, Cell
from dp_leakage.study.contents import known
from dp_leakage.study.parts import part
from dp_leakage.study.paths import CLASS_SCORES, SIGNALS, TARGET, Paths, group_of
from dp_leakage.study.step_code import ACCOUNTING, MEASURING, noise_modules, own_files, step_code
from dp_leakage.study.steps import ANSWERED_BY, STEPS, path_of

Input = tuple[Path, str]  # a file that a step reads, and its identity

MEMBERS_LIST = ("dp_leakage.data.members",)  # the module that reads the key ``members`` of any source


class Settings(Paths):
    """The settings and inputs of the steps of one study."""

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
            "seed": self.seed_of(dataset, "split"),
            "code": step_code(
                "prepare", SOURCES[source["source"]].module, *(MEMBERS_LIST if "members" in source else ())
            ),
        }

    def _content(self, dataset: str, source: Json) -> str | None:
        """Digest of the user's own files, so that an edit reruns what was made from them; None for other sources.

        Raises:
            UserError: the file does not exist.
        """

        def content(key: str) -> str:
            try:
                return self._content_of(source[key])
            except UserError as error:
                raise UserError(f"study {self.target}: key 'datasets.{dataset}.source.{key}': {error}") from None

        return content_of_source(source, content)

    def project_settings(self, dataset: str) -> Json:
        """Of step ``project``."""
        return {
            "study": self.name,
            "dataset": dataset,
            "projection": self.spec["datasets"][dataset].get("projection") or {},
            "seed": self.seed_of(dataset, "projection"),
            "prepared": identity(self.prepare_settings(dataset)),
            "code": step_code("project"),
        }

    def data_identity(self, dataset: str) -> str:
        """Identity of ``data.npz``."""
        return self.remembered("data", dataset, lambda: identity(self.project_settings(dataset)))

    def tune_settings(self, cell: Cell) -> Json:
        """Settings of step ``tune``: those of the cell's training that the best learning rate may depend on."""
        own = {key: value for key, value in cell.training.items() if key not in ("repeats", "role")}
        return own | {
            "training": {key: value for key, value in own["training"].items() if key != "evaluate_every"},
            "rates": list(cell.rates),
            "n_records": cell.columns["n_records"],
            "n_members": cell.columns["n_members"],
            "seed": self.seed_of(cell.dataset, cell.model, cell.defense, TUNE),
            "data": self.data_identity(cell.dataset),
            "code": step_code("tune", *noise_modules(cell.training), exclude=ACCOUNTING, own=own_files(cell.training)),
        }

    def rate_of(self, cell: Cell) -> Json:
        """The file that says with which learning rate the cell trains, if one does."""
        if not cell.rates:
            return {}
        return {"tuned": self.made("tune", cell)}

    def train_settings(self, cell: Cell) -> Json:
        """Of step ``train`` for the cell's target models."""
        subset = self._subset(cell.dataset, cell.columns["n_records"])
        return self._trained(cell.training | {"subset": subset} | self.rate_of(cell), cell.dataset)

    def _trained(self, settings: Json, dataset: str) -> Json:
        """Settings of step ``train`` with the data, the code, and the content of models that exist already."""
        engine, files = settings["engine"], files_of(settings)
        read = content_of_model if engine == "onnx" else content_of
        content = {"content": [self._content_of(file, read) for file in files]} if files else {}
        modules = [*([ENGINES[engine]] if engine in ENGINES else []), *noise_modules(settings)]
        code = step_code("train", *modules, exclude=ACCOUNTING, own=own_files(settings))
        return settings | content | {"data": self.data_identity(dataset), "code": code}

    def _content_of(self, file: str, read: Callable[[Path], str] = content_of) -> str:
        """Digest of one of the user's files, so that an edit reruns what was made from it. Raises UserError if it is
        missing.
        """
        if file not in self.contents:
            self.contents[file] = known(file) or read(user_path(file))
        return self.contents[file]

    @cached_property
    def contents(self) -> dict[str, str]:
        """Digests of the user's files that settings were made from so far: name in the study → SHA-256."""
        return {}

    def _subset(self, dataset: str, records: int) -> Json:
        """The records that target models train on. All cells of a data set share the same coins, so that cells compare
        in pairs.
        """
        if self.design == SPLIT:
            return {"pool": ["target_members"], "size": records}
        return {"pool": [POOL], "size": records, "coins": self.seed_of(dataset, COINS)}

    def auxiliary_settings(self, dataset: str, model: str, role: str, defense: str | None = None) -> Json:
        """Of step ``train`` for shadow or reference models."""
        cell = self.cell(dataset, model, defense or "none")
        spec = self.auxiliary_spec(dataset, role)
        # Online attacks want each record inside as many references as outside. Shadow models follow their paper.
        dealt = {"dealt": True} if role == "reference" else {}
        own = {key: spec[key] for key in ("engine", "architecture") if key in spec}
        settings: Json = cell.training | own
        if cell.training["engine"] in GIVEN:
            settings["training"] = self.training_of(dataset, model, settings["engine"])
        if self.by_person(dataset):  # batches are drawn from the whole pool, and keep the persons of one half
            settings["training"] = settings["training"] | {"batch_size": 2 * settings["training"]["batch_size"]}
        settings |= {
            "role": role,
            "repeats": spec["count"],
            "subset": {"pool": spec.get("pool", [f"{role}_pool"]), "size": spec["size"]} | dealt,
            "seed": self.seed_of(dataset, model, cell.defense, role),
            **self.rate_of(cell),
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
            "code": step_code("query", own=own_files(made)),
        }

    def _models_settings(self, dataset: str, model: str, role: str, defense: str | None) -> Json:
        """Of step ``train`` for a group of models."""
        if role == TARGET:
            return self.train_settings(self.cell(dataset, model, defense or "none"))
        return self.auxiliary_settings(dataset, model, role, defense)

    def _queries(self, role: str) -> int:
        """How many queries about each record the models of a role answer: the most that any attack on them wants."""
        used = {name: ATTACKS[name].settings | given for name, given in self.spec["attacks"].items()}
        return max(
            (given.get("queries", 1) for name, given in used.items() if role in (TARGET, ATTACKS[name].needs)),
            default=1,
        )

    def _judged(self, dataset: str, role: str) -> list[str]:
        """Roles whose class scores are kept: those that membership is asked of, and the attacker's own."""
        pool = {f"{role}_pool", *self.auxiliary_spec(dataset, role).get("pool", [])}
        asked = set(asked_roles(self.spec["datasets"][dataset]["roles"]))
        return sorted({"target": asked, "shadow": pool, "reference": pool | asked}[role])

    def fit_inputs(self, dataset: str, model: str, attack: str, defense: str | None = None) -> dict[str, Input]:
        """The inputs of step ``fit_attack``: option → file and its identity."""
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
            "settings": self.settings_of_attack(attack),
            "seed": self.seed_of(dataset, model, attack, "fit"),
            "inputs": _identities(self.fit_inputs(dataset, model, attack, defense)),
            "code": step_code("fit_attack", entry.module),
        }

    def attack_inputs(self, cell: Cell, attack: str) -> dict[str, Input]:
        """The inputs of an attack on a cell: option of its step → file and its identity."""
        entry, names = ATTACKS[attack], (cell.dataset, cell.model)
        if entry.reads == "models":
            data = self.data(cell.dataset), self.data_identity(cell.dataset)
            return {"data": data, "target": (self.trained(*names, cell.defense), self.made("train_target", cell))}
        inputs = self._asked(*names, TARGET, cell.defense, attack)
        if self.by_coins(attack):
            others = self._asked(*names, TARGET, self._reference_cell(cell, attack), attack)
            inputs |= {f"reference_{option}": file for option, file in others.items() if option != "data"}
        elif entry.needs:
            own = self.auxiliary_defense(cell, entry.needs, attack)
            if entry.learns:
                same = {} if own is None else {"defense": own}
                made = self.made("fit_attack", None, dataset=cell.dataset, model=cell.model, attack=attack, **same)
                inputs["fitted"] = self.fitted(*names, attack, own), made
            else:
                others = self._asked(*names, entry.needs, own, attack)
                inputs |= {f"reference_{option}": file for option, file in others.items() if option != "data"}
        return inputs

    def _asked(self, dataset: str, model: str, role: str, defense: str | None, attack: str) -> dict[str, Input]:
        """The inputs of an attack from one group of models, and the data if it looks at features."""
        reads, group = ATTACKS[attack].reads, (dataset, model, role, defense)
        inputs = {SIGNALS: self.answered(*group, SIGNALS)}
        if reads == "probabilities":
            inputs[CLASS_SCORES] = self.answered(*group, CLASS_SCORES)
        if reads == "features":
            inputs["data"] = self.data(dataset), self.data_identity(dataset)
        return inputs

    def answered(self, dataset: str, model: str, role: str, defense: str | None, what: str = SIGNALS) -> Input:
        """The answers of a group of models, asked once."""
        step, job = ANSWERED_BY[what], {"dataset": dataset, "model": model, "group": group_of(role, defense)}
        return path_of(step, what, study=self.name, **job), self.made(step, None, **job, answers=what)

    def attack_settings(self, cell: Cell, attack: str) -> Json:
        """Of what an attack finds in a cell: its scores, and its pictures if it makes any."""
        entry = ATTACKS[attack]
        return {
            "study": self.name,
            "dataset": cell.dataset,
            "model": cell.model,
            "defense": cell.defense,
            "attack": attack,
            "module": entry.module,
            "settings": self.settings_of_attack(attack),
            # The seed is not the cell's: what an attack draws at random (features, say) is the same in all cells.
            "seed": self.seed_of(cell.dataset, entry.draws_as or attack),
            "inputs": _identities(self.attack_inputs(cell, attack)),
            "leave_one_out": self.by_coins(attack),
            **({"of_person": self.way_of_person(attack)} if self.by_person(cell.dataset) else {}),
            "code": step_code(
                "attack_models" if entry.reads == "models" else "attack", entry.module, exclude=MEASURING
            ),
        }

    def attacked(self, cell: Cell, attack: str) -> str:
        """Identity of what an attack finds in a cell: its scores, and its pictures if it makes any."""
        return self.remembered(attack, cell.key, lambda: identity(self.attack_settings(cell, attack)))

    def delta_of(self, cell: Cell) -> float:
        """δ of a cell's bounds: its own, or the study's if its training promises none."""
        return self.spec["delta"] if cell.columns["delta"] is None else cell.columns["delta"]

    def measure_settings(self, cell: Cell) -> Json:
        """Of step ``measure``."""
        return {
            "columns": cell.columns,
            "parts": [part(name).made(self, cell) for name in cell.parts],
            "code": step_code("measure"),
        }

    def part_file(self, cell: Cell, name: str) -> Path:
        """The file from which a part of a cell is read."""
        return part(name).path(self, cell)

    def settings(self, step: str, cell: Cell | None = None, **names: str) -> Json:
        """What a step of `steps.STEPS` is set by, in the job of a cell, or of these names."""
        return STEPS[step].settings(self, (cell.names if cell else {}) | names)

    def made(self, step: str, cell: Cell | None = None, **names: str) -> str:
        """The identity of what a step writes in such a job."""
        job = "/".join((cell.key if cell else "", *(f"{key}={name}" for key, name in sorted(names.items()))))
        return self.remembered(step, job, lambda: identity(self.settings(step, cell, **names)))

    @cached_property
    def _identities(self) -> dict[tuple[str, str], str]:
        return {}

    def remembered(self, what: str, name: str, made: Callable[[], str]) -> str:
        """An identity, hashed once: with many cells this is most of the time before the first job."""
        if (what, name) not in self._identities:
            self._identities[what, name] = made()
        return self._identities[what, name]


def _identities(inputs: dict[str, Input]) -> dict[str, str]:
    return {option: made for option, (_, made) in inputs.items()}
