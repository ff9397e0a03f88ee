"""Outputs of a study: the metrics of its cells, its figures, its report, and the files made for them."""

from collections.abc import Iterable
from pathlib import Path

from dp_leakage.attacks import ATTACKS
from dp_leakage.common.config import Json
from dp_leakage.common.dates import day, this_day
from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import identity
from dp_leakage.common.paths import explained_by, is_dir
from dp_leakage.common.run_config import CONFIG, read_config
from dp_leakage.common.shown import one_line
from dp_leakage.data import SOURCES, files_of
from dp_leakage.engines import GIVEN as ELSEWHERE
from dp_leakage.figures import COMMON
from dp_leakage.privacy.mechanisms import ACCOUNTANTS, MECHANISMS
from dp_leakage.provenance.fingerprint import ROOT
from dp_leakage.study import paths
from dp_leakage.study.cells import MEMBERSHIP, Cell, auxiliary_defense
from dp_leakage.study.paths import TARGET, figure_files, learned_for, training_files, tuned_for
from dp_leakage.study.protocol import (
    AUDIT,
    attacks_on,
    auxiliary_spec,
    by_coins,
    keyed,
    source_of,
)
from dp_leakage.study.step_code import step_code
from dp_leakage.study.steps.attack import answered, attacked
from dp_leakage.study.steps.data import data_identity, prepare_settings
from dp_leakage.study.steps.entry import Input, Job, made
from dp_leakage.study.steps.judge import written
from dp_leakage.study.steps.measure import measure_settings
from dp_leakage.study.steps.parts import (
    IMAGES,
    MEASURED,
    SCORES,
    figure_cells,
    figure_parts,
    kind_of_figure,
    part,
)
from dp_leakage.study.study import Study

# The text of the page, which is not hashed as code.
PAGE = [ROOT / file for file in ("report/page.js", "report/template.html", "table/page.html", "table/guesses.css")]
RELEASING = ("data_dir", "only_datasets", "study_files", "plugins", "overrides")  # its keys that decide on a release
FOUND = {SCORES: paths.SCORES, IMAGES: paths.IMAGES}  # what a figure may need of an attack beside its rows


def everything(study: Study) -> list[Path]:
    """Return all outputs of the study's target: every output of all its jobs, except temporary ones.

    A lost file that no target names would not be made again, because the job's other files still exist.
    """
    files = [study.path(paths.REPORT), study.path(paths.CLAIMS)]
    for figure in study.spec["figures"]:
        files += [*figure_files(study, figure).values(), *figure_inputs(study, figure)]
    for cell in study.cells.values():
        files += [study.path(paths.DATA, dataset=cell.dataset), *learned_for(study, cell.dataset)]
        files += tuned_for(study, cell)
        files += [*training_files(study, cell.dataset, cell.model, TARGET, cell.defense)]
        files += [*written(study, "judge", Job(**cell.names)), study.path(paths.METRICS, cell)]
        for name in dict.fromkeys((*MEASURED, *cell.parts)):
            files += part(name).files(study, cell)
    return list(dict.fromkeys(files))


# ------------------------------------------------------------------ figures
def figure_settings(study: Study, figure: str) -> Json:
    """Return the settings of step ``figure``."""
    spec, kind, cells = study.spec["figures"][figure], kind_of_figure(study, figure), figure_cells(study, figure)
    prints = study.spec.get("published")
    words = explained_by(study.folder / prints) if prints else None

    def parts(cell: Cell) -> list[list[str]]:
        return [[name, _drawn(study, figure, cell, name)] for name in figure_parts(study, figure, cell)]

    return {
        "study": study.name,
        "figure": figure,
        "module": kind.module,
        "needs": kind.needs,
        "table": kind.table,
        "scale": study.scale,
        **_origins(study, dict.fromkeys(cell.dataset for cell in cells)),
        "labels": _labels(cells),
        "settings": {**COMMON, **kind.settings, **spec.get("settings", {}), "title": spec.get("title")},
        # Lists, since JSON sorts mappings, and the files come in this order.
        "columns": list(cells[0].columns),
        "cells": [[list(cell.columns.values()), parts(cell)] for cell in cells],
        "code": step_code("figure", kind.module, own=(words,) if words else ()),
    }


