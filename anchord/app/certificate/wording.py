"""The words of a certificate, the same in the PDF and the HTML page.

All lists have a bound and all values a length, so that one page is always enough; what was cut is
kept whole beside it, and said to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from anchord.app.certificate.shorten import ELLIPSIS, middle, visible
from anchord.core.certificate import Certificate, Copy
from anchord.core.model import Scheme
from anchord.core.trust import Trust

LONGEST = 128
"""Characters a value may have: two lines."""
LONGEST_TITLE, LONGEST_SOURCE = 110, 60
MOST_CALENDARS, MOST_TOKENS, MOST_COPIES = 3, 1, 1
"""How many of a kind are shown; the rest is counted."""
FEW_LINES = 17
"""Lines of facts that leave the page airy; with more of them all is set smaller."""


class Row(msgspec.Struct, frozen=True):
    """One fact with its name."""

    label: str
    text: str
    code: bool = False
    """A value to be compared letter by letter."""
    whole: str = ""
    """All of it, where `text` had to be cut."""


class Step(msgspec.Struct, frozen=True):
    """One step of checking by hand."""

    text: str
    code: str = ""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What stands on the page, top to bottom."""

    specimen: str | None
    """Why it proves nothing about Bitcoin; None when it does."""
    title: str | None
    title_note: str | None
    name: str
    source: str | None
    digest: str
    when: str
    block: str
    facts: tuple[Row, ...]
    steps: tuple[Step, ...]
    limits: tuple[str, ...]
    whole: tuple[Row, ...]
    """Values that were cut, whole."""

    @property
    def dense(self) -> bool:
        """Whether there is so much to say that it is set smaller."""
        lines = sum(1 + len(row.text) // 80 for row in self.facts)
        return lines + len(self.title or "") // 50 > FEW_LINES


def page_of(made: Certificate) -> Page:
    """Return the words of a certificate."""
    subject, anchor = made.subject, made.anchor
    facts = tuple(_facts(made))
    title = None if subject.title is None else _fit("Title", visible(subject.title), LONGEST_TITLE)
    source = (
        None if subject.source is None else _fit("Record", visible(subject.source), LONGEST_SOURCE)
    )
    whole = tuple(_whole([row for row in (title, source, *facts) if row is not None]))
    note = _TITLE_PROVED if subject.title_proved else _TITLE_SAID
    return Page(
        specimen=None if anchor.chain == "bitcoin" else _specimen(anchor.chain),
        title=None if title is None else title.text,
        title_note=None if title is None else note,
        name=subject.pith_number or f"sha256:{subject.digest}",
        source=None if source is None else source.text,
        digest=subject.digest,
        when=moment_words(anchor.time),
        block=f"{_chain_words(anchor.chain)} block {anchor.height:,}",
        facts=facts,
        steps=tuple(_steps(made)),
        limits=(*_limits(made), *((_CUT,) if whole else ())),
        whole=whole,
    )


def _fit(label: str, text: str, most: int = LONGEST, *, code: bool = False) -> Row:
    """Return a row of at most `most` characters."""
    shown = middle(text, most)
    return Row(label, shown, code, "" if shown == text else text)


def _whole(rows: Iterable[Row]) -> Iterator[Row]:
    """Return what was cut, under the names it goes by."""
    label = ""
    for row in rows:
        label = row.label or label
        if row.whole:
            yield Row(label, row.whole, row.code)


_CUT = f"Where {ELLIPSIS} stands, a value was cut: it is whole in the bundle, or as it was given."
_TITLE_PROVED = "the record holds the SHA-256 of this title"
_TITLE_SAID = "title as given by whoever made this page; the record does not confirm it"
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip


def moment_words(text: str) -> str:
    """Return `2024-07-26T16:40:00Z` as people write it, in UTC and to the minute."""
    year, month, day = text[:10].split("-")
    return f"{int(day)} {_MONTHS[int(month) - 1]} {year}, {text[11:16]} UTC"


def _specimen(chain: str) -> str:
    return f"Made on {chain or 'an unnamed chain'}: it proves nothing about Bitcoin."


def _chain_words(chain: str) -> str:
    return "Bitcoin" if chain == "bitcoin" else chain


def _facts(made: Certificate) -> Iterator[Row]:
    anchor, signed = made.anchor, made.statement
    yield Row("Block hash", anchor.hash, code=True)
    yield Row("Merkle root", anchor.merkle_root, code=True)
    checked = middle(" and ".join(visible(name) for name in anchor.checked_with), 90)
    yield Row("Header", f"checked against {checked}; {anchor.confirmations} or more confirmations")
    if anchor.calendars:
        yield _calendars([visible(url) for url in anchor.calendars])
    yield Row("Proof", f"sha256 {signed.proof_sha256}", code=True)
    yield _named("Signed by", signed.signer_id, f", {moment_words(signed.signed_at)}")
    words = f", fingerprint {signed.fingerprint}{_TRUST[signed.trust]}"
    yield _named("Key", signed.key_id, words)
    yield Row("Event", signed.event_id, code=True)
    yield from _witnesses(made)
    yield from _copies(made.copies)


def _calendars(urls: Sequence[str]) -> Row:
    shown = ", ".join(middle(url, 36) for url in urls[:MOST_CALENDARS])
    shown += _more(len(urls) - MOST_CALENDARS)
    whole = ", ".join(urls)
    return Row("Calendars", shown, whole="" if shown == whole else whole)


def _named(label: str, name: str, after: str, before: str = "") -> Row:
    """Return a row with a name in it; only the name gives way."""
    name = visible(name)
    shown = middle(name, 40)
    return Row(label, before + shown + after, whole="" if shown == name else name)


_TRUST = {
    Trust.KEYRING: " (in the keyring)",
    Trust.GIVEN: " (given by hand)",
    Trust.CLAIMED: " (as the bundle says)",
}


def _witnesses(made: Certificate) -> Iterator[Row]:
    before = made.not_before
    if before is not None:
        words = f"the timestamp, not the record, is younger than block {before.height:,}"
        yield Row("Not before", f"{words} of {moment_words(before.time)}")
        yield Row("", before.hash, code=True)
    for token in made.tokens[:MOST_TOKENS]:
        words = f"RFC 3161 token of {moment_words(token.time)}"
        root = "" if token.trusted else ", root not checked"
        more = _more(len(made.tokens) - MOST_TOKENS)
        yield _named("Also", token.signed_by, root + more, before=f"{words} by ")


def _copies(copies: Sequence[Copy]) -> Iterator[Row]:
    for kind, label in (("capture", "Captured"), ("item", "Stored")):
        found = [copy for copy in copies if copy.kind == kind]
        for copy in found[:MOST_COPIES]:
            words = " (a stand-in for the Internet Archive)" if copy.stand_in else ""
            words += "" if kind == "capture" else ", as the digest and .json in"
            more = _more(len(found) - MOST_COPIES)
            yield Row(label, f"{moment_words(copy.at)}{words}{more}")
            yield _fit("", visible(copy.where), code=True)


def _more(count: int) -> str:
    return f", and {count} more in the bundle" if count > 0 else ""


def _steps(made: Certificate) -> Iterator[Step]:
    digest, signed = made.subject.digest, made.statement
    yield _recompute(made.subject.scheme)
    yield Step(
        "In the bundle, find the event above. Its payload\u2019s proof_b64, base64 decoded, is "
        "proof.ots; its SHA-256 stands above.",
    )
    yield Step(
        "With the OpenTimestamps client and a Bitcoin node of your own:",
        f"ots verify -d {digest} proof.ots",
    )
    yield Step(
        "Without a node: ots --no-bitcoin verify with the same arguments shows a Merkle root. It "
        f"must be that of block {made.anchor.height:,} above, in any explorer you trust.",
    )
    yield Step(
        "The signature is Ed25519 over the 32 bytes of the event id, which is the SHA-256 of the "
        "event without event_id and signature_b64, keys sorted, no spaces. Get the key from "
        f"{middle(visible(signed.signer_id), 40)} and compare its fingerprint.",
    )


_PROGRAM = """python3 -c "import json, hashlib
r = json.load(open('bundle.json', 'rb'))['canonical_record']
t = json.dumps(r, sort_keys=True, separators=(',', ':'), ensure_ascii=False)
print(hashlib.sha256(t.encode()).hexdigest())"
"""


def _recompute(scheme: Scheme) -> Step:
    if scheme is Scheme.SHA256:
        return Step("Hash the file; the digest above must come out:", "sha256sum FILE")
    if scheme is Scheme.RFC8785:
        return Step(
            "Write the bundle\u2019s canonical_record as RFC 8785 says (keys sorted, no spaces) "
            "and take the SHA-256: the digest above must come out.",
        )
    return Step("Hash the record in the bundle; the digest above must come out:", _PROGRAM.strip())


def _limits(made: Certificate) -> Iterator[str]:
    yield (
        "It does not say who made the record, nor when, nor that it is true: these exact bytes "
        "existed before that block, and a block\u2019s time is good to hours."
    )
    yield (
        "The signature says who vouches for these facts, not who wrote the record."
        + (
            " Whose key it is was not confirmed for this page."
            if made.statement.trust is Trust.CLAIMED
            else ""
        )
    )
    if made.copies:
        yield "Copies are where the signer says; they were not fetched for this page."
    yield "The page is no proof by itself: the proof is in the bundle, and is checked as above."
