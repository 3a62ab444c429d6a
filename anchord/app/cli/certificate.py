"""`anchord certificate`: one page, for people, of what is proved about a record."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from anchord.app.cli.witness_options import witness_options
from anchord.errors import ConfigError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anchord.app.cli.witnesses import Witnesses
    from anchord.core.certificate import Certificate
    from anchord.engine.dossier import FindExpected

FORMATS = ("pdf", "html")
_MARKS = (b"/Creator (anchord)", b'<meta name="generator" content="anchord">')


@click.command(short_help="Make a one-page certificate, PDF and HTML, of what is proved.")
@click.argument("target", metavar="RECORD")
@click.option("-o", "--output", default=".", metavar="WHERE",
              help="Folder (default: here), one file (.pdf, .html) or -.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(FORMATS), help="Only this one of the two.")
@click.option("--title", metavar="TEXT",
              help="Title to show; held against the hash of it in the record.")  # fmt: skip
@click.option("--file", "about", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
              help="The file the record is the digest of.")  # fmt: skip
@click.option("--digest", metavar="HEX", help="The digest the record is.")
@click.option("--tsa-ca", multiple=True, metavar="FILE",
              type=click.Path(exists=True, dir_okay=False),
              help="PEM file with the root of a time-stamping authority you trust.")  # fmt: skip
@witness_options
@click.option("--force", is_flag=True, help="Replace files that are no certificates.")
@click.pass_obj
def command(
    config_path: str | None, /, *, target: str, output: str, form: str | None, title: str | None,
    about: str | None, digest: str | None, tsa_ca: tuple[str, ...], force: bool, **asked: Any,
) -> int:  # fmt: skip
    """Make a certificate of RECORD: a record's name, or a bundle file.

    The page says what existed before which time and by which proof, and how anybody checks that
    without anchord. Everything on it is verified when it is made, as by `anchord verify`: what is
    pending, withdrawn or fails gets no certificate, and the reason is told. A bundle needs no
    configuration; block headers come from --headers, --node, --explorer or the configuration.

    \b
    Examples:
      anchord certificate 2507.10392
      anchord certificate 2507.10392 -o wall.pdf --title "Digital objects, found again"
      anchord certificate paper.bundle.json --headers headers.bin --format html -o -

    Exit code: 0 it was made, 1 it is not proved or a file was kept, 3 only headers could not be
    had.
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    forms, path = _asked(output, form)
    from anchord.app.cli.evidence import Comparison, given_digest
    from anchord.app.cli.witnesses import Witnesses

    find = Comparison(target, about, given_digest(digest))
    with Witnesses(config_path, **asked) as who:
        made = _certificate(target, who, find, title, tsa_ca)
    pages = _rendered(made, forms)
    if output == "-":
        sys.stdout.buffer.write(pages[forms[0]])
        return 0
    return _written(made, pages, path, force=force)


def _asked(output: str, form: str | None) -> tuple[Sequence[str], Path]:
    """Return which forms to make, and where; one file is one form."""
    path = Path(output)
    suffix = path.suffix.lower().removeprefix(".")
    if output == "-":
        if form is None:
            raise click.UsageError("-o - writes one file: say --format pdf or --format html")
        return (form,), path
    if suffix in FORMATS and not path.is_dir():
        if form not in (None, suffix):
            raise click.UsageError(f"-o {output} and --format {form} contradict each other")
        return (suffix,), path
    if suffix and not path.is_dir():
        raise click.UsageError(f"-o {output}: expected a folder, .pdf or .html")
    return ((form,) if form else FORMATS), path


def _certificate(
    target: str, who: Witnesses, find: FindExpected, title: str | None, tsa_ca: Sequence[str]
) -> Certificate:
    from anchord.app.cli.evidence import read_target
    from anchord.app.cli.references import one_record
    from anchord.engine.certifying import certify_bundle, certify_record

    trusted = who.trusted(tsa_ca)
    if target == "-" or Path(target).is_file():
        raw = read_target(target)
        if raw.lstrip()[:1] != b"{":
            raise RefusedError(
                f"{target:.200} is no bundle: an .ots has no signed event to certify; "
                "`anchord add` it, or ask whoever made it for the bundle"
            )
        return certify_bundle(target, raw, who.keyring, who.given, find, who.view, title, trusted)
    if who.app is None:
        raise ConfigError(
            f"{target:.200} is no file here, and without a configuration there is no store to find "
            "a record in: name one with -c FILE or ANCHORD_CONFIG"
        )
    store = who.app.store
    record = one_record(store, target)
    return certify_record(
        store, record, who.keyring, who.given, find, who.view, target, title, trusted
    )


def _rendered(made: Certificate, forms: Sequence[str]) -> dict[str, bytes]:
    from anchord.app.certificate.wording import page_of

    page, found = page_of(made), {}
    if "pdf" in forms:
        from anchord.app.certificate import pdf

        found["pdf"] = pdf.render(page, made.subject.digest)
    if "html" in forms:
        from anchord.app.certificate import page as html

        found["html"] = html.render(page, made.subject.digest)
    return found


def _written(made: Certificate, pages: dict[str, bytes], path: Path, *, force: bool) -> int:
    """Write the pages; a file that is no certificate is kept."""
    from anchord.adapters.outputs.folder import FolderOutput
    from anchord.engine.export import stem_of

    single = path.suffix.lower().removeprefix(".") in pages and not path.is_dir()
    folder = FolderOutput(path.parent if single else path, _is_certificate, force=force)
    numbered = made.subject.pith_number is not None
    stem = stem_of(bytes.fromhex(made.subject.digest), numbered=numbered)
    kept = 0
    for form, data in pages.items():
        name = path.name if single else f"{stem}.certificate.{form}"
        where = path.parent / name if single else path / name
        if folder.put(name, data) == "kept":
            kept += 1
            click.echo(f"{where} kept: it is no certificate of anchord's; see --force", err=True)
        else:
            click.echo(str(where))
    folder.close()
    return 1 if kept else 0


def _is_certificate(old: bytes, new: bytes) -> bool:
    """Tell whether a file that is there may be replaced."""
    del new
    return any(mark in old for mark in _MARKS)
