"""Paths of all files of a study. The rules and the plan take each path from here, the only place that defines it.

The constants are patterns with Snakemake's wildcards. `Study.path` fills in the names of one study.
"""

from pathlib import Path

from dp_leakage.attacks import ATTACKS
from dp_leakage.data.projection_settings import ProjectionSettings
from dp_leakage.figures import FIGURES as KINDS
from dp_leakage.study.cells import Cell
from dp_leakage.study.study import Study

ROOT = "results"
STUDY = ROOT + "/{study}"
DATASET = STUDY + "/{dataset}"
MODEL = DATASET + "/{model}"
CELL = MODEL + "/{defense}"
OWN = MODEL + "/{role}"  # shadow or reference models, the attacker's own

PREPARED = DATASET + "/prepared.npz"  # features before the projection
FEATURES = DATASET + "/features.safetensors"  # the network that computes learned features
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
PICTURE, TABLE = ("png", "pdf", "csv"), ("html", "tex", "csv")  # forms of a figure; the first is for readers
REPORT = STUDY + "/report.html"
CLAIMS = STUDY + "/claims.json"  # what the page says, each number with what it estimates
LOGS = "logs/{study}"
RELEASE = "releases/{study}-{model}-{defense}"  # the model that is given away, if no other folder is named

# What step ``query`` writes for a group of models: signals of all records, and probabilities of all classes.
SIGNALS, CLASS_SCORES = "signals", "class_scores"
TARGET = "target"  # the group of models under attack; the attacker's own groups are shadow and reference


def of_one_defense(pattern: str) -> str:
    """Return the path of one defense's own shadow or reference models, derived from the path of the shared ones."""
    return pattern.replace("{role}", "{defense}/{role}")


def log(name: str, folder: str = "{dataset}/{model}/{defense}") -> str:
    """Return the path of a rule's log. `Study.path` drops the folder ``.``, which is for jobs that run once per
    study.
    """
    return f"{LOGS}/{folder}/{name}.log"


def group_of(role: str, defense: str | None) -> str:
    """Return the folder of a group of models, relative to the folder of the model: a cell's targets, or
    auxiliary models.
    """
    return (defense or "none") if role == TARGET else "/".join([*([defense] if defense else []), role])


def of_models(
    study: Study, pattern: str, dataset: str, model: str, role: str, defense: str | None, **names: str
) -> Path:
    """Return the path of a file of shadow or reference models: shared by all cells, or of one defense."""
    own = {} if defense is None else {"defense": defense}
    whole = pattern if defense is None else of_one_defense(pattern)
    return study.path(whole, None, dataset=dataset, model=model, role=role, **own, **names)


def training_files(study: Study, dataset: str, model: str, role: str, defense: str | None = None) -> list[Path]:
    """Return the output files of a training: models, history and duration. ``role`` selects targets, or shadow or
    reference models, shared or of one defense.
    """
    if role == TARGET:
        names = {"dataset": dataset, "model": model, "defense": defense or "none"}
        return [study.path(pattern, None, **names) for pattern in (TRAINED, HISTORY, TIMES)]
    patterns = (AUXILIARY, AUXILIARY_HISTORY, AUXILIARY_TIMES)
    return [of_models(study, pattern, dataset, model, role, defense) for pattern in patterns]


def fitted(study: Study, dataset: str, model: str, attack: str, defense: str | None = None) -> Path:
    """Return the path of an attack's fit to shadow or reference models, if it has a separate step for that."""
    return of_models(study, FITTED, dataset, model, ATTACKS[attack].needs or "", defense, attack=attack)


def tuned_for(study: Study, cell: Cell) -> list[Path]:
    """Return the file with the cell's tuned learning rate; empty if the rate is given."""
    return [study.path(TUNED, cell)] if cell.rates else []


def learned_for(study: Study, dataset: str) -> list[Path]:
    """Return the network that computes a data set's features; empty if they are not learned."""
    projection = ProjectionSettings.read(study.spec["datasets"][dataset].get("projection"))
    return [study.path(FEATURES, dataset=dataset)] if projection.learns else []


def figure_files(study: Study, figure: str) -> dict[str, Path]:
    """Return form → file of a figure: of `PICTURE`, or of `TABLE`."""
    table = KINDS[study.spec["figures"][figure]["kind"]].table
    return {form: study.path(FIGURE, figure=figure, form=form) for form in (TABLE if table else PICTURE)}
