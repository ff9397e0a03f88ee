"""The attacks, by name. Importing this costs nothing: an attack's module is imported where it runs.

Most attacks read what models say, once asked and written down (``attacks.signals``). Their module defines
``score(target, learnt, settings, seed)`` → what is said of each model and record, by name (``signals.Scores`` for
membership). ``target`` are the `Signals` of the models under attack; ``learnt`` those of the shadow or reference models
that it ``needs``, or, where it ``learns``, what its ``fit(models, settings, seed)`` made of them, arrays by name, once
for all cells that share the models.

Others ask or take apart the models themselves: ``score(target, data, fitted, settings, seed)`` → the score file's
frame, or, in the families that make pictures, (frame, images: name → float32 array); ``fitted`` is None. The frame's
columns:

- ``attribute``: repeat, record, member, feature, truth, guess (bool), score: a row per model, record and feature;
- ``model_inversion``: repeat, target (the class), restart, distance (Euclidean), ssim, confidence;
- ``inversion``, ``reconstruction``: repeat, target (the picture), restart, and at least one of mse, mse_standardised,
  ssim, distance.

Pictures may have further columns (which layer, which penalty): numbers are judged apart for each of their values.

``settings`` are the entry's defaults with the study's values over them; ``seed`` is the same in all cells, so that what
an attack draws at random is too.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from dp_leakage.kinds import COUNT, FLAG, NOTHING, Kind, choice, either, listed, number, whole

Family = Literal["membership", "attribute", "model_inversion", "inversion", "reconstruction", "utility"]
Reads = Literal["signals", "probabilities", "features", "models"]
FAMILIES: tuple[str, ...] = get_args(Family)
READS: tuple[str, ...] = get_args(Reads)
ANSWERED = ("membership", "utility")  # families that read what models say, not the models
# Family → the columns of its scores and what they hold; inversion and reconstruction have their measures beside them.
_RECORD = {"repeat": "whole numbers", "record": "whole numbers", "member": "truth values"}
_REBUILT = {"repeat": "whole numbers", "target": "whole numbers", "restart": "whole numbers"}
COLUMNS: dict[str, dict[str, str]] = {
    "membership": {**_RECORD, "score": "numbers", "flagged": "truth values"},
    "attribute": {
        **_RECORD, "feature": "whole numbers", "truth": "truth values", "guess": "truth values", "score": "numbers",
    },
    "model_inversion": {**_REBUILT, "distance": "numbers", "ssim": "numbers", "confidence": "numbers"},
    "inversion": _REBUILT,
    "reconstruction": _REBUILT,
    "utility": {**_RECORD, "rank": "whole numbers"},
}  # fmt: skip
PICTURING = ("model_inversion", "inversion", "reconstruction")  # families whose scores come with pictures


@dataclass(frozen=True)
class Attack:
    """One line of the registry.

    Attributes:
        module: dotted name of the module that defines ``score`` (and ``fit``).
        family: what the attack finds out; ``utility`` attacks nothing: it says how well the model serves its users.
        needs: the auxiliary models that it compares with or learns from.
        settings: every setting that the attack knows, with its default; `SETTINGS` says what each may hold.
        roles: the data set's roles whose records it uses beside the target's.
        reads: what of the models: their ``signals``, these and the ``probabilities`` of all classes, these and the
            records' ``features``, or the ``models`` themselves.
        learns: whether it has a ``fit``.
        aware: whether its reference models train under the cell's own defense, where the study has such.
    """

    module: str
    family: Family
    needs: Literal["shadow", "reference"] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    roles: tuple[str, ...] = ()
    reads: Reads = "signals"
    learns: bool = False
    aware: bool = True


MEMBERSHIP = "dp_leakage.attacks.membership"
MIA = "dp_leakage.attacks.inversion.model_inversion"
SHOKRI = {
    "per_class": True, "hidden": [64, 64], "initialisation": "torch", "learning_rate": 0.01, "epochs": 100,
    "batch_size": 100,
}  # fmt: skip
# ``alpha`` is the level of an attack's own test, at which it flags: near the best advantage for weak and strong leaks.
LIRA = {"online": False, "variance": "fixed", "queries": 1, "alpha": 0.25}
RMIA = {
    "online": False, "a": "auto", "temperature": "auto", "fpr": 0.01, "gamma": 1.0, "queries": 1, "alpha": 0.25
}  # fmt: skip
TREES = {"rounds": 100, "leaves": 15, "learning_rate": 0.1, "alpha": 0.25}
# Model inversion: what is minimised over an image, and how (see the module).
INVERSION = {
    "loss": "probability",
    "box": "tanh",
    "gradient": "image",
    "penalties": [[["none", 0.0]]],
    "optimizer": "adam",
    "learning_rate": 0.1,
    "steps": 5000,
    "start": 0.0,
    "start_deviation": 0.0,
    "noise": 0.0,
    "shift": 0,
    "looks": 1,
    "restarts": 1,
    "told": "none",
}
DESCENT = INVERSION | {"box": "none", "optimizer": "sgd"}
TUNED = INVERSION | {
    "loss": "cross_entropy",
    "penalties": [
        [["l1", 0.01], ["btv", 0.001]],
        [["l1", 0.05]],
        [["l2", 0.06], ["smoothness", 0.1]],
        [["l2", 0.12], ["smoothness", 0.1]],
        [["l2", 0.2], ["smoothness", 0.2]],
    ],
    "learning_rate": 0.02,
    "steps": 400,
    "start": -1.0,
    "start_deviation": 0.3,
    "noise": 0.3,
    "shift": 2,
    "looks": 8,
    "restarts": 3,
}
SHOKRI_TREES = {"only_correct": True, "rounds": 100, "leaves": 31, "learning_rate": 0.1}
RECONSTRUCTION = "dp_leakage.attacks.reconstruction"
# ``weights``: whose gradient is seen, of a model at its start or of the trained target; each is measured apart.
DLG = {"images": 100, "weights": ["initial"], "steps": 1200, "memory": 20}
IGA = {"images": 100, "weights": ["initial"], "steps": 24_000, "step_size": 0.1, "total_variation": 0.2}
DECODER = {
    "train_records": None, "test_records": 1000, "epochs": 20, "batch_size": 100,
    "learning_rate": 1e-3, "width": 32, "spread": 1.0, "shown": 8,
}  # fmt: skip

POPULATION = ("reference_pool",)
LEARNING = (("shadow_pool",), "probabilities", True)  # how attacks learn from shadow models

# What model inversion can be penalised by (`regularisers` computes them).
PENALTIES = ("none", "l1", "l1_mean", "l2", "smoothness", "btv")
PENALTY = Kind(
    lambda v: isinstance(v, list) and len(v) == 2 and choice(*PENALTIES).holds(v[0]) and number(least=0).holds(v[1]),
    "[name, weight]",
)

# Setting → what it may hold, in every attack that has a setting of that name.
SETTINGS: dict[str, Kind] = {
    "a": either(choice("auto"), number(least=0, most=1)),
    "alpha": number(above=0, below=1),
    "batch_size": COUNT,
    "box": choice("tanh", "none"),
    "candidates": choice("quartiles", "distinct_quartiles"),
    "epochs": COUNT,
    "features": COUNT,
    "fpr": number(above=0, below=1),
    "gamma": number(above=0),
    "gradient": choice("image", "variable"),
    "hidden": listed(COUNT),
    "images": COUNT,
    "initialisation": choice("torch", "glorot"),
    "k_sub": whole(0),
    "learning_rate": number(above=0),
    "leaves": whole(2),
    "looks": COUNT,
    "loss": choice("probability", "cross_entropy"),
    "memory": COUNT,
    "noise": number(least=0),
    "online": FLAG,
    "only_correct": FLAG,
    "optimizer": choice("adam", "sgd"),
    "penalties": Kind(
        lambda v: isinstance(v, list) and v != [] and all(map(listed(PENALTY).holds, v)),
        f"a list of lists of [name, weight from 0 on], the name one of {', '.join(PENALTIES)}",
    ),
    "per_class": FLAG,
    "probability_floor": number(least=0, below=1),
    "queries": whole(1, 18),
    "restarts": COUNT,
    "rounds": COUNT,
    "shift": whole(0),
    "shown": COUNT,
    "spread": number(above=0),
    "start": number(),
    "start_deviation": number(least=0),
    "step_size": number(above=0),
    "steps": COUNT,
    "temperature": either(choice("auto"), number(above=0)),
    "test_records": COUNT,
    "told": choice("none", "euclidean", "ssim"),
    "total_variation": number(least=0),
    "train_records": either(NOTHING, COUNT),
    "variance": choice("fixed", "per_record"),
    "weights": listed(choice("initial", "trained")),
    "width": COUNT,
}


def _of_models(module: str, family: Family, settings: dict[str, Any], roles: tuple[str, ...] = ()) -> Attack:
    """An attack that takes the models themselves."""
    return Attack(module, family, None, settings, roles, "models")


ATTACKS = {
    "yeom": Attack(f"{MEMBERSHIP}.yeom", "membership", None, {"probability_floor": 0.0}),
    "shokri": Attack(f"{MEMBERSHIP}.shokri", "membership", "shadow", SHOKRI, *LEARNING),
    "shokri_trees": Attack(f"{MEMBERSHIP}.shokri_trees", "membership", "shadow", SHOKRI_TREES, *LEARNING),
    "lira": Attack(f"{MEMBERSHIP}.lira", "membership", "reference", LIRA),
    "lira_online": Attack(f"{MEMBERSHIP}.lira", "membership", "reference", LIRA | {"online": True}),
    "rmia": Attack(f"{MEMBERSHIP}.rmia", "membership", "reference", RMIA, POPULATION),
    "rmia_online": Attack(f"{MEMBERSHIP}.rmia", "membership", "reference", RMIA | {"online": True}, POPULATION),
    # The same by an attacker who does not know the defense: the references are undefended models.
    "lira_unaware": Attack(f"{MEMBERSHIP}.lira", "membership", "reference", LIRA | {"online": True}, aware=False),
    "rmia_unaware": Attack(
        f"{MEMBERSHIP}.rmia", "membership", "reference", RMIA | {"online": True}, POPULATION, aware=False
    ),
    "attack_p": Attack(f"{MEMBERSHIP}.attack_p", "membership", None, {"alpha": 0.25}, POPULATION),
    "attack_r": Attack(f"{MEMBERSHIP}.attack_r", "membership", "reference", {"queries": 1, "alpha": 0.25}),
    "quantile_regression": Attack(
        f"{MEMBERSHIP}.quantile_regression", "membership", None, TREES, POPULATION, "features"
    ),
    "yeom_attribute": _of_models(
        "dp_leakage.attacks.attribute", "attribute", {"features": 5, "candidates": "quartiles"}
    ),
    # As Fredrikson et al. (2015) have it; zhang2020's algorithm without a penalty; and its two enhanced attacks with
    # the printed settings, the ℓ1 norm as a mean over pixels or, as its formula says, a sum.
    "inversion_original": _of_models(MIA, "model_inversion", DESCENT | {"learning_rate": 10.0}),
    "inversion_original_slow": _of_models(MIA, "model_inversion", DESCENT),
    "inversion_unpenalised": _of_models(MIA, "model_inversion", INVERSION),
    "inversion_l1": _of_models(MIA, "model_inversion", INVERSION | {"penalties": [[["l1_mean", 0.05]]]}),
    "inversion_l1_sum": _of_models(MIA, "model_inversion", INVERSION | {"penalties": [[["l1", 0.05]]]}),
    "inversion_btv": _of_models(
        MIA, "model_inversion", INVERSION | {"penalties": [[["btv", 0.001]]], "learning_rate": 0.05, "steps": 100}
    ),
    # Stronger: restarts, a loss that does not vanish, pictures that must stand noise and shifts, and the penalty that
    # does best by a distance of the paper.
    "inversion_tuned_euclidean": _of_models(MIA, "model_inversion", TUNED | {"told": "euclidean"}),
    "inversion_tuned_ssim": _of_models(MIA, "model_inversion", TUNED | {"told": "ssim"}),
    # No attack: how far from the training images are pictures that nobody needs a model for.
    "inversion_controls": _of_models("dp_leakage.attacks.inversion.controls", "model_inversion", {"k_sub": 0}),
    "ranks": Attack("dp_leakage.attacks.ranks", "utility"),
    "dlg": _of_models(f"{RECONSTRUCTION}.dlg", "reconstruction", DLG),
    "iga": _of_models(f"{RECONSTRUCTION}.iga", "reconstruction", IGA),
    "decoder": _of_models("dp_leakage.attacks.inversion.decoder", "inversion", DECODER, ("shadow_pool",)),
}
