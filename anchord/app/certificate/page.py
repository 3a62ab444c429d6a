"""The certificate as one HTML file that loads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined

from anchord.app.certificate import qr, rosette

if TYPE_CHECKING:
    from anchord.app.certificate.wording import Page


def render(page: Page, digest: str) -> bytes:
    """Return the HTML of a page about `digest`."""
    environment = Environment(
        loader=PackageLoader("anchord.app.certificate"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    side, code = qr.svg_path(digest)
    text = environment.get_template("certificate.html").render(
        page=page, digest=digest, qr_side=side, qr_path=code, rosette=rosette.svg_paths(digest)
    )
    return text.encode("utf-8", "replace")
