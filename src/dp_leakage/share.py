"""Copy of a study's results for sharing: without seeds, member lists, or anything that confirms a guess at either.

    dp-leakage share quickstart --to shared/quickstart

Everything random in a training follows from its seed. Anyone with a model's file, the seed and the members can train
the model again, to equal bytes. So anyone with the file, the seed and a guess at the members (or the data) can confirm
the guess: noise that can be recomputed protects nobody. A small seed, as in most study files, is found by trying.
PyTorch's generator keeps 32 bits of any seed, so searching all is possible too. A warning says so.

The copy holds only the following, for the cells and figures that the report lists. Files of cells that are no longer in
the study are not copied.

- figures that show numbers, not records, without hashes of what they were made from
- the metrics of each cell
- README.md, which says what the files are and what the ε of the models covers
- the parameters of models under attack that were trained with differential privacy of an ε up to a ceiling (key
  `share.epsilon` of the study), unless an attack refutes that; with --undefended, of all of them

So no data, member lists, answers about single records, seeds, paths, the attacker's models, or the report. Models that
exist only as their answers are not among them. Parameters of a model without differential privacy can tell who was a
member to anyone who has the records; whether to share them is your choice. Metrics and figures are computed from the
members without noise. Each model has spent its own ε on the members, and all models that go have spent more together.
"""

import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dp_leakage.common.errors import UserError
from dp_leakage.common.paths import is_dir, is_file
from dp_leakage.data.augment import COPIES
from dp_leakage.data.outside import grouping, uncovered
from dp_leakage.figures.files import without_provenance
from dp_leakage.metrics.rows import CELL, MEASURED, completed, qualifiers
from dp_leakage.metrics.spent import known, spent
from dp_leakage.options.share import parser
from dp_leakage.provenance.files import read_arrays, read_table, read_tensors, replacing
from dp_leakage.report.guarantees import rounded_up
from dp_leakage.report.refuted import refuted_cells
from dp_leakage.study.protocol import seed_of

MODELS = "target.safetensors"
SETTINGS = ("mechanism", "dataset", "model", "defense", "architecture", "dropout", "training")  # of a model that go
TEXT = re.compile(r"[\w.:=+-]{1,80}")  # a name or an import path: no other text among the settings goes
GUESSES = 100_000  # seeds of a study that are tried, as an attacker would
README = "README.md"
MEANING = """ε is for one record (or person, where the study protects people): `add_remove` for one more or fewer,
`replace_one` for one in another's place, `zero_out` for one that is set to zero. The models are of the same records, so
together they have spent more than each of them. Their noise is drawn from seeds of 32 bits, which somebody who guesses
the data can search; a model that is meant for use comes from `dp-leakage release`."""
SECRET = re.compile(r"seed|random_state", re.IGNORECASE)  # names of settings that do not go


class Listed(NamedTuple):
    """Cells and figures that may be shared, from the claims next to a report.

    Attributes:
        cells: names of the study's cells, ``DATASET/MODEL/DEFENSE``.
        figures: names of its figures.
        refuted: cells whose ε is refuted by an attack.
        ceiling: the largest ε of models that are copied by default.
        reduced: warning of a reduced run, "" at full scale.
    """

    cells: set[str]
    figures: set[str]
    refuted: set[str]
    ceiling: float
    reduced: str


class Copy(NamedTuple):
    """Result of `share`.

    Attributes:
        written: its files.
        kept_back: cell → reason why its parameters are withheld.
    """

    written: list[Path]
    kept_back: list[str]


def share(results: Path, shared: Path, undefended: bool = False) -> Copy:
    """Write the copy. Nothing is written if one of the files cannot be shared.

    Args:
        results: a study's folder.
        shared: a folder that does not exist, or is empty.
        undefended: whether parameters of models without differential privacy go, too.

    Raises:
        UserError: no results, or none that can be shared; ``shared`` is within the results, is not an empty folder or
            cannot be created; a file is damaged; the results contain links, pipes or devices.
    """
    if not is_file(results / "report.html"):
        raise UserError(f"{results} holds no finished study (report.html is missing); run `dp-leakage run STUDY` first")
    if "\0" in str(shared) or (os.path.lexists(shared) and not is_dir(shared)):
        raise UserError(f"{str(shared)!r} is not a folder; name one that does not exist")
    above = next(folder for folder in Path(os.path.abspath(shared)).parents if os.path.lexists(folder))
    if not is_dir(above):
        raise UserError(f"{shared} cannot be made, since {above} is not a folder; name a folder elsewhere")
    if is_dir(shared) and any(shared.iterdir()):
        raise UserError(f"{shared} is not empty; name a folder that does not exist")
    if Path(os.path.realpath(shared)).is_relative_to(os.path.realpath(results)):
        raise UserError(f"{shared} lies in {results}, which is not for sharing; name a folder elsewhere")
    files, listed = list(_files(results)), _listed(results)
    kept_back, going = [], []
    for path, content, why in _contents(results, files, listed, undefended):  # all is checked before any is written
        going += [path] if content else []
        kept_back += [] if content else [f"{_cell(results, path)} ({why})"]
    if not going:
        raise UserError(
            f"{results} holds no figure, metrics or private model to share; run `dp-leakage run STUDY` first"
        )
    written = []
    models = [path for path in going if path.name == MODELS]
    readme = (results / README, _readme(results, models, kept_back, listed.reduced).encode(), "")
    for path, content, _ in chain(_contents(results, files, listed, undefended), [readme]):
        if content:
            to = shared / path.relative_to(results)
            with replacing(to) as temporary:
                temporary.write_bytes(content)
            written.append(to)
    return Copy(written, kept_back)