def _labels(cells: Iterable[Cell]) -> Json:
    """Return figure labels of attacks and defenses from their files' declarations, which step ``figure`` does not
    read.
    """
    columns = [cell.columns for cell in cells]
    attacks = {part: ATTACKS[part] for cell in cells for part in cell.parts if part in ATTACKS}
    mechanisms = {name: MECHANISMS[name] for own in columns if (name := own["mechanism"]) in MECHANISMS}
    accountants = {name: ACCOUNTANTS[name] for own in columns if (name := own["accountant"]) in ACCOUNTANTS}
    return {
        "attacks": {name: one.label for name, one in attacks.items()},
        "mechanisms": {name: [one.label, one.bound] for name, one in mechanisms.items()},
        "accountants": {name: [one.noise, one.samplers] for name, one in accountants.items()},
    }


def _statements(cells: Iterable[Cell]) -> Json:
    """Return the page's statements on attackers and guarantees from the same declarations."""
    attacks = {part: ATTACKS[part] for cell in cells for part in cell.parts if part in ATTACKS}
    mechanisms = {name: MECHANISMS[name] for cell in cells if (name := cell.columns["mechanism"]) in MECHANISMS}
    return {
        "attacks": {name: [one.adapts, one.access] for name, one in attacks.items()},
        "mechanisms": {name: one.guarantee for name, one in mechanisms.items()},
    }


def _origins(study: Study, datasets: Iterable[str]) -> Json:
    """Return ``sources``: data set → name of the actual source at this scale; ``made_up``: data sets with synthetic
    records.
    """
    sources = {dataset: source_of(study.spec, dataset)["source"] for dataset in datasets}
    return {"sources": sources, "made_up": [name for name, source in sources.items() if SOURCES[source].made_up]}


def figure_inputs(study: Study, figure: str) -> list[Path]:
    """Return inputs of a figure, in the order of its settings."""
    return [
        _file_drawn(study, figure, cell, name)
        for cell in figure_cells(study, figure)
        for name in figure_parts(study, figure, cell)
    ]


def _file_drawn(study: Study, figure: str, cell: Cell, name: str) -> Path:
    """Return the file of a part that a figure reads: rows, scores of an attack, or images."""
    found = _found(study, figure, name)
    return study.path(found, cell, attack=name) if found else part(name).path(study, cell)


def _drawn(study: Study, figure: str, cell: Cell, name: str) -> str:
    """Return the identity of the file that a figure reads (`_file_drawn`)."""
    return attacked(study, cell, name) if _found(study, figure, name) else part(name).made(study, cell)


def _found(study: Study, figure: str, name: str) -> str | None:
    """Return the pattern of an attack's own output files, if a figure reads these instead of rows."""
    return FOUND.get(kind_of_figure(study, figure).needs) if name in ATTACKS else None


def caption(study: Study, figure: str) -> str:
    """Return a figure's caption: the study's own, or its kind's."""
    return study.spec["figures"][figure].get("caption") or kind_of_figure(study, figure).caption


def title_of(study: Study, figure: str) -> str:
    """Return a figure's title, or its kind if it has none."""
    spec = study.spec["figures"][figure]
    return str(spec.get("title", spec["kind"]))


def published_file(study: Study) -> list[Path]:
    """Return the paper's printed numbers, an input of every figure; nothing if the study has no paper."""
    name = study.spec.get("published")
    return [study.folder / name] if name else []


# ------------------------------------------------------------------ report
def report_settings(study: Study) -> Json:
    """Return the settings of step ``report``."""
    return {
        "study": study.name,
        "scale": study.scale,
        **_origins(study, study.spec["datasets"]),
        "spec": {k: v for k, v in study.spec.items() if k not in ("scales", "release")},
        "figures": {figure: identity(figure_settings(study, figure)) for figure in study.spec["figures"]},
        "cells": [[key, identity(measure_settings(study, cell))] for key, cell in study.cells.items()],
        "histories": [
            [cell.dataset, cell.model, cell.defense, made(study, "train_target", cell)] for cell in study.cells.values()
        ],
        "data": [[dataset, data_identity(study, dataset)] for dataset in study.spec["datasets"]],
        "scores": [
            [cell.dataset, cell.model, cell.defense, attack, attacked(study, cell, attack)]
            for cell, attack in _exposed(study)
        ],
        "compared": [[cell.dataset, cell.model, *(asked for _, asked in files)] for cell, files in _compared(study)],
        "aware": aware(study),
        "labels": _labels(study.cells.values()),
        "statements": _statements(study.cells.values()),
        "captions": {figure: caption(study, figure) for figure in study.spec["figures"]},
        "words": identity({path.name: path.read_text(encoding="utf-8") for path in PAGE}),
        "code": step_code("report"),
    }


