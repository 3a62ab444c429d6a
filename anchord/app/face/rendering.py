"""Templates of the pages, compiled once.

All text goes through Jinja2's autoescape; a name that a template uses and nobody gave is an error.
Templates extend `layout.html`, whose comment says what it needs and which blocks it has.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from anchord.app.face.assets import asset
from anchord.app.report.contents import plain

if TYPE_CHECKING:
    from jinja2 import Environment

CSP = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'"
)
"""The Content-Security-Policy that pages state themselves, for trees on servers that state none.
`frame-ancestors` can stand in a header only (W3C CSP Level 3, 3.3)."""


def render(template: str, **values: Any) -> bytes:
    """Return a page as UTF-8.

    Args:
        template: its file name.
        values: what it is made of; `root` and `site` always, see `layout.html`.
    """
    return environment().get_template(template).render(**values).encode("utf-8", "replace")


@cache
def environment() -> Environment:
    """Return the templates, which do not change while a process lives."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("anchord.app.face"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    found.filters["plain"] = plain
    found.filters["number"] = "{:,}".format
    found.globals["asset"] = asset
    found.globals["csp"] = CSP
    return found
