"""Contents of a study file on data sets, models and attacks, with defaults.

Each function takes the file as the schema describes it, after overrides and scale.
"""

import re

from dp_leakage.attacks import ATTACKS, GRADIENTS, OF_PERSON
from dp_leakage.common.config import Json, merged
from dp_leakage.common.identity import derived_seed
from dp_leakage.data import by_person as names_persons
from dp_leakage.data import resolve
from dp_leakage.engines import GIVEN

SPLIT, COINS = "split", "coins"  # the designs of a study; COINS is also the name of the part that guesses the coins
TRAINING = "training"  # the part that needs no attack: accuracies and spent ε
AUDIT = "audit"  # the part that trains models of its own
STRUCTURE = "structure"  # the part that checks what models consist of; also the study's key
GROUPS = "groups"  # the part that measures membership by groups of records; also the study's key
TUNE = "tune"  # the study's key for learning rates to try


def design_of(spec: Json) -> str:
    """Return the design: ``split`` fixes the members; ``coins`` includes each record of a pool at random in each
    repeat.
    """
    return str(spec.get("design", SPLIT))


def keyed(spec: Json, *parts: str) -> list[str]:
    """Return the parts that the study requests by a key of the same name: ``audit``, ``structure``, ``groups``."""
    return [part for part in parts if spec.get(part)]


def bounded(spec: Json) -> list[str]:
    """Return the parts that state lower bounds on ε: ``coins`` in that design, and ``audit`` if the study has one."""
    return [*([COINS] if design_of(spec) == COINS else []), *keyed(spec, AUDIT)]


def source_of(spec: Json, dataset: str) -> Json:
    """Return the records' source, as ``data.resolve`` returns it. Raises UserError for a wrong source."""
    return _resolved(spec["datasets"][dataset]["source"])


def public_source(spec: Json, dataset: str) -> Json:
    """Return the source of public records on which features are learned. Raises UserError for a wrong source."""
    return _resolved(spec["datasets"][dataset]["projection"]["learned_on"]["source"])


def _resolved(source: str | Json) -> Json:
    return resolve({"source": source} if isinstance(source, str) else source)


def seed_of(spec: Json, dataset: str, *what: str) -> int:
    """Return the seed of one random draw of the study on a data set.

    The user's own data count without the name that the study gives them, so that the same study under another name has
    the same results. ``what`` begins with a model or an attack; a defense behind it counts as `seeded` says.
    """
    source = spec["datasets"][dataset]["source"]
    own = not isinstance(source, str) and "path" in source
    return derived_seed(spec["seed"], "" if own else dataset, *what[:1], *map(seeded, what[1:]))


def seeded(name: str) -> str:
    """Return a cell's defense as the text that seeds derive from: ``normalise`` for ``normalize``.

    Another word would be another seed, and every number measured with it would change.

    >>> seeded("gaussian-normalize-rdp-eps=1")
    'gaussian-normalise-rdp-eps=1'
    """
    return re.sub(r"(?<![\w.:])normalize(?![\w.:])", "normalise", name)


def by_person(spec: Json, dataset: str) -> bool:
    """Return whether the owner of each record is known, so that roles, inclusion and scores are per person."""
    source = spec["datasets"][dataset]["source"]
    return not isinstance(source, str) and names_persons(source)


def two_sources(spec: Json, dataset: str) -> bool:
    """Return whether members and non-members come from a publisher's (or the user's) training and test records, not
    from one random split.
    """
    return design_of(spec) == SPLIT and bool(spec["datasets"][dataset].get("official_split", False))


def attacks_on(spec: Json, dataset: str) -> list[str]:
    """Return the attacks that are run on a data set, in the study's order."""
    own = spec["datasets"][dataset].get("attacks", spec["attacks"])
    return [attack for attack in spec["attacks"] if attack in own]


def traced(spec: Json, dataset: str) -> list[str]:
    """Return the attacks on a data set that read the losses of every evaluated epoch."""
    return [attack for attack in attacks_on(spec, dataset) if ATTACKS[attack].reads == "losses"]


def settings_of_attack(spec: Json, attack: str) -> Json:
    """Return an attack's own settings, with its defaults."""
    asked = {key: value for key, value in spec["attacks"][attack].items() if key != OF_PERSON}
    return {**ATTACKS[attack].settings, **asked}


def way_of_person(spec: Json, attack: str) -> str:
    """Return the way in which an attack combines the scores of a person's records (`attacks.persons`)."""
    return str(spec["attacks"][attack].get(OF_PERSON, ATTACKS[attack].of_person))


def sees_untrained(spec: Json, attack: str) -> bool:
    """Return whether an attack uses only gradients of untrained models, so that no training is needed."""
    return ATTACKS[attack].family == GRADIENTS and settings_of_attack(spec, attack).get("weights") == ["initial"]


def by_coins(spec: Json, attack: str) -> bool:
    """Return whether an attack uses the cell's repeats as references, so that no other references are trained."""
    return design_of(spec) == COINS and ATTACKS[attack].needs == "reference"


def auxiliary_spec(spec: Json, dataset: str, role: str) -> Json:
    """Return the settings of shadow or reference models, overridden by the data set's own; empty if there are none."""
    return merged(spec.get(role, {}), spec["datasets"][dataset].get(role, {}))


def auxiliary_training(spec: Json, dataset: str, model: str, role: str, engine: str, targets: Json) -> Json:
    """Return the training of shadow or reference models: as ``targets``, except for the keys of
    ``shadow.training``.
    """
    changes = auxiliary_spec(spec, dataset, role).get("training")
    if not changes:
        return targets
    plain, own = training_of(spec, dataset, model, engine), training_of(spec, dataset, model, engine, changes)
    return targets | {key: value for key, value in own.items() if key in changes or plain.get(key) != value}


def model_spec(spec: Json, dataset: str, model: str) -> Json:
    """Return a model as the study describes it, overridden by the data set's own."""
    return merged(spec["models"][model], spec["datasets"][dataset].get("models", {}).get(model, {}))


def _defaults(training: Json) -> Json:
    """Return the defaults of missing training keys."""
    return {"momentum": 0.0, "l2": 0.0, "evaluate_every": training["epochs"]}


def public_training(learned_on: Json) -> Json:
    """Return the settings by which the network of learned features trains."""
    training = merged(_defaults(learned_on["training"]), learned_on["training"])
    return training if training.pop("l2_applied", True) else training | {"l2": 0.0}


def training_of(spec: Json, dataset: str, model: str, engine: str, changes: Json | None = None) -> Json:
    """Return the settings by which an engine trains a model, with ``changes`` on top; empty for external models."""
    given = spec.get("training")
    if engine in GIVEN or given is None:
        return {}
    training = merged(_defaults(given), given)
    for own in (model_spec(spec, dataset, model).get("training", {}), changes or {}):
        training = merged(training, own)
    if not training.pop("l2_applied", True) and "l2" not in (changes or {}):
        training["l2"] = 0.0
    return training
