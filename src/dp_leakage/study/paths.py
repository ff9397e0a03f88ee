"""Where every file of a study lies. The rules and the plan take each path from here, the only place where it is
written.

The constants are patterns with Snakemake's wildcards. The methods of `Paths` fill in the names of one study.
"""

from pathlib import Path

from dp_leakage.attacks import ATTACKS
from dp_leakage.study.cells import Cell, Cells

ROOT = "results"
STUDY = ROOT + "/{study}"
DATASET = STUDY + "/{dataset}"
MODEL = DATASET + "/{model}"
CELL = MODEL + "/{defense}"
OWN = MODEL + "/{role}"  # shadow or reference models, the attacker's own

PREPARED = DATASET + "/prepared.npz"  # features before the projection
DATA = DATASET + "/data.npz"
# What a training writes: its models, their history and how long it took.
TRAINED, HISTORY, TIMES = (f"{CELL}/{name}" for name in ("target.safetensors", "training.parquet", "timing.json"))
AUXILIARY, AUXILIARY_HISTORY, AUXILIARY_TIMES = (
    f"{OWN}/{name}" for name in ("models.safetensors", "training.parquet", "timing.json")
)
TUNED = CELL + "/tuned.parquet"  # how well each tried learning rate did
ANSWERS = MODEL + "/{group}/{answers}.npz"
FITTED = OWN + "/{attack}.safetensors"
SCORES = CELL + "/attack/{attack}.parquet"
IMAGES = CELL + "/attack/{attack}.npz"
AUDIT = CELL + "/audit.parquet"  # scores of the canaries
BOUNDS = CELL + "/measured/audit.parquet"  # what they prove
TIMED = MODEL + "/timed.parquet"
MEASURED, CURVE, PROVEN = (f"{CELL}/measured/{name}.parquet" for name in ("training", "curve", "proven"))
COINS = CELL + "/measured/coins.parquet"  # what guesses of coins prove
STRUCTURE = CELL + "/measured/structure.parquet"  # what the structure of models gives away
GROUPS = CELL + "/measured/groups.parquet"  # what leaks in each group of records
ROWS = CELL + "/measured/{part}.parquet"  # metrics of one attack, or of several membership attacks together
ATTACKED = ROWS.replace("{part}", "{attack}")
METRICS = CELL + "/metrics.parquet"
FIGURES = STUDY + "/figures"
FIGURE = FIGURES + "/{figure}.{form}"
FORMS = ("pdf", "png", "csv")
REPORT = STUDY + "/report.html"
CLAIMS = STUDY + "/claims.json"  # what the page says, each number with what it estimates
LOGS = "logs/{study}"

# What step ``query`` writes for a group of models: signals of all records, and probabilities of all classes.
SIGNALS, CLASS_SCORES = "signals", "class_scores"
TARGET = "target"  # the group of models under attack; the attacker's own groups are shadow and reference
NAMES_OF_CELL = "{dataset}.{model}.{defense}"


def of_one_defense(pattern: str) -> str:
    """The path of one defense's own shadow or reference models, derived from the path of the shared ones."""
    return pattern.replace("{role}", "{defense}/{role}")


def benchmark(rule: str, names: str = NAMES_OF_CELL) -> str:
    """Where Snakemake writes how long a rule's jobs took. The wildcards ``names`` distinguish the jobs."""
    return f"{STUDY}/benchmarks/{rule}/{names}.tsv"


def log(name: str, folder: str = "{dataset}/{model}/{defense}") -> str:
    """Where a rule's jobs write their logs."""
    return f"{LOGS}/{folder}/{name}.log"


def group_of(role: str, defense: str | None) -> str:
    """The folder of a group of models, relative to the folder of the model: a cell's targets, or auxiliary models."""
    return (defense or "none") if role == TARGET else "/".join([*([defense] if defense else []), role])


