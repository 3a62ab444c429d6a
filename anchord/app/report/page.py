"""An audit as one HTML file that needs nothing else: no script, no font, no picture from outside.

All text goes through Jinja2's autoescape, and a Content-Security-Policy forbids the browser to
load anything, so that nothing a record or a stranger's bundle says can act in the page.
"""

from __future__ import annotations

from anchord.app.report import contents, pictures
from anchord.app.report.contents import Audited

SHOWN = 200
"""Findings of one code that are written out; JSON and CSV have up to 1,000."""
_DAY_S = 86_400


def render(audited: Audited) -> str:
    """Return the page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("anchord.app.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["plain"] = contents.plain
    environment.filters["number"] = "{:,}".format
    environment.globals["rows"] = contents
    report = audited.report
    found = report.completeness
    cohorts = contents.group_rows(found.by_cohort)
    return environment.get_template("audit.html").render(
        audited=audited,
        report=report,
        found=found,
        cohorts=cohorts,
        sources=contents.group_rows(found.by_source),
        facets=list(contents.facet_rows(report)),
        groups=contents.groups(report),
        summary=contents.summary(report),
        shown=SHOWN,
        layers=pictures.LAYERS,
        most_cohorts=pictures.MOST_COHORTS,
        backlog=pictures.backlog(found.backlog, report.created_at // _DAY_S),
        ages=pictures.ages(contents.age_rows(report)),
        cohort_bars=pictures.cohorts(cohorts),
    )
