"""Compute lower bounds on ε from the scores of an audit's canaries, once for all figures."""

from pathlib import Path

from dp_leakage.data.audit_design import AuditDesign
from dp_leakage.metrics.audit import measure_audit
from dp_leakage.provenance.files import read_table
from dp_leakage.steps import Json, provenance
from dp_leakage.steps._claims import claim_of
from dp_leakage.steps._rows import write_rows


def main(settings: Json, scores: Path, bounds: Path) -> None:
    """Read the canaries' scores and write the rows of all designs of the cell.

    Raises:
        UserError: the scores are damaged or made by other settings, or nothing is proven for a design's random
            inclusion.
    """
    frame, made = read_table(scores, settings["scores"])
    audit = made["settings"]
    designs = {name: AuditDesign(**given) for name, given in audit["designs"].items()}
    rows = measure_audit(frame, designs, lambda design: claim_of(design, made), settings["comparisons"], audit["seed"])
    write_rows(bounds, rows, provenance(settings))
