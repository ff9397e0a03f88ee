"""What a study, a config or a figure is refused for: python tests/refusals.py > tests/refusals.md

The page has every case with the sentence that it gets. A change of wording shows there, in one place.
"""

import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir
from copy import deepcopy
from functools import cache, partial
from pathlib import Path

import yaml
from loading import CONFIG, PRIVATE_PCA, QUICKSTART, REPO, gaussian, load, projected, visits

from dp_leakage.common.config import merged
from dp_leakage.common.errors import UserError
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.figures import draw, enter
from dp_leakage.study.file import load_studies

sys.path.append(str(REPO / "tests" / "figures"))
import synthetic


def _audited(**design):
    return {"audit": {"designs": {"a": {"design": "one_run", "models": 8, "beyond_reach": "mark"} | design}}}


def _entry(defense, **entry):
    return {"defenses": [{"defense": "none"}, {"defense": defense, **entry}]}


NO_SHADOW = {"shadow": {"pool": ["reference_pool"]}}
# Case → changes to the quickstart.
STUDIES = {
    "unknown key": {"epsilons": [1]},
    "unknown nested key": {"training": {"epoch": 3}},
    "text for a number": {"delta": "1e-5"},
    "wrong type": {"repeats": "three"},
    "number in quotes": {"repeats": "3"},
    "model with a name that is no part of a path": {"models": {"a/b": {"architecture": {"name": "mlp"}}}},
    "data set with a name in capital letters": {"datasets": {"Müller": {"source": "digits"}}},
    "figure with a blank in its name": {"figures": {"fig pareto": {"kind": "pareto", "title": "A"}}},
    "repeats that are not a planned look": {"repeats": 12, "looks": [8, 16, 32]},
    "looks that do not ascend": {"repeats": 16, "looks": [16, 16]},
    "four looks": {"repeats": 16, "looks": [4, 8, 16, 32]},
    "negative epsilon": {"epsilon": [1, -2]},
    "measure of use that there is not": {"utility": "auc"},
    "subclass without number": {
        "defenses": [{"defense": "none"}, {"defense": "subclass", "accountant": "class_moments"}]
    },
    "more subclasses than members": {
        "defenses": [{"defense": "none"}, {"defense": "subclass", "k_sub": 201, "accountant": "class_moments"}]
    },
    "partition of classes": {
        "defenses": [{"defense": "none"}, {"defense": "class", "k_sub": 3, "accountant": "class_moments"}]
    },
    "noise of directions": {
        "defenses": [{"defense": "none"}, {"defense": "vmf", "accountant": "vmf_rdp", "noise_multiplier": [1]}]
    },
    "strength of nothing": {"defenses": [{"defense": "none", "l2": 0.1}]},
    "dropout of nothing": {"defenses": [{"defense": "none", "dropout": 0.5}]},
    "dropout beside l2": _entry("l2", l2=0.1, dropout=0.5),
    "dropout beside noise": gaussian(accountant="rdp", dropout=0.5),
    "block of a clipped gradient": gaussian(accountant="rdp", block="row"),
    "several strengths beside noise": gaussian(accountant="rdp", l2=[0.1, 0.2]),
    "classes by another name": gaussian(accountant="class_moments", unit="class"),
    "persons, whom another defense protects": gaussian(accountant="rdp", unit="person"),
    "a whole batch, counted once": gaussian(accountant="zcdp", unit="batch"),
    "a table for another training": gaussian(accountant="rdp", epsilon=[1], rdp_sigma="authors_table"),
    "source of σ for another accountant": gaussian(accountant="zcdp", rdp_sigma="calibrated_classic"),
    "source of σ that is given": gaussian(accountant="rdp", noise_multiplier=[1], rdp_sigma="calibrated_classic"),
    "accountant of other noise": _entry("vmf", accountant="rdp"),
    "accountant of other noise, owned up to": _entry(
        "gaussian", accountant="vmf_rdp", accounting_note="as the paper does"
    ),
    "directions that are clipped": _entry("vmf", accountant="vmf_rdp", bound="clip"),
    "classes under an accountant of records": _entry("class", accountant="rdp"),
    "whole classes drawn for single records": gaussian(accountant="class_moments"),
    "dropout in a module of the user's": {
        "models": {"mlp": {"engine": "opacus", "architecture": {"name": "nets:Net", "hidden": None}}},
        **_entry("dropout", dropout=0.5),
    },
    "unknown canary": _audited(canary="natura"),
    "no epsilon": {"epsilon": []},
    "epsilon twice": {"epsilon": [1, 1.0]},
    "images for a model of vectors": {"models": {"mlp": {"architecture": {"name": "lenet", "hidden": None}}}},
    "more features than components": {"attacks": {"yeom_attribute": {"features": 500}}},
    "delta of a published record": {"delta": 0.01},
    "delta out of range": {"delta": 1.5},
    "zero repeats": {"repeats": 0},
    "unknown optimizer": {"training": {"optimizer": "adm"}},
    "unknown source": {"datasets": {"digits": {"source": "digit"}}},
    "unknown role": {"datasets": {"digits": {"roles": {"members": 3}}}},
    "unknown architecture": {"models": {"mlp": {"architecture": {"name": "mlpp"}}}},
    "a way to combine what nobody has": {"attacks": {"yeom": {"of_person": "max"}}},
    "more images than members": {"attacks": {"iga": {"images": 300}}},
    "batches that leave images over": {"attacks": {"iga": {"images": 10, "batch": [5, 3]}}},
    "more candidates than members": {"attacks": {"iga": {"images": 10, "candidates": 192}}},
    "gradients of no model": {"attacks": {"iga": {"weights": []}}},
    "gradients of a model twice": {"attacks": {"iga": {"weights": ["initial", "initial"]}}},
    "unknown attack": {"attacks": {"yeoman": {}}},
    "unknown attack setting": {"attacks": {"shokri": {"epoch": 3}}},
    "attack setting of another type": {"attacks": {"shokri": {"epochs": "x"}}},
    "no models for an attack": {"shadow": None},
    "private projection with an accountant that cannot compose it": {
        "datasets": {"digits": {"projection": PRIVATE_PCA}},
        **gaussian(accountant="zcdp", epsilon=[8]),
    },
    "private projection that alone spends the budget": {
        "datasets": {"digits": {"projection": PRIVATE_PCA}},
        **gaussian(accountant="rdp", epsilon=[0.1]),
    },
    "unknown accountant": gaussian(accountant="rpd"),
    "no accountant": gaussian(),
    "sampler against accountant": gaussian(accountant="rdp", sampler="shuffle"),
    "epsilon and sigma": gaussian(accountant="rdp", epsilon=[1], noise_multiplier=[1]),
    "epsilon and target": gaussian(accountant="rdp", epsilon=[1], target={"advantage": 0.1}),
    "target of nothing": gaussian(accountant="rdp", target={"advantage": 1.5}),
    "target of no measure": gaussian(accountant="rdp", target={"mu": 1}),
    "target twice": gaussian(accountant="rdp", target=[{"advantage": 0.1}, {"advantage": 0.1}]),
    "target that the noise does not limit": {
        "defenses": [
            {"defense": "none"},
            {
                "defense": "class",
                "accountant": "rdp",
                "sampler": "poisson",
                "accounting_note": "as it is",
                "target": {"advantage": 0.1},
            },
        ]
    },
    "no baseline": {"defenses": [{"defense": "l2", "l2": 0.1}]},
    "l2 without strength": {"defenses": [{"defense": "none"}, {"defense": "l2"}]},
    "noise for no defense": {"defenses": [{"defense": "none"}, {"defense": "dropout", "dropout": 0.5, "clip_norm": 1}]},
    "same cell twice": {"defenses": [{"defense": "none"}, {"defense": "none"}]},
    "batch larger than the data": {"training": {"batch_size": 201}},
    "more bands than an epoch has steps": _entry("banded", accountant="banded_gdp", bands=100),
    "more bands than an epoch of the trials of learning rates has": {
        "datasets": {"digits": {"roles": {"tuning": 200}}},
        "tune": {"learning_rate": [0.01]},
        **_entry("banded", accountant="banded_gdp", bands=4),
    },
    "bands that outlast their horizon": _entry("banded_optimal", accountant="banded_gdp", bands=4, horizon=2),
    "shadow size": {"shadow": {"size": 9999}},
    "unknown figure kind": {"figures": {"f": {"kind": "leak"}}},
    "unknown figure part": {"figures": {"f": {"kind": "leakage", "parts": ["yoem"]}}},
    "unknown figure setting": {"figures": {"f": {"kind": "leakage", "settings": {"atack": "yeom"}}}},
    "figure of nothing": {"figures": {"f": {"kind": "leakage", "select": {"epsilon": [1], "mechanism": ["none"]}}}},
    "figure of a value that no cell has": {"figures": {"f": {"kind": "leakage", "select": {"epsilon": [1, 77]}}}},
    "figure of a misspelt data set": {
        "figures": {"f": {"kind": "leakage", "select": {"dataset": ["digits", "digit"]}}}
    },
    "figure of a column that no cell has": {"figures": {"f": {"kind": "leakage", "select": {"data": ["digits"]}}}},
    "figure setting of another type": {"figures": {"f": {"kind": "leakage", "settings": {"y_max": "big"}}}},
    "figure of an attack that the study lacks": {"figures": {"f": {"kind": "leakage", "settings": {"attack": "yoem"}}}},
    "figure of an attack that is not among its parts": {
        "figures": {"f": {"kind": "leakage", "parts": ["training"], "settings": {"attack": "yeom"}}}
    },
    "figure definition": {"figures": {"f": {"kind": "leakage", "settings": {"definition": "relased"}}}},
    "figure of nothing that is measured": {"figures": {"f": {"kind": "roc", "parts": ["training"]}}},
    "missing print": {"published": "nope.csv"},
    "no number": {"epsilon": [1, float("nan")]},
    "infinite": {"training": {"learning_rate": float("inf")}},
    "three point nought runs": {"repeats": 3.0},
    "unknown key of a model's training": {"models": {"mlp": {"training": {"epoch": 3}}}},
    "text in a model's training": {"models": {"mlp": {"training": {"epochs": "many"}}}},
    "momentum of Adam": {"models": {"mlp": {"training": {"momentum": 0.5}}}},
    "batch of a model larger than the data": {"models": {"mlp": {"training": {"batch_size": 500}}}},
    "batch on a data set larger than it": {
        "datasets": {"digits": {"models": {"mlp": {"training": {"batch_size": 500}}}}}
    },
    "unknown model of a data set": {"datasets": {"digits": {"models": {"mpl": {"training": {"epochs": 5}}}}}},
    "unknown key of a data set's model": {"datasets": {"digits": {"models": {"mlp": {"trainig": {"epochs": 5}}}}}},
    "width in place of widths": {"models": {"mlp": {"architecture": {"hidden": 64}}}},
    "widths that are names": {"datasets": {"digits": {"models": {"mlp": {"architecture": {"hidden": ["a"]}}}}}},
    "unknown architecture setting": {"models": {"mlp": {"architecture": {"hiden": [64]}}}},
    "module that is no path": {
        "models": {"mlp": {"engine": "opacus", "architecture": {"name": "nets:", "hidden": None}}}
    },
    "widths of an attack": {"attacks": {"shokri": {"hidden": ["a"]}}},
    "half a feature": {"attacks": {"yeom_attribute": {"features": 2.5}}},
    "no feature": {"attacks": {"yeom_attribute": {"features": 0}}},
    "unknown candidates": {"attacks": {"yeom_attribute": {"candidates": "quartile"}}},
    "probability above one": {"attacks": {"yeom": {"probability_floor": 1.5}}},
    "too many queries": {"attacks": {"attack_r": {"queries": 19}}, "reference": {"count": 2, "size": 100}},
    "no records for a decoder": {
        "attacks": {"shokri": None, "decoder": {}},
        "datasets": {"digits": {"roles": {"shadow_pool": None}}},
        **NO_SHADOW,
    },
    "no records for an attack": {
        "attacks": {"attack_p": {}},
        "datasets": {"digits": {"roles": {"reference_pool": None}}},
    },
    "shadow training in larger batches than their records": {"shadow": {"training": {"batch_size": 5000}}},
    "shadow training that cannot be": {"shadow": {"training": {"momentum": 0.5}}},
    "shadow training with an unknown key": {"shadow": {"training": {"epoch": 3}}},
    "shadow pool of a role that is not there": {"shadow": {"pool": ["shadow_pol"]}},
    "shadow models without records": {
        "datasets": {"digits": {"roles": {"shadow_pool": None}}},
        "shadow": {"pool": ["reference_pool"]},
    },
    "reference models without records": {
        "reference": {"pool": None},
        "datasets": {"digits": {"roles": {"reference_pool": None}}},
    },
    "shadow models that see everything": {"shadow": {"size": 700}},
    "online attack without its models": {"reference": {"count": 2, "size": 100, "pool": ["reference_pool"]}},
    "pool named twice": {"shadow": {"pool": ["shadow_pool", "shadow_pool"]}},
    "baseline of one model alone": {"defenses": [{"defense": "none", "models": ["mlp"]}, {"defense": "l2", "l2": 0.1}]},
    "data set of a defense": {"defenses": [{"defense": "none"}, {"defense": "l2", "l2": 0.1, "datasets": ["digit"]}]},
    "a design that cannot show the claim": _audited(canaries=10, beyond_reach="refuse"),
    "many canaries in many runs": _audited(design="many_runs", canaries=2),
    "too few coins": _audited(models=3),
    "a gradient that nobody sees": _audited(canary="gradient"),
    "own curve without a mechanism": _audited(claim="own"),
    "unknown audit": {"defenses": [{"defense": "none", "audits": ["b"]}], **_audited()},
    "canaries without records": _audited(canaries=250),
    "a table of persons without persons": {"figures": {"t": {"kind": "persons_table", "parts": ["lira_online"]}}},
    "a release that expires on no day": {"release": {"expires": "31.12.2099"}},
    "a release among learning rates below 0": {"release": {"choose": {"learning_rate": [-0.1]}}},
    "a release among learning rates beyond any use": {"release": {"choose": {"learning_rate": [1.0e30]}}},
    "a release among texts": {"release": {"choose": {"learning_rate": ["a"]}}},
    "a release among hidden layers of a wrong kind": {
        "release": {"cell": "mlp/gaussian-rdp-eps=1", "choose": {"hidden": [[0]]}}
    },
    "a release among batch sizes": {"release": {"choose": {"batch_size": [10]}}},
    "a release among momenta of Adam": {"release": {"choose": {"momentum": [0.9]}}},
    "a release among equal values": {"release": {"choose": {"learning_rate": [0.1, 0.1]}}},
    "a release among a million trainings": {"release": {"choose": {"learning_rate": [0.1]}, "mean": 1.0e6}},
    "a release that chooses nothing": {"release": {"mean": 3}},
    "override of the name": {"study": "mine"},
    "override of a scale": {"scales": {"smoke": {"repeats": 1}}},
    "no space after a colon": {"repeats:3": None},
    "null for what is not there": {"attacks": {"shokry": None}},
    "pca without components": {"datasets": {"digits": {"projection": {"components": None}}}},
    "a number with too many digits": {"epsilon": [0.1234567891]},
    "batch of classes larger than the data": _entry(
        "class", accountant="class_moments", noise_multiplier=[2], training={"batch_size": 201}
    ),
    "batch of classes given twice": _entry(
        "class", accountant="class_moments", noise_multiplier=[2], training={"batch_size": 10, "sampling_rate": 0.1}
    ),
    "sampling rate above one": _entry(
        "class", accountant="class_moments", noise_multiplier=[2], training={"sampling_rate": 1.5}
    ),
    "l2 of classes in the wrong place": _entry(
        "class", accountant="class_moments", noise_multiplier=[2], training={"l2": 0.1}
    ),
    "sampler of classes that no trainer has": _entry(
        "vmf", accountant="vmf_rdp", sampler="class_poisson", accounting_note="a try"
    ),
    "classes as units with a private projection for records": {
        **projected(),
        **_entry("class", accountant="pld", epsilon=[8]),
    },
    "projection fitted on the non-members that members are compared with": {
        "datasets": {"digits": {"projection": {"components": 5, "fit_on": ["target_nonmembers"]}}},
    },
    "subclasses as units with a private projection for records": {
        **projected(),
        **_entry("subclass", accountant="pld", epsilon=[8], k_sub=2),
    },
    "structure of models that are trained here": {"structure": True},
    "groups by records without coins": {"groups": ["records"]},
    "groups by a misspelt name": {"groups": ["klass"]},
    "groups by sensitive columns that no source names": {"groups": ["sensitive"]},
    "audit of random views": {
        **_audited(),
        "training": {"views": {"count": 2}},
        **gaussian(accountant="rdp", epsilon=[1]),
    },
}
# Case → changes to the config.
CONFIGS = {
    "unknown key": {"scal": "paper"},
    "unknown scale": {"scale": "smal"},
    "unknown device": {"device": "gpu"},
    "override of no study": {"overrides": {"quickstrat": {}}},
    "missing study file": {"study_files": ["nowhere.yaml"]},
    "data set of no study": {"only_datasets": ["digit"]},
    "overrides that are a text": {"overrides": "quickstart=3"},
    "data sets that are a text": {"only_datasets": "digits"},
    "checkpoint interval": {"checkpoint_seconds": 0},
}
# Case → changes to the study `visits`.
PERSONS = {
    "no known way": {"attacks": {"yeom": {"of_person": "median"}}},
    "no persons": {
        "datasets": {"visits": {"source": {"person": None}}},
        "defenses": [{"defense": "none"}],
        "attacks": {"yeom": {"of_person": "max"}},
    },
    "records of a person that are not limited": {
        "defenses": [{"defense": "none"}, {"defense": "person", "accountant": "rdp", "chosen": "first"}]
    },
    "too few repeats to learn from": {"repeats": 2, "attacks": {"lira_online": {"of_person": "learned"}}},
    "too few repeats in one cell": {
        "defenses": [{"defense": "none"}, {"defense": "person", "accountant": "rdp", "repeats": 2}],
        "attacks": {"rmia_online": {"of_person": "learned"}},
    },
}

