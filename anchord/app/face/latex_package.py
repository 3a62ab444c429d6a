r"""`pith.sty` as a site hands it out: its badges lead to that site's pages.

So the two lines of a record's page, `\usepackage{pith}` and `\pithnumber{...}`, are all an author
needs; option `host` leads elsewhere.
"""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anchord.app.face.site import Site

_HERE = "\\edef\\pith@here{\\detokenize{}}\n"
_PLAIN_ADDRESS = re.compile(r"https?://[A-Za-z0-9\-._~:/\[\]@]+")
"""Without anything that TeX reads as more than itself, `%` and `#` above all."""


def pith_sty(site: Site) -> bytes:
    """Return the LaTeX package, its badges leading to `site` where that has an address."""
    text = resources.files("anchord.app.face").joinpath("latex/pith.sty").read_text("utf-8")
    base_url = site.base_url or ""
    if not _PLAIN_ADDRESS.fullmatch(base_url):
        return text.encode()
    return text.replace(_HERE, _HERE.replace("{}", f"{{{base_url}}}")).encode()
