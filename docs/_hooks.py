"""Makes the site of what lies here: the pages of the root belong to it too, and nothing is loaded from elsewhere."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT_PAGES = {name: f"root/{name.lower()}" for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")}
SHIM = "https://unpkg.com/iframe-worker/shim"  # the theme would load this; the site must open without a network
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds the pages of the root."""
    root = Path(config["config_file_path"]).parent
    for name, place in ROOT_PAGES.items():
        files.append(File.generated(config, place, content=(root / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links as they are in the repository into links of the site; what is not in the site stays as text."""
    root, docs = Path(config["config_file_path"]).parent, Path(config["docs_dir"])
    own = {place: root / name for name, place in ROOT_PAGES.items()}.get(page.file.src_uri, docs / page.file.src_uri)

    def turned(found: re.Match[str]) -> str:
        picture, words, link = found.groups()
        target, _, anchor = link.partition("#")
        if "://" in link or not target:
            return found[0]
        path = (own.parent / target).resolve()
        path = path / "README.md" if path.is_dir() else path
        here = Path(page.file.src_uri).parent
        place = next((uri for name, uri in ROOT_PAGES.items() if path == root / name), None)
        if place is None and path.is_relative_to(docs):
            place = path.relative_to(docs).as_posix()
        if place is None or files.get_file_from_path(place) is None:
            return words
        up = "/".join([".."] * len(here.parts))
        return f"{picture}[{words}]({up + '/' if up else ''}{place}{'#' + anchor if anchor else ''})"

    return LINK.sub(turned, markdown)


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    """Takes the theme's only foreign script from the site itself."""
    up = "../" * (len(Path(page.file.dest_uri).parts) - 1)
    return output.replace(SHIM, f"{up}assets/iframe-worker.js")


def on_post_template(output_content: str, *, template_name: str, config: MkDocsConfig) -> str:
    """The same for the page that stands for missing ones."""
    return output_content.replace(SHIM, "assets/iframe-worker.js")