NO_DP = "accountant == ''"
# Case → kind of figure, its numbers (a function of `synthetic`), which of them (a query), settings.
FIGURES = {
    "unknown kind": ("leekage", "quick_frame", "", {}),
    "unknown setting": ("leakage", "quick_frame", "", {"atack": "yeom"}),
    "unknown model": ("leakage", "quick_frame", "", {"model": "mpl"}),
    "unknown data set": ("leakage", "quick_frame", "", {"dataset": ["digit"]}),
    "unit of no cell": ("leakage", "quick_frame", "", {"unit": "batch"}),
    "attack without numbers": ("leakage", "quick_frame", "", {"attack": "shokry"}),
    "metric that was not measured": ("spent_axis", "quick_frame", "", {"metric": "accuracy_lost"}),
    "spent ε of nothing private": ("spent_epsilon", "quick_frame", NO_DP, {}),
    "axis of spent ε for nothing private": ("spent_axis", "quick_frame", NO_DP, {}),
    "one curve over the noise of nothing": ("collapse", "quick_frame", NO_DP, {}),
    "training of no cell": ("training_curve", "history_frame", "", {"defense": "gaussian-rdp-eps=2"}),
    "search without λ": ("lambda_search", "quick_frame", "", {}),
    "attack without scores": ("roc", "score_frame", "", {"attack": "lyra"}),
    "comparison with nothing": ("paired_table", "score_frame", "", {"against": "nothing"}),
    "claims without audits": ("claimed_measured", "quick_frame", "", {}),
    "audits without bugs": ("proved", "audited_frame", "", {"bugs": True}),
    "persons in a study of records": ("persons_table", "quick_frame", "", {"attack": "yeom"}),
    "guesses that were not measured": ("guesses_table", "guesses_frame", "", {"attack": "yeom"}),
    "groups of another kind": ("groups", "groups_frame", "", {"by": "duplicates"}),
    "structure that was not counted": ("structure_table", "quick_frame", "", {}),
    "changes from no undefended cell": ("decoded_table", "image_frame", "mechanism != 'none'", {}),
    "unknown layer": ("decoded_table", "image_frame", "", {"layers": ["conv9"]}),
    "pictures of another layer": ("decoded_pictures", "picture_list", "", {"layers": ["conv9"]}),
    "picture beyond the last": ("decoded_pictures", "picture_list", "", {"image": 5}),
    "accountants of nothing private": ("accountants", "image_frame", "mechanism == 'none'", {}),
    "no private PCA": ("projection_noise", "projected_frame", "projection != 'private_pca'", {}),
    "unknown inversion": ("mia_budget", "inversion_frame", "", {"attack": "inversion_l2"}),
    "inversion of nothing private": ("mia_budget", "inversion_frame", "mechanism == 'none'", {}),
    "unknown class": ("subclasses", "inversion_images", "", {"classes": [12]}),
    "no budget in common": (
        "difference_table", "directional_frame", "mechanism != 'vmf'", {"metrics": ["membership_auc/attack_r"]}
    ),
}  # fmt: skip