class Paths(Cells):
    """The files of one study."""

    def _at(self, pattern: str, **names: str) -> Path:
        return Path(pattern.format(study=self.name, **names))

    @property
    def root(self) -> Path:
        """Folder of the study's results."""
        return self._at(STUDY)

    def prepared(self, dataset: str) -> Path:
        """Features before the projection."""
        return self._at(PREPARED, dataset=dataset)

    def data(self, dataset: str) -> Path:
        """Features, labels and roles that everything else reads."""
        return self._at(DATA, dataset=dataset)

    def training_files(self, dataset: str, model: str, role: str, defense: str | None = None) -> list[Path]:
        """What a training writes: its models, their history and how long it took."""
        names = {"dataset": dataset, "model": model}
        if role == TARGET:
            return [self._at(pattern, **names, defense=defense or "none") for pattern in (TRAINED, HISTORY, TIMES)]
        shared = (AUXILIARY, AUXILIARY_HISTORY, AUXILIARY_TIMES)
        if defense is None:
            return [self._at(pattern, **names, role=role) for pattern in shared]
        return [self._at(of_one_defense(pattern), **names, role=role, defense=defense) for pattern in shared]

    def trained(self, dataset: str, model: str, defense: str) -> Path:
        """The cell's target models."""
        return self.models(dataset, model, TARGET, defense)

    def auxiliary(self, dataset: str, model: str, role: str, defense: str | None = None) -> Path:
        """Shadow or reference models: shared, or of one defense if the study says ``defense: same``."""
        return self.models(dataset, model, role, defense)

    def models(self, dataset: str, model: str, role: str, defense: str | None = None) -> Path:
        """The models of a group: a cell's targets, or shadow or reference models, shared or of one defense."""
        return self.training_files(dataset, model, role, defense)[0]

    def answers(self, dataset: str, model: str, role: str, defense: str | None = None, what: str = SIGNALS) -> Path:
        """What the models of a group answer: ``signals``, or ``class_scores``."""
        return self._at(ANSWERS, dataset=dataset, model=model, group=group_of(role, defense), answers=what)

    def fitted(self, dataset: str, model: str, attack: str, defense: str | None = None) -> Path:
        """What an attack learnt from shadow or reference models, if it has a separate step for that."""
        names = {"dataset": dataset, "model": model, "role": ATTACKS[attack].needs or "", "attack": attack}
        if defense is None:
            return self._at(FITTED, **names)
        return self._at(of_one_defense(FITTED), **names, defense=defense)

    def of_cell(self, pattern: str, cell: Cell, **names: str) -> Path:
        """A file of a cell."""
        return self._at(pattern, dataset=cell.dataset, model=cell.model, defense=cell.defense, **names)

    def tuned_for(self, cell: Cell) -> list[Path]:
        """The files from which a training of the cell reads its learning rate: one, or none if the rate is given."""
        return [self.of_cell(TUNED, cell)] if cell.rates else []

    def scores(self, dataset: str, model: str, defense: str, attack: str) -> Path:
        """The attack's scores of a cell."""
        return self._at(SCORES, dataset=dataset, model=model, defense=defense, attack=attack)

    def images(self, cell: Cell, attack: str) -> Path:
        """The pictures that an attack made of a cell's models."""
        return self.of_cell(IMAGES, cell, attack=attack)

    def rows(self, cell: Cell, part: str) -> Path:
        """The metrics of one attack on a cell, or of several membership attacks together."""
        return self.of_cell(ROWS, cell, part=part)

    def audit(self, dataset: str, model: str, defense: str) -> Path:
        """Scores of the canaries of a cell's audit."""
        return self._at(AUDIT, dataset=dataset, model=model, defense=defense)

    def timed(self, dataset: str, model: str) -> Path:
        """How long one epoch takes under each of a model's defenses."""
        return self._at(TIMED, dataset=dataset, model=model)

    def measured(self, dataset: str, model: str, defense: str) -> Path:
        """Metrics of a cell that need no attack: accuracies, spent ε, what is proven. Further files of that step lie
        beside it.
        """
        return self._at(MEASURED, dataset=dataset, model=model, defense=defense)

    def metrics(self, dataset: str, model: str, defense: str) -> Path:
        """All metrics of a cell."""
        return self._at(METRICS, dataset=dataset, model=model, defense=defense)

    def figure_files(self, figure: str) -> dict[str, Path]:
        """The figure as ``pdf``, ``png`` and ``csv``."""
        return {form: self._at(FIGURE, figure=figure, form=form) for form in FORMS}

    @property
    def report(self) -> Path:
        """The study's page."""
        return self._at(REPORT)

    @property
    def claims(self) -> Path:
        """What the page says, as objects."""
        return self._at(CLAIMS)

    def log(self, *names: str) -> Path:
        """Where a job without wildcards writes its log."""
        return self._at("/".join((LOGS, *names)) + ".log")

    def benchmark(self, rule: str, name: str) -> Path:
        """Where Snakemake writes how long a job without wildcards took."""
        return self._at(benchmark(rule, name))
