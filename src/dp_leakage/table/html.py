"""Tables as HTML: in the report, and on a page of their own next to their csv file."""

from collections.abc import Iterable

from markupsafe import Markup

from dp_leakage.provenance.files import BLANK_CHECKSUM
from dp_leakage.table import palette
from dp_leakage.table.tables import Table, Tables

STYLE = """\
/* A shade at the side on which there is more to scroll to; white parts that scroll along cover it at the ends. */
.wide {
  overflow-x: auto;
  background:
    linear-gradient(to right, var(--paper) 50%, transparent) left / 1.5rem 100% no-repeat local,
    linear-gradient(to left, var(--paper) 50%, transparent) right / 1.5rem 100% no-repeat local,
    linear-gradient(to right, var(--shade), transparent) left / .6rem 100% no-repeat scroll,
    linear-gradient(to left, var(--shade), transparent) right / .6rem 100% no-repeat scroll;
}
table { border-collapse: collapse; font-size: .86rem; margin: .5rem 0 1rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; white-space: nowrap; }
th { font-weight: 600; color: var(--gray); border-bottom: 1.5px solid var(--ink); vertical-align: bottom; }
th, td { padding: .16rem .7rem .16rem 0; text-align: right; white-space: nowrap; }
th[colspan] { text-align: center; border-bottom: 1px solid var(--line); }
.left { text-align: left; }
tr.first td { border-top: 1px solid var(--line); }
tbody tr:last-child td { border-bottom: 1.5px solid var(--ink); }
@media print {
  .wide { overflow: visible; background: none; }
  table { font-size: 7.5pt; }
  th, td { padding-right: .4rem; }
}"""
PAGE = Markup("""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="dp-leakage" content="{checksum}">
<meta name="made-from" content="{made_from}">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
{palette}
body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 1rem; }}
.note {{ color: var(--gray); font-size: .9rem; max-width: 46rem; }}
.beware {{ border-left: 4px solid var(--mark); padding: .2rem 0 .2rem 1rem; }}
{style}
</style>
</head>
<body>
{banner}<main>
{content}</main>
</body>
</html>
""")
TABLE = Markup("""\
<div class="wide">
<table>
{caption}<thead>
{groups}<tr>{heads}</tr>
</thead>
<tbody>
{rows}</tbody>
</table>
</div>
""")
NOTHING = Markup()


def to_html(table: Table) -> Markup:
    """Return the table as an element that the report's script can sort. Texts are escaped, Markup is not."""
    parted = {True: Markup(' class="first"'), False: NOTHING}
    rows = zip(table.starts, table.rows, strict=True)
    lines = (Markup("<tr{}>{}</tr>\n").format(parted[start], _cells("td", row, table.left)) for start, row in rows)
    return TABLE.format(
        caption=_element("caption", table.heading),
        groups=Markup("<tr>{}</tr>\n").format(NOTHING.join(map(_group, table.groups))) if table.groups else NOTHING,
        heads=_cells("th", table.heads, table.left),
        rows=NOTHING.join(lines),
    )


def content(shown: Tables) -> Markup:
    """Return the title, the tables and the notes, as in the report and on a page of their own."""
    parts = [_element("h3", shown.title or ""), *map(to_html, shown.tables)]
    return NOTHING.join([*parts, _element('p class="note"', " ".join(dict.fromkeys(shown.notes)))])


def to_page(shown: Tables, made_from: str, banner: str = "") -> str:
    """Return a page that loads nothing, ready for its checksum (`provenance.files.write_page`).

    Args:
        shown: the tables.
        made_from: stands in the page's metadata.
        banner: words above everything; "" for none.
    """
    return PAGE.format(
        checksum=BLANK_CHECKSUM,
        made_from=made_from,
        title=shown.title or "",
        palette=Markup(palette.style()),
        style=Markup(STYLE),
        banner=_element('p class="beware"', banner),
        content=content(shown),
    )


def content_of(page: str) -> Markup:
    """Return the `content` of a page made by `to_page`."""
    return Markup(page.partition("<main>\n")[2].rpartition("</main>")[0])


def _cells(tag: str, texts: Iterable[str], left: int) -> Markup:
    scope = Markup(' scope="col"') if tag == "th" else NOTHING
    flush = Markup(' class="left"')
    return NOTHING.join(
        Markup("<{0}{1}{2}>{3}</{0}>").format(Markup(tag), scope, flush if place < left else NOTHING, text)
        for place, text in enumerate(texts)
    )


def _group(group: tuple[str, int]) -> Markup:
    words, columns = group
    if not words:
        return Markup('<td colspan="{}"></td>').format(columns)
    return Markup('<th scope="colgroup" colspan="{}">{}</th>').format(columns, words)


def _element(tag: str, text: str) -> Markup:
    """Return an element on a line of its own; empty without text."""
    return Markup("<{}>{}</{}>\n").format(Markup(tag), text, Markup(tag.split()[0])) if text else NOTHING
