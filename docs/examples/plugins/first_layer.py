"""Attack: the gradient of the first unit of a fully connected layer, as a picture."""

from dp_leakage.attacks.reconstruction.outcome import outcome
from dp_leakage.attacks.reconstruction.released import released, victims

ATTACK = {
    "family": "gradient_reconstruction",
    "settings": {
        "images": {"$ref": "#/$defs/images"},
        "batch": {"$ref": "#/$defs/batch"},
        "candidates": {"$ref": "#/$defs/candidates"},
        "weights": {"$ref": "#/$defs/weights"},
    },
}


def score(target, data, fitted, settings, seed):
    """Shows the gradient of the first unit's weights for each image."""
    x, y = victims(data, settings["images"], "first_layer")
    rebuilt = []
    for seen in released(target, x, y, settings, seed, "first_layer"):
        weight = next(value for name, value in seen.gradients.items() if name.endswith(".weight"))
        rebuilt.append((seen, weight.flatten(1)[:, : x[0].numel()].sigmoid().reshape(x.shape)))
    return outcome(data, x, rebuilt, settings, target.mechanism)