def _files(results: Path) -> Iterator[Path]:
    """Yield all files except hidden ones, sorted. Raises UserError at anything other than a file or a folder."""
    for folder, folders, names in os.walk(results):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted([*folders, *(name for name in names if not name.startswith("."))]):
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise UserError(f"{path} must be a file; it is a link, a pipe or a device, so remove it from there")
            if stat.S_ISREG(mode):
                yield path


def _contents(
    results: Path, files: Sequence[Path], listed: Listed, undefended: bool
) -> Iterator[tuple[Path, bytes, str]]:
    """Yield the files to share, each with its shared bytes; for withheld models, no bytes and the reason."""
    for path in files:
        if path.parent == results / "figures" and path.suffix in (".png", ".html") and path.stem in listed.figures:
            yield from ((file, content, "") for file, content in without_provenance(path).items())
        elif path.name == "metrics.parquet" and _cell(results, path) in listed.cells:
            yield path, _metrics(path), ""
        elif path.name == MODELS and _cell(results, path) in listed.cells:
            content, why = _parameters(path, _cell(results, path) in listed.refuted, listed.ceiling)
            yield path, content if undefended or not why else b"", why or "no parameters"


def _cell(results: Path, path: Path) -> str:
    """Return the name of the cell whose file this is: ``DATASET/MODEL/DEFENSE``."""
    return path.parent.relative_to(results).as_posix()


