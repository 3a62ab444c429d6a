"""Audits to report on: outcomes filled by hand, from empty to hostile."""

from __future__ import annotations

from msgspec.structs import asdict, replace

from anchord.app.report.contents import Audited
from anchord.app.thresholds import judge, read_fail_under, read_max_age
from anchord.core.audit import AuditOptions, AuditReport
from anchord.core.finding import Part, Severity
from anchord.core.standing import Standing
from anchord.engine.audit.outcome import Outcome, ReportFacts

NOW = 1_785_000_000
DAY = 86_400
NOTE = (
    "registry.example.org\n120000\nq83vEjRWeJASNFZ4kKvN7wEjRWeJq83vASNFZ4mrze8=\n\n"
    "\u2014 registry.example.org KEYHASHANDSIGNATURE+/==\n"
)
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\x1b[31mred\x1b]0;title\x07",
    "two\nlines\r\nand\ttabs",
    '=HYPERLINK("https://evil.example.org","x")',
    "+1+1", "-1", "@SUM(A1)", " =1",
    "a | b | c", "[x](javascript:alert(1))", "`code` *bold* _it_ # h ~~~~",
    "{{ 7 * 7 }} {% raw %}",
    "\u202eright to left", "\udc80 no text", "x" * 5_000,
    "</pre></table></details>", "https://evil.example.org/ www.evil.example.org",
)  # fmt: skip


def outcome(**options: int) -> Outcome:
    return Outcome(AuditOptions(now=NOW, **options))


def facts(**changes: str | None) -> ReportFacts:
    known = {"source": "sqlite:///anchord.db", "kind": "store", "checkpoint": NOTE,
             "chain": "bitcoin-regtest"}  # fmt: skip
    return ReportFacts(**{**known, **changes})  # type: ignore[arg-type]


def report_of(found: Outcome, **changes: str | None) -> AuditReport:
    return found.report(**asdict(facts(**changes)))


def empty() -> AuditReport:
    return report_of(outcome(), checkpoint=None, chain=None)


def records(found: Outcome, months: int = 14) -> Outcome:
    """Stand records of many months, the older ones more complete."""
    for month in range(months):
        for week in range(4):
            added = NOW - (month * 30 + week * 7) * DAY - 5_000
            count = 900 + 137 * ((month * 7 + week) % 5)
            late = max(0, count // 2 - month * 90)
            both = Standing("arxiv", added, "anchored", added + 9_000, "stored", added + 3 * DAY)
            found.stand(both, count - late)
            found.stand(Standing("arxiv", added, "anchored", added + 9_000, "not stored", None),
                        late // 2)  # fmt: skip
            found.stand(Standing("none", added, "submitted", None, "not stored", None),
                        late - late // 2)  # fmt: skip
            found.count("records", count)
            found.count("records_counted", count)
            found.count("events", 2 * count)
            found.count("signatures", 2 * count)
            found.count("proofs", count)
    found.count("headers", 57)
    found.know("key-1", "aa11, registry.example.org, keyring")
    return found


def sound() -> AuditReport:
    return report_of(records(outcome()))


def break_one(found: Outcome, code: str, subject: str, what: str = "expected a, got b") -> None:
    found.find(code, Severity.BROKEN, Part.EVENT, subject, what, "restore it from a backup")


def broken() -> AuditReport:
    found = records(outcome())
    break_one(found, "signature-wrong", "sha256:" + "ab" * 32, "the signature is not key-1's")
    found.find("overdue", Severity.WARNING, Part.BATCH, "batch 12", "waits for 9 days",
               "see `anchord status`")  # fmt: skip
    found.find("not-covered", Severity.NOTE, Part.STORE, "events of others", "no rule", "nothing")
    return report_of(found)


def many(count: int) -> AuditReport:
    found = records(outcome())
    for number in range(count):
        break_one(found, ("chain-broken", "row-missing", "leaf-wrong")[number % 3], f"row {number}")
    return report_of(found)


def hostile() -> AuditReport:
    """Let strangers write every text of a report that they can."""
    found = outcome()
    found.count("records_counted")
    found.count("records")
    for text in HOSTILE:
        break_one(found, "name-wrong", text, text)
        found.stand(Standing(text, NOW - 9_999, "anchored", NOW, "not stored", None))
        found.know(text, text)
    return report_of(found, source=HOSTILE[0] + HOSTILE[2] + "|", sampled=HOSTILE[1],
                     checkpoint=NOTE + HOSTILE[16] + "~~~~\n~~~~~~\n\x1b[2J\n")  # fmt: skip


def audited(report: AuditReport, *asked: str) -> Audited:
    """Hold a report against thresholds: `anchored=99` is a share, `24h` an age."""
    read = [read_fail_under(one) if "=" in one else read_max_age(one) for one in asked]
    return Audited(report=report, thresholds=tuple(judge(one, report.completeness) for one in read))


def timed(report: AuditReport) -> AuditReport:
    return replace(report, seconds=12.345)