# File → what it says.
FILES = {
    "twice": "study: a\nstudy: b\n",
    "no yaml": "study: [a\n",
    "a list": "- a\n- b\n",
    "nothing": "",
}


def without_membership():
    """Groups of records in a study whose only attack is of another family."""
    spec = load()["quickstart"].spec
    attacks = dict.fromkeys(name for name in spec["attacks"] if name != "yeom_attribute")
    figures = dict.fromkeys(name for name in spec["figures"] if name != "fig_leakage_attribute")
    return {"groups": ["class"], "attacks": attacks, "figures": figures}


def named(*studies):
    """Study files, each the quickstart without figures but for its changes."""
    files = [Path(f"{number}.yaml") for number, _ in enumerate(studies)]
    for file, changes in zip(files, studies, strict=True):
        file.write_text(yaml.safe_dump(merged(read_yaml(QUICKSTART), {"figures": {}} | changes)))
    return load_studies(CONFIG, files)


def written(text):
    """A study file that says this."""
    Path("study.yaml").write_text(text)
    return read_yaml(Path("study.yaml"))


@cache
def numbers(name):
    """The made-up numbers of a function of `synthetic`."""
    return getattr(synthetic, name)()


def drawn(kind, name, query, settings):
    """A figure of some of the made-up numbers."""
    shown = numbers(name)
    return draw(kind, shown.query(query) if query else shown, settings)


