"""zhang2020's prints in our words: its distances carry the attack and the digit, its private accuracies a noise."""

from collections.abc import Mapping
from typing import Any

from dp_leakage.table.published import Names, by_names

ATTACKS = {"original_mia": "inversion_original", "enhanced_mia": "inversion_l1"}
MODELS = {"MNIST": "cnn", "Faces94": "softmax_regression"}
NAMES = Names(models={}, series={"none": ("none", "")}, n_members={"mnist": 60_000, "faces94": 29_070})


def placed(row: Mapping[str, Any], printed: Mapping[str, str]) -> list[dict[str, Any]]:
    """What a printed row is called here (`table.published`)."""
    attack = ATTACKS.get(printed.get("attack", ""), "")
    own: dict[str, Any] = {"model": MODELS[row["dataset"]], "attack": attack, "reason": _reason(row, attack)}
    if attack:
        own |= {"class": float(printed["class"]), "measure": printed["distance"]}
    return [place | own for place in by_names(row, printed, NAMES)]


def _reason(row: Mapping[str, Any], attack: str) -> str:
    if row["mechanism"] != "none":
        return "the paper does not say how many steps gave this accuracy, and no number fits its ε of all three σ"
    if attack and row["dataset"] == "Faces94":
        return "the paper does not say which six of its 153 people these are"
    return ""
