"""The registry of figure kinds: one line each; a kind's module is imported only when it is drawn.

A figure of a study is a kind with settings. Its module has one public function,

    draw(metrics: DataFrame, settings: dict, published: DataFrame | None) -> (matplotlib Figure, DataFrame)

and does nothing with files. ``metrics`` holds one row per number of every cell that the figure covers (`frames`
names the columns), ``published`` the paper's printed results as they lie in ``workflow/published/``. The DataFrame that
comes back holds exactly the numbers drawn, with the columns ``metric``, ``setting``, ``measured``, ``low``, ``high``,
``published`` and ``inside`` (does the print lie in our interval) beside those that the axes and series come from.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from dp_leakage.errors import UserError, nearest
from dp_leakage.kinds import COUNT, FLAG, NOTHING, SEED, TEXT, TEXTS, Kind, choice, either, like, listed, number, whole
from dp_leakage.user_code import call

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


Needs = Literal["metrics", "training", "scores", "images", "timing"]


@dataclass(frozen=True)
class FigureKind:
    """What a study and the report need to know of a kind without importing it.

    Attributes:
        module: import path of the module that has ``draw``.
        caption: what is shown and how to read it, for the report.
        settings: the kind's own settings with their defaults; ``COMMON`` settings come on top. `SETTINGS` says what
            each may hold.
        needs: what the first argument of ``draw`` holds: ``metrics`` (metrics.parquet of the cells), ``training``
            (training.parquet of the cells), ``scores`` (score files of the membership attacks, with a column
            ``attack``) or ``timing`` (how long epochs take), each with the cell's columns beside; or ``images``: a list
            of (the cell's columns, attack, name → array) in place of the frame, one for each attack on each cell.
        proven: whether the frame also holds the rows ``tpr_proven``, ``advantage_proven`` and ``mu`` of private cells.
    """

    module: str
    caption: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    needs: Needs = "metrics"
    proven: bool = False


LAYERS = ("conv1", "maxpool1", "conv2", "maxpool2", "conv3", "maxpool3", "dense", "prediction")  # of the CNN

# Every kind has these: which cells (None: all; a name or a list of names), a title, footnotes of the study's own.
COMMON: Mapping[str, Any] = {"dataset": None, "model": None, "unit": None, "title": None, "notes": ()}

_NAMES = either(NOTHING, TEXT, TEXTS)
# Setting → what it may hold, in every kind that has a setting of that name; KIND.SETTING where one kind differs.
PUBLISHED_BOUNDS = Kind(
    lambda v: (
        isinstance(v, list | tuple) and all(isinstance(e, dict) and {*e} == {"label", "epsilon", "bound"} for e in v)
    ),
    "a list of published bounds, each with label, epsilon and bound",
)
SETTINGS: dict[str, Kind] = {
    "across": choice("epsilon_spent", "k_sub"),
    "against": TEXT,
    "attack": either(NOTHING, TEXT),
    "attacks": TEXTS,
    "best": FLAG,
    "bugs": FLAG,
    "best_of": TEXTS,
    "classes": either(COUNT, listed(SEED)),
    "compare": FLAG,
    "count": whole(1),
    "counting": choice("mean", "all_runs"),
    "dataset": _NAMES,
    "defense": _NAMES,
    "definition": choice("gap", "released"),
    "exposed_by": either(NOTHING, TEXT),
    "fpr": listed(number(above=0, below=1)),
    "image": whole(0),
    "layer": TEXT,
    "layers": TEXTS,
    "literature": PUBLISHED_BOUNDS,
    "measure": choice("euclidean", "1-ssim"),
    "metric": choice("accuracy_loss", "test_accuracy", "train_accuracy", "leakage"),
    "metrics": TEXTS,
    "point": FLAG,
    "accuracy_proven.fpr": either(NOTHING, number(above=0, below=1)),
    "accuracy_proven.metric": TEXT,
    "risk_table.fpr": choice(0.01, 0.001),
    "leakage.fpr": either(NOTHING, choice(0.01, 0.001)),
    "spent_axis.metric": either(TEXT, TEXTS),
    "model": _NAMES,
    "neighbours": either(NOTHING, choice("add_remove", "zero_out", "replace_one")),
    "normalised": FLAG,
    "notes": either(TEXT, TEXTS),
    "of": TEXT,
    "paired_table.fpr": either(NOTHING, number(above=0, below=1)),
    "pictures.attack": _NAMES,
    "roc.attack": _NAMES,
    "stretch": FLAG,
    "threshold": choice("best", "own"),
    "title": either(NOTHING, TEXT),
    "unit": _NAMES,
    "wanted": like({}),
    "vulnerability.fpr": number(above=0, below=1),
    "width": number(above=0),
    "y_max": either(NOTHING, number(above=0)),
}

FIGURES: dict[str, FigureKind] = {
    "accuracy_loss": FigureKind(
        "dp_leakage.figures.accuracy_loss",
        "What the privacy budget costs in accuracy. Left: a small ε, strong protection; right: a large ε, weak "
        "protection; far right: trained without differential privacy. A loss of 0 is the accuracy of the "
        "undefended model, 1 is no use at all.",
        {"normalised": True, "y_max": None},
    ),
    "leakage": FigureKind(
        "dp_leakage.figures.leakage",
        "What an attacker learns. The advantage is the share of true hits less the share of false alarms: 0 is "
        "guessing, 1 is certainty. The dashed lines are the most that any attack can reach, as the noise of each "
        "training proves; a measured point is what this attack reached, not the most that any could.",
        {"attack": None, "definition": "gap", "threshold": "best", "fpr": None, "point": False, "y_max": None},
        proven=True,
    ),
    "risk_table": FigureKind(
        "dp_leakage.figures.risk_table",
        "What an accusation is worth. Of ten people whom the best measured attack accuses, so many were really in the "
        "training data; and no attack whatsoever can be right about more than the noise allows. The rarer members are "
        "among those asked about, the less an accusation says.",
        {"fpr": 0.01},
        proven=True,
    ),
    "accuracy_proven": FigureKind(
        "dp_leakage.figures.accuracy_proven",
        "What each degree of proven protection costs in accuracy. Across is the most that any attack can reach, "
        "whatever the mechanism: an ε means something else for each of them, this does not. Best is top left: accurate "
        "and surely safe.",
        {"metric": "test_accuracy", "fpr": None, "y_max": None},
        proven=True,
    ),
    "spent_epsilon": FigureKind(
        "dp_leakage.figures.spent_epsilon",
        "Claimed and spent. Each panel is one way of choosing the noise; across is the ε that it claims, upward "
        "the ε that each accountant finds for the very same training. On the grey line the claim is exact; below "
        "it the training was more private than claimed, above it less.",
        {"neighbours": None},
    ),
    "spent_axis": FigureKind(
        "dp_leakage.figures.spent_axis",
        "The same measurements over the ε that was really spent: the smallest that a valid accountant proves for "
        "the training as it was done. Series that lie apart over the claimed ε and together here differed in "
        "book-keeping only.",
        {
            "metric": "accuracy_loss",
            "attack": "yeom",
            "definition": "gap",
            "threshold": "best",
            "neighbours": None,
            "y_max": None,
        },
    ),
    "collapse": FigureKind(
        "dp_leakage.figures.collapse",
        "The same measurements over the noise itself (σ, relative to the clipping norm). Where all series fall on"
        " one curve, the noise alone decides, and the name of the privacy definition only says how much of it was"
        " added.",
        {"attack": "yeom", "definition": "gap", "threshold": "best"},
    ),
    "vulnerability": FigureKind(
        "dp_leakage.figures.vulnerability",
        "Who is exposed. An attacker who is wrong about 1 % of the records that were not in training (or as the figure "
        "says) names those that were. Across: the share of the repeats that it was in, in which a record "
        "is named. Upward: the share of records named at least so often. Grey: the same in the repeats that the "
        "records were not in, under all these defences; one that protects everybody lies in there.",
        {"attack": None, "fpr": 0.01},
        needs="scores",
    ),
    "pareto": FigureKind(
        "dp_leakage.figures.pareto",
        "Use against leakage, one point per defence and budget; the number beside a point is its ε. Best is "
        "bottom right: accurate and leaking nothing. Leakage is what the strongest attack on each model reaches. The "
        "grey line joins the points that no other beats in both as measured. A pale point is surely beaten: another "
        "is both more accurate and less leaky, and their intervals are apart in both.",
        {"attack": None},
    ),
    "kinds_of_models": FigureKind(
        "dp_leakage.figures.kinds_of_models",
        "Use against leakage of different kinds of models: open marks are undefended models, filled ones private "
        "models of the same kind, with the ε that is claimed for them. Best is bottom right: accurate and leaking "
        "nothing. Leakage is what the strongest attack on each model reaches.",
        {"attack": None},
    ),
    "roc": FigureKind(
        "dp_leakage.figures.roc",
        "How many members each attack names at each rate of false alarms, both on logarithmic axes: what counts is the "
        "left end, where an attacker accuses hardly anyone wrongly. On the grey diagonal are guesses. No attack can be "
        "above the black line: the noise proves it. A red cross above it would be the proof of an error.",
        {"attack": None, "fpr": (0.01, 0.001)},
        needs="scores",
        proven=True,
    ),
    "paired_table": FigureKind(
        "dp_leakage.figures.paired_table",
        "What each defence takes from each attack, compared on the same records: an interval below 0 says that the "
        "defence helps against this attack, beyond the luck of records and trainings.",
        {"attacks": (), "against": "none", "fpr": None},
        needs="scores",
    ),
    "matrix": FigureKind(
        "dp_leakage.figures.matrix",
        "Every defence against every attack. The number is the attack's advantage, 0 for guessing and 1 for certainty; "
        "bold where its 95 % interval lies above 0.",
        {"definition": "gap", "threshold": "best"},
    ),
    "claimed_measured": FigureKind(
        "dp_leakage.figures.claimed_measured",
        "The ε that each defence claims, the one that its training spent, and the one that an audit proves at least. "
        "A measured bound right of the spent ε would be the proof of an error.",
    ),
    "proved": FigureKind(
        "dp_leakage.figures.proved",
        "What each audit proves of the ε that is claimed: 1 is all of it, and more would prove an error. A tick "
        "is the most that the design could have shown with perfect scores.",
        {"literature": (), "bugs": False},
    ),
    "members_exposed": FigureKind(
        "dp_leakage.figures.members_exposed",
        "How many members of the training data an attacker names who accepts 1, 2 or 5 false alarms per 100 "
        "outsiders. An attacker who guesses names as many by chance as the last line says; only what lies above "
        "it is leakage.",
        {"attack": "yeom", "fpr": (0.01, 0.02, 0.05)},
    ),
    "results_table": FigureKind(
        "dp_leakage.figures.results_table",
        "Every mechanism and budget in numbers, beside the paper's where it prints them. A tick says that the "
        "printed value lies inside our 95 % interval, a cross that it does not.",
        {
            "attacks": ("yeom", "shokri", "yeom_attribute"),
            "exposed_by": "yeom",
            "definition": "released",
            "counting": "all_runs",
            "fpr": (0.01, 0.02, 0.05),
        },
    ),
    "baseline_table": FigureKind(
        "dp_leakage.figures.baseline_table",
        "Accuracy of the models trained without differential privacy, on the records they were trained on and on "
        "new ones. The wider the gap, the more they remember single records.",
    ),
    "lambda_search": FigureKind(
        "dp_leakage.figures.lambda_search",
        "Accuracy against the strength λ of the ℓ2 penalty. The ringed value has the highest accuracy on new records.",
    ),
    "training_curve": FigureKind(
        "dp_leakage.figures.training_curve",
        "Accuracy as the training goes on, on the records trained on (dashed) and on new ones (solid), and the ε "
        "spent so far.",
        {"defense": None, "best": False},
        needs="training",
    ),
    "inverted": FigureKind(
        "dp_leakage.figures.inverted",
        "What model inversion makes of each class. In the first row the training images that come nearest to the "
        "pictures below them. A picture that shows nothing may still be near to a thin digit: hold the numbers against "
        "those of a black image.",
        {"classes": 10, "attack": None, "measure": "euclidean", "width": 0.55, "stretch": False},
        needs="images",
    ),
    "subclasses": FigureKind(
        "dp_leakage.figures.subclasses",
        "What the subclasses are that subclass-level privacy protects as a whole: records of a class that look alike.",
        {"classes": [4, 9]},
        needs="images",
    ),
    "mia_distance": FigureKind(
        "dp_leakage.figures.mia_distance",
        "How near inverted images come to the training images of each class, under defences with the same accuracy. "
        "Higher is more robust, but only down to what pictures reach that show nothing: the grey lines are a black "
        "image.",
        {"attack": "inversion_l1", "measure": "euclidean"},
    ),
    "mia_budget": FigureKind(
        "dp_leakage.figures.mia_budget",
        "What accuracy, and how far from the training images the inverted ones stay. A measure of protection should "
        "rise as ε falls; grey lines are pictures that need no model.",
        {"attack": "inversion_l1", "measure": "euclidean", "across": "epsilon_spent"},
    ),
    "mia_table": FigureKind(
        "dp_leakage.figures.mia_table",
        "How near each attack on the undefended model comes to the training images of each class, beside pictures that "
        "need no model.",
        {"attacks": ["inversion_original", "inversion_l1"], "measure": "euclidean", "classes": 10},
    ),
    "mia_cells": FigureKind(
        "dp_leakage.figures.mia_cells",
        "Every defence in numbers: what it costs, what it proves, how far the attacks get, and whether they found at "
        "least something that the model takes for the class.",
        {"attacks": ["inversion_l1"], "measure": "euclidean"},
    ),
    "calibrate_accuracy": FigureKind(
        "dp_leakage.figures.calibrate_accuracy",
        "How much noise each kind of privacy bears at the same accuracy: the σ to compare models at.",
        {"wanted": {}},
    ),
    "accountants": FigureKind(
        "dp_leakage.figures.accountants",
        "The ε of the same training as three accountants count it, epoch by epoch. The training does not change; what "
        "a looser account claims to have spent was never spent.",
    ),
    "projection_noise": FigureKind(
        "dp_leakage.figures.projection_noise",
        "What it costs to find the principal components privately: accuracy over the noise of the private PCA, beside "
        "a PCA without privacy and no PCA at all.",
        {"metric": "test_accuracy"},
    ),
    "compared_table": FigureKind(
        "dp_leakage.figures.compared_table",
        "Every defence and budget in numbers, each beside the paper's where it prints one. A tick says that the "
        "printed value lies inside our 95 % interval, a cross that it does not.",
        {"metrics": ("test_accuracy",), "best_of": (), "compare": True},
    ),
    "difference_table": FigureKind(
        "dp_leakage.figures.difference_table",
        "What one mechanism has over another at the same nominal budget. Positive: the first has more of it.",
        {"metrics": (), "of": "vmf", "against": "gaussian"},
    ),
    "pictures": FigureKind(
        "dp_leakage.figures.pictures",
        "Images and what an attacker rebuilt of them. Where a row shows what the first row shows, the defence of that "
        "row has not hidden it.",
        {"attack": None, "count": 8, "width": 0.62},
        needs="images",
    ),
    "timing_table": FigureKind(
        "dp_leakage.figures.timing_table",
        "How long an epoch takes under every defence, measured in turns in one process, beside Opacus' per-example "
        "gradients and plain PyTorch.",
        needs="timing",
    ),
    "decoded_layers": FigureKind(
        "dp_leakage.figures.decoded_layers",
        "How well a decoder network rebuilds unseen images from what each layer of the undefended model makes of them. "
        "The deeper the layer, the less is left of the image.",
        {"attack": "decoder", "layers": LAYERS},
    ),
    "decoded_table": FigureKind(
        "dp_leakage.figures.decoded_table",
        "How much a defence changes the error with which images are rebuilt from each layer. A defence of the training "
        "records does not promise to hide what the model is asked about.",
        {"attack": "decoder", "layers": LAYERS},
    ),
    "decoded_pictures": FigureKind(
        "dp_leakage.figures.decoded_pictures",
        "One image as a decoder rebuilds it from each layer of each model; further right less is left of it.",
        {"attack": "decoder", "layers": LAYERS, "image": 0},
        needs="images",
    ),
    "tradeoff": FigureKind(
        "dp_leakage.figures.tradeoff",
        "What each defence costs in accuracy and what it changes for two attackers: one that rebuilds inputs from the "
        "prediction, one that tells members.",
        {"attack": "decoder", "layer": "prediction"},
    ),
}


def resolve(kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """A kind's settings with its defaults filled in.

    Raises:
        UserError: no such kind, or a setting that the kind does not have.
    """
    if kind not in FIGURES:
        raise UserError(f"figure kind '{kind}' does not exist: {nearest(kind, FIGURES)}")
    defaults = {**COMMON, **FIGURES[kind].settings}
    for key in settings:
        if key not in defaults:
            raise UserError(f"figure kind '{kind}' has no setting '{key}': {nearest(key, defaults)}")
    return {**defaults, **settings}


def draw(
    kind: str, metrics: "DataFrame", settings: Mapping[str, Any], published: "DataFrame | None" = None
) -> "tuple[Figure, DataFrame]":
    """Draws one figure: (picture, exactly the numbers in it). Raises UserError as `resolve` and the kind do."""
    resolved = resolve(kind, settings)
    return drawn_by(FIGURES[kind].module, metrics, resolved, published)


def drawn_by(
    module: str, metrics: "DataFrame", settings: Mapping[str, Any], published: "DataFrame | None"
) -> "tuple[Figure, DataFrame]":
    """What a module's ``draw`` returns. Raises UserError where a plugin raises, or returns something else."""
    from matplotlib.figure import Figure
    from pandas import DataFrame

    made = call(module, "draw", metrics, settings, published)
    parts = made if isinstance(made, tuple) else (made,)
    if len(parts) != 2 or not isinstance(parts[0], Figure) or not isinstance(parts[1], DataFrame):
        shown = ", ".join(type(part).__name__ for part in parts)
        raise UserError(f"plugin {module}: draw returns ({shown}); valid is (matplotlib Figure, pandas DataFrame)")
    return made
