"""`snakemake --report`: every figure with its caption, and the study's page."""

from dp_leakage.figures import FIGURES


def test_snakemakes_own_report_holds_every_figure_with_its_caption(finished):
    finished.snakemake("quickstart", "--report", "everything.html")
    page = (finished.folder / "everything.html").read_text(encoding="utf-8")
    for kind in ("accuracy_loss", "pareto", "members_exposed"):
        assert FIGURES[kind].caption[:40] in page
    assert "fig_accuracy_loss.png" in page
    assert "the study&#x27;s page" in page or "the study's page" in page
