"""Write ``results/index.html``, the page of all studies. A run does this at its end, not a job, since it belongs to
no study.
"""

import json
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from dp_leakage.common.errors import UserError
from dp_leakage.provenance.files import verify_checksum, write_text
from dp_leakage.report import headlines
from dp_leakage.report.overview import Entry, render

PAGE = "index.html"


def write_overview(folder: Path) -> Path:
    """Write the page of all studies below a folder, the latest first, and return its path."""
    entries = [(_written(study), _entry(study)) for study in folder.iterdir() if study.is_dir()]
    entries.sort(key=lambda one: (-one[0], one[1].study))
    write_text(folder / PAGE, render(folder.name, [entry for _, entry in entries]))
    return folder / PAGE


def _written(study: Path) -> float:
    """Return the time when a study's report was written, in seconds since 1970; 0 if it does not exist."""
    page = study / "report.html"
    return page.stat().st_mtime if page.is_file() else 0.0


def _entry(study: Path) -> Entry:
    page, claims = study / "report.html", study / "claims.json"
    if not page.is_file() or not claims.is_file():
        return Entry(study.name, study.name, trouble="not finished")
    finished = f"{datetime.fromtimestamp(_written(study)):%Y-%m-%d %H:%M}"
    try:
        verify_checksum(page)
        verify_checksum(claims)
        content = json.loads(claims.read_text(encoding="utf-8"))
        title, reduced, answers = str(content["title"]), str(content["reduced"]), tuple(map(str, headlines(content)))
    except (UserError, KeyError, TypeError, ValueError):
        return Entry(study.name, study.name, trouble="its report is damaged or of another version: run the study again")
    return Entry(
        study.name,
        title,
        f"{quote(study.name)}/{page.name}",
        finished,
        reduced,
        answers=answers,
    )