def _listed(results: Path) -> Listed:
    """Read what the report lists and refutes. UserError if its claims cannot be read."""
    file = results / "claims.json"
    try:
        claims = json.loads(file.read_text(encoding="utf-8"))
        refuted, share = {"/".join(cell) for cell in refuted_cells(claims)}, claims["share"]
        return Listed(
            set(share["cells"]), set(share["figures"]), refuted, float(share["epsilon"]), str(claims["reduced"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{file} cannot be read; run `dp-leakage run STUDY` again, which writes it") from None


def _parameters(path: Path, refuted: bool, ceiling: float) -> tuple[bytes, str]:
    """Return the parameters of models with some of their settings, and the reason to withhold them by default.

    The parameters are empty if nothing can be shared. The reason is "" for private models.
    """
    from safetensors.numpy import save

    tensors, made = read_tensors(path)
    settings, named = made.get("settings", {}), made.get("parameters", [])
    mechanism = settings.get("mechanism")
    if not isinstance(named, list) or not isinstance(mechanism, dict | None):
        raise UserError(f"{path} does not say how it was made; run the study again")
    going = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items() if name in named}
    if not going:
        return b"", ""
    reason = "no differential privacy" if mechanism is None or mechanism.get("noise", "none") == "none" else ""
    reason = reason or ("an attack refutes its ε" if refuted else _promises_little(path, ceiling))
    told = _open({key: settings[key] for key in SETTINGS if key in settings})
    return save(going, {"dp_leakage": json.dumps(told, sort_keys=True)}), reason


def _promises_little(path: Path, ceiling: float) -> str:
    """Return why the ε of these models is too weak; "" if it is at most the ceiling.

    The ε is that of a record (or person) for the neighbors of the study's attacks. It is unknown without metrics, or if
    no accountant covers the batches. It is infinite, for example, if people have many records and the noise hides one.
    """
    epsilons = spent(_measured(path))["epsilon_spent"]
    if epsilons.empty:
        return "no known ε"
    if np.isinf(least := epsilons.min()):
        return "no finite ε"
    return f"ε = {rounded_up(least)} is above {ceiling:g}, the study's share.epsilon" if least > ceiling else ""


def _measured(path: Path) -> pd.DataFrame:
    """Return the metrics, over all repeats, of the cell of a model's file; empty if it was not measured."""
    metrics = path.with_name("metrics.parquet")
    found = read_table(metrics)[0] if is_file(metrics) else pd.DataFrame(columns=list(MEASURED))
    return completed(found).assign(**dict(zip(CELL, path.parent.parts[-3:], strict=True)))


def _readme(results: Path, models: Sequence[Path], kept_back: Sequence[str], reduced: str) -> str:
    """Return the README of the copy, for a reader who has nothing else."""
    rows = [f"| {_cell(results, path)} | {_epsilons(path)} |" for path in models]
    outside = [f"- {words}" for words in _uncovered(results, models)]
    return "\n".join(
        [
            f"# Results of the study {results.name}",
            "",
            *([reduced, ""] if reduced else []),
            "Made by dp-leakage for giving away: no file here holds a record, a list of members, a seed or a path.",
            "",
            "- `figures/`: each picture as png and pdf, each table as html and LaTeX, and a csv of the numbers in it",
            "- `DATASET/MODEL/DEFENSE/metrics.parquet`: what was measured of a cell, with 95 % intervals",
            "- `DATASET/MODEL/DEFENSE/target.safetensors`: the parameters of its models, one for each repeat",
            "",
            "Figures and metrics are computed from the training records without noise.",
            "",
            "## Models",
            "",
            *(
                ["| cell | ε spent on each model |", "| --- | --- |", *rows, "", MEANING]
                if rows
                else ["No parameters."]
            ),
            *(
                ["", "No ε covers what was computed from training records without noise:", "", *outside]
                if outside
                else []
            ),
            *(["", "Not here:", "", *(f"- {each}" for each in kept_back)] if kept_back else []),
            "",
        ]
    )


def _uncovered(results: Path, models: Sequence[Path]) -> Iterator[str]:
    """Yield preparation that no ε of these models covers, with its data set or model."""
    for folder in dict.fromkeys(path.parent.parent.parent for path in models):
        data = folder / "data.npz"
        if not is_file(data):
            raise UserError(f"{data} is missing; run `dp-leakage run STUDY` again, which writes it")
        arrays, made = read_arrays(data)
        notes, projection = made.get("notes", []), made.get("settings", {}).get("projection")
        for words in uncovered(projection, arrays, notes):
            yield f"{folder.name}: {words}"
        if any(COPIES in note for note in notes):
            yield f"{folder.name}: {COPIES}"
    for path in models:
        mechanism = read_tensors(path)[1].get("settings", {}).get("mechanism") or {}
        if words := grouping(mechanism.get("unit", "example"), mechanism.get("settings", {}).get("partition")):
            yield f"{_cell(results, path)}: {words}"


def _epsilons(path: Path) -> str:
    """Return the smallest proven ε of a cell's models, for each kind of neighbors."""
    found = known(_measured(path)).groupby("spent_neighbors")["epsilon_spent"].min()
    return "; ".join(f"{rounded_up(value)} ({name})" for name, value in found.items()) or "not known"


def guessed_seed(path: Path) -> int | None:
    """Return the study seed of a model's file if it is among the first `GUESSES`; otherwise None."""
    _, made = read_tensors(path)
    settings = made.get("settings", {})
    if not all(isinstance(settings.get(key), str) for key in ("dataset", "model", "defense", "role")):
        return None
    dataset, *named = (settings[key] for key in ("dataset", "model", "defense", "role"))
    specs = [{"seed": 0, "datasets": {dataset: {"source": source}}} for source in ("", {"path": ""})]
    for seed in range(GUESSES):
        if any(seed_of(spec | {"seed": seed}, dataset, *named) == settings.get("seed") for spec in specs):
            return seed
    return None


def _warn(results: Path, written: Sequence[Path], shared: Path) -> None:
    """Warn that the noise of shared models can be found; all models of a study derive their seeds from one seed."""
    models = [results / path.relative_to(shared) for path in written if path.suffix == ".safetensors"]
    if not models:
        return
    words = "the noise of these models is drawn from seeds of 32 bits, which somebody who guesses the data can search"
    if (seed := guessed_seed(models[0])) is not None:
        words = f"key 'seed' of this study is {seed}, which anybody can guess, and then take the models' noise away"
    print(
        f"warning: {words}; give a model away by `dp-leakage release`, whose noise nobody can repeat", file=sys.stderr
    )


def _open(value: Any) -> Any:
    """Return settings without seeds, and without texts other than names, such as paths."""
    if isinstance(value, dict):
        kept = {key: _open(each) for key, each in value.items() if TEXT.fullmatch(key) and not SECRET.search(key)}
        return {key: each for key, each in kept.items() if each is not None or value[key] is None}
    if isinstance(value, list):
        return [_open(each) for each in value]
    return None if isinstance(value, str) and not TEXT.fullmatch(value) else value


def _metrics(path: Path) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    frame, _ = read_table(path)
    if missing := [name for name in MEASURED if name not in frame]:
        raise UserError(f"{path} must have the columns {', '.join(MEASURED)}; {missing[0]!r} is missing")
    going = frame[[*MEASURED, *qualifiers(frame)]]
    buffer = BytesIO()
    table = pa.Table.from_pandas(going, preserve_index=False)
    pq.write_table(table.replace_schema_metadata(None), buffer)
    return buffer.getvalue()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    options = parser().parse_args(arguments)
    try:
        written, kept_back = share(options.study, options.to, options.undefended)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    _warn(options.study, written, options.to)
    print(f"{len(written)} files in {options.to}, without seeds and member lists")
    going = [_cell(options.to, path) for path in written if path.name == MODELS]
    print(f"Parameters of models: {', '.join(going) or 'none'}")
    if kept_back:
        print(f"Kept back: {', '.join(kept_back)}")
    return 0
