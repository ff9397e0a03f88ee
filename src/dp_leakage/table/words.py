"""Names for readers."""

from dp_leakage.attacks import ATTACKS
from dp_leakage.privacy.mechanisms import MECHANISMS

NAMES = {
    "softmax_regression": "softmax regression",
    "mlp": "MLP",
    "lenet": "LeNet",
    "cnn": "CNN",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "purchase100": "Purchase-100",
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "lfw": "LFW",
    "faces94": "Faces94",
    "strongest": "strongest attack",
    "class_moments": "class moments",
    "theorem1": "Theorem 1",
    "mia_distance": "MIA distance",
    "vmf": "VMF",
    "gaussian": "Gaussian",
    "fashion_mnist_r": "Fashion-MNIST (split of MIA-R)",
    "cifar10_r": "CIFAR-10 (split of MIA-R)",
    "fashion_mnist_shokri": "Fashion-MNIST (split of Shokri's attack)",
    "cifar10_shokri": "CIFAR-10 (split of Shokri's attack)",
    "naive": "naive composition",
    "advanced": "advanced composition",
    "zcdp": "zCDP",
    "rdp": "RDP",
    "pld": "PLD",
    "gdp": "GDP",
    "banded_pld": "banded PLD",
    "vmf_pure": "VMF pure",
    "vmf_rdp": "VMF RDP",
    "vmf_pld": "VMF PLD",
    "add_remove": "add/remove",
    "replace_one": "replace-one",
    "zero_out": "zero-out",
}
WORDS = {
    "accuracy_loss": "accuracy loss (fraction of\nthe non-private accuracy)",
    "test_accuracy": "test accuracy (fraction right)",
    "utility_loss": "loss of use (fraction of\nthe non-private model's use)",
    "test_utility": "use on new records",
    "train_accuracy": "training accuracy (fraction right)",
    "mia_distance": "MIA distance to the class's\nnearest training image",
    "membership_auc": "area under the attack's ROC\n(0.5 is guessing)",
    "reached_advantage": "advantage of the attacker\n(true − false positive rate)",
    "reached_tpr": "members that the attacker identifies\n(true positive rate)",
    "membership_advantage": "advantage of the attack's own decision\n(true − false positive rate)",
    "attribute_advantage": "attack advantage\n(difference of rates)",
    "attribute_added": "right guesses of an attribute,\nminus right guesses without the model",
}


def name(identifier: str) -> str:
    """Return a readable name: ``softmax_regression`` → softmax regression, ``cifar100`` → CIFAR-100.

    A longer name may have a known beginning: ``cifar100_small`` → CIFAR-100 small. An attack has the label that it
    declares.
    """
    parts = identifier.split("_")
    for known in range(len(parts), 0, -1):
        first = "_".join(parts[:known])
        if label := NAMES.get(first) or (ATTACKS[first].label if first in ATTACKS else ""):
            return " ".join([label, *parts[known:]])
    return " ".join(parts)


def mechanism_name(mechanism: str) -> str:
    """As `name` for a mechanism; a model or data set may be called ``tree`` without being one."""
    if mechanism not in NAMES and mechanism in MECHANISMS:
        return MECHANISMS[mechanism].label
    return name(mechanism)


def metric_words(metric: str) -> str:
    """Return the axis label of a metric: its name and its unit."""
    return WORDS.get(metric, name(metric))


def called(by: str, group: str) -> str:
    """Return the readable name of a group: ``class benign``, ``age: over 45``, ``occurs once``."""
    if by == "duplicates":
        return f"occurs {group}"
    return f"{by} {group}" if by == "class" else f"{by}: {group}"
