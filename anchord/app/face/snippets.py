"""What an author copies: the badge for Markdown, HTML and reStructuredText, the LaTeX package.

Where the site has no address, paths count from its root: whoever copies one puts the address
before it (`without_address` says so).
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import msgspec

from anchord.app.face.site import Site, place_of
from anchord.core.canonical import pith_suffix, record_id

if TYPE_CHECKING:
    from anchord.core.bundle import Bundle
    from anchord.core.record_view import RecordView


class Snippet(msgspec.Struct, frozen=True, kw_only=True):
    """Text to be copied."""

    language: str
    """For people: LaTeX, Markdown, HTML or reStructuredText."""
    text: str
    """Lines without a break at the end. Not escaped for a page."""


def snippets(view: RecordView, site: Site) -> tuple[Snippet, ...]:
    """Return what shows a record's badge elsewhere; LaTeX comes first."""
    page = _address(site, place_of(view.bundle) + "/")
    image = _address(site, place_of(view.bundle) + "/badge.svg")
    # It names the record: a pasted word for a state would stay when the state goes.
    words = view.bundle.number or record_id(view.bundle.digest)
    return (
        Snippet(language="LaTeX", text=_latex(view.bundle)),
        Snippet(language="Markdown", text=f"[![{words}]({image})]({page})"),
        Snippet(
            language="HTML",
            text=f'<a href="{html.escape(page)}">'
            f'<img src="{html.escape(image)}" alt="{html.escape(words)}" height="20"></a>',
        ),
        Snippet(
            language="reStructuredText",
            text=f".. image:: {image}\n   :target: {page}\n   :alt: {words}",
        ),
    )


def without_address(site: Site) -> str | None:
    """Return what is to be done with the paths in snippets; None where they are addresses."""
    if site.base_url is not None:
        return None
    return "These paths count from the root of this site: put its address before them."


def number_for_latex(bundle: Bundle) -> str:
    """Return what the LaTeX command is given: 26 characters, or `sha256:` and the digest."""
    return record_id(bundle.digest) if bundle.number is None else pith_suffix(bundle.digest)


def _latex(bundle: Bundle) -> str:
    return "\\usepackage{pith}\n\\pithnumber{" + number_for_latex(bundle) + "}"


def _address(site: Site, path: str) -> str:
    return path if site.base_url is None else f"{site.base_url}/{path}"
