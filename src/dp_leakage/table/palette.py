"""Colors and templates of all pages: light in print and by default, dark if the reader's browser prefers it."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment

FRAME = Path(__file__).with_name("page.html")
LIGHT = {
    "ink": "#222",
    "gray": "#5f5f5f",
    "line": "#ddd",
    "wash": "#f4f6f8",
    "paper": "#fff",
    "accent": "#0072b2",
    "alarm": "#b00020",
    "mark": "#d55e00",
    "shade": "#0003",
    "good": "#0d5f33",
    "good-wash": "#e3f3e8",
    "good-line": "#3c9a63",
    "open": "#7a4a00",
    "open-wash": "#fff3db",
    "open-line": "#d99a2b",
}
DARK = {
    "ink": "#e8e8e8",
    "gray": "#b0b0b0",
    "line": "#444",
    "wash": "#22262b",
    "paper": "#16181b",
    "accent": "#56b4e9",
    "alarm": "#ff8a80",
    "mark": "#ffb000",
    "shade": "#fff3",
    "good": "#8fe0ac",
    "good-wash": "#16301f",
    "good-line": "#4fae76",
    "open": "#ffd58a",
    "open-wash": "#3a2c10",
    "open-line": "#d99a2b",
}


def environment() -> "Environment":
    """Return the environment of pages, which extend ``page.html``. It escapes values and refuses undefined names."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    found = Environment(
        loader=FileSystemLoader(FRAME.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals["palette"] = Markup(style())
    return found


def style() -> str:
    """Return the colors as CSS. A page on paper is light whatever the screen is: the dark ones are for
    screens alone.
    """
    light, dark = ("; ".join(f"--{role}: {color}" for role, color in colors.items()) for colors in (LIGHT, DARK))
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        "@media print { :root { color-scheme: light } }"
    )