LONG = re.compile(r"([Vv]alid(?::| is)) (?:\w+, ){3,}\w+")  # a list of names, which grows with each new attack or key
PARETO = {"kind": "pareto"}
NAMES = {
    "study called as a wildcard": [{"study": "train_target"}],
    "target of another study": [{"study": "a", "figures": {"b": PARETO}}, {"study": "a_b"}],
    "figure called as a target": [{"study": "a", "figures": {"report": PARETO}}],
    "two studies of one name": [{}, {}],
}


def cases() -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Heading, case, and what is refused."""
    for case, changes in (STUDIES | {"groups without a membership attack": without_membership()}).items():
        yield "Studies", case, partial(load, deepcopy(changes))
    for case, changes in CONFIGS.items():
        yield "Configs", case, partial(load, config=changes)
    for case, changes in PERSONS.items():
        yield "Studies of persons", case, partial(visits, changes)
    for case, files in NAMES.items():
        yield "Names", case, partial(named, *files)
    for case, text in FILES.items():
        yield "Study files", case, partial(written, text)
    for case, figure in FIGURES.items():
        yield "Figures", case, partial(drawn, *figure)


def page() -> str:
    """Every case with its sentence, under headings."""
    lines: list[str] = []
    for heading, case, refused in cases():
        if f"## {heading}" not in lines:
            lines += ["", f"## {heading}"]
        try:
            refused()
            sentence = "(taken)"
        except UserError as error:
            sentence = LONG.sub(r"\1 …", str(error).replace(f"{REPO}/", "")).partition("; there is: ")[0]
        lines.append(f"- {case}: {sentence}")
    return "\n".join(["# What a study, a config or a figure is refused for", *lines, ""])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for kinds in sorted((REPO / "workflow" / "studies").iterdir()):
            enter(kinds)
        print(page(), end="")