def aware(study: Study) -> bool:
    """Return whether every data set has a membership attack with references trained under the attacked defense."""

    def learns(dataset: str, attack: str) -> bool:
        entry = ATTACKS[attack]
        usual = "same" if by_coins(study.spec, attack) else "none"
        own = auxiliary_spec(study.spec, dataset, entry.needs) if entry.needs else {"defense": "none"}
        return own.get("defense", usual) == "same" and entry.aware and entry.family == MEMBERSHIP

    return all(any(learns(d, attack) for attack in attacks_on(study.spec, d)) for d in study.spec["datasets"])


def exposed_scores(study: Study) -> list[Path]:
    """Return the membership scores by which the report names exposed records, for undefended and private models."""
    return [study.path(paths.SCORES, cell, attack=attack) for cell, attack in _exposed(study)]


def compared_signals(study: Study) -> list[Path]:
    """Return the outputs of external models, each followed by the outputs of its references."""
    return [path for _, files in _compared(study) for path, _ in files]


def _compared(study: Study) -> list[tuple[Cell, list[Input]]]:
    """Return the external models that are attacked with references: their outputs, and their references' outputs."""
    found = []
    for cell in study.cells.values():
        used = any(ATTACKS[attack].needs == "reference" for attack in cell.membership)
        if cell.training["engine"] in ELSEWHERE and used:
            groups = (TARGET, cell.defense), ("reference", auxiliary_defense(study.spec, cell, "reference"))
            found.append((cell, [answered(study, cell.dataset, cell.model, *group) for group in groups]))
    return found


def _exposed(study: Study) -> list[tuple[Cell, str]]:
    return [
        (cell, attack)
        for cell in study.cells.values()
        for attack in cell.membership
        if cell.defense == "none" or cell.columns["accountant"]
    ]


def report_files(study: Study) -> list[str]:
    """Return the user's files that describe the records named in the report."""
    sources = [prepare_settings(study, dataset)["source"] for dataset in study.spec["datasets"]]
    return [name for source in sources for name in files_of(source)]


# ------------------------------------------------------------------ release and targets
def before_release(study: Study, config: Json) -> list[Path]:
    """Return the files needed before a release: all measurements of its cell, including the tuned learning rate.

    Raises:
        UserError: the study has no such cell, the planned release would have expired, or ``config`` differs from the
            config that the release reads.
    """
    _check_in_file(f"{study.target}_release", config)
    cell = study.cell_named(study.spec["release"]["cell"])
    if not is_dir(study.path(paths.RELEASE, cell)):
        check_unexpired(study)
    return [study.path(paths.METRICS, cell), *tuned_for(study, cell)]


def _check_in_file(target: str, config: Json) -> None:
    """Raise UserError if a run's config would hide the cell from the release, which reads only config.yaml."""
    file = read_config()
    for key in RELEASING:
        if config.get(key) != file.get(key):
            words = f"which is all that target '{target}' reads; write it into {CONFIG}, or leave it out"
            raise UserError(f"key '{key}' is {config.get(key)!r} here and {file.get(key)!r} in {CONFIG}, {words}")


def check_unexpired(study: Study) -> None:
    """Raise UserError if the study's release would expire on the day on which it is made, or before."""
    expires, now = day(study.spec.get("release", {}).get("expires")), this_day()
    if expires is not None and expires <= now:
        words = f"expected a day as YYYY-MM-DD after today, {now}"
        raise UserError(f"study {study.target}: key 'release.expires' is '{expires}'; {words}")


def target_descriptions(study: Study) -> dict[str, str]:
    """Return target → one line for ``snakemake --list-target-rules``."""
    audit = {f"{study.target}_audit": "canaries of every cell, trained and scored"}
    return {
        **(audit if keyed(study.spec, AUDIT) else {}),
        **({f"{study.target}_release": "the model that is given away, trained once"} if study.releases else {}),
        f"{study.target}_verify": "reads every file of the study and compares it with its digest",
        study.target: one_line(study.spec["title"]),
        f"{study.target}_report": "the page with everything",
        **{f"{study.target}_{name}": one_line(title_of(study, name)) for name in study.spec["figures"]},
    }
