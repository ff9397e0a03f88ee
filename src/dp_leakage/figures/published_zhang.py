"""zhang2020's prints in our words: its distances carry the attack and the digit, its private accuracies a noise."""

from collections.abc import Mapping
from typing import Any

ATTACKS = {"original_mia": "inversion_original", "enhanced_mia": "inversion_l1"}
MODELS = {"MNIST": "cnn", "Faces94": "softmax_regression"}


def placed(row: Mapping[str, Any], printed: Mapping[str, str]) -> dict[str, Any]:
    """What a printed row is called here: the columns of `published.map_published` that this paper decides.

    Args:
        row: one row of ``workflow/published/zhang2020.csv``.
        printed: its setting, key → value.
    """
    attack, plain = ATTACKS.get(printed.get("attack", ""), ""), row["mechanism"] == "none"
    return {
        "model": MODELS[row["dataset"]],
        "mechanism": "none" if plain else "",
        "setting": f"attack={attack};class={printed['class']};measure={printed['distance']}" if attack else "",
        "reason": _reason(row, attack, plain),
    }


def _reason(row: Mapping[str, Any], attack: str, plain: bool) -> str:
    if not plain:
        return "the paper does not say how many steps gave this accuracy, and no number fits its ε of all three σ"
    if attack and row["dataset"] == "Faces94":
        return "the paper does not say which six of its 153 people these are"
    return ""
