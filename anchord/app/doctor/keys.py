"""The signing key: there, readable, ours, in its time, not revoked; and the files beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.app.doctor.result import Result, fail, failed, ok, warn
from anchord.core.moment import utc
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.app.doctor.patient import Patient
    from anchord.core.keyring import PublicKey

NAME = "key"
_SOON_S = 30 * 86_400


def check(patient: Patient) -> Iterator[Result]:
    """Open the active key as a pass would, and look at its window."""
    folder = patient.app.key_dir
    try:
        key = patient.app.keyring.active()
        signer = patient.app.signer
    except ConfigError as error:
        todo = "mend what is named, or restore the key folder from a copy; see `anchord key list`"
        yield failed(NAME, error, todo)
        return
    if key is not None:
        yield _window(key, patient.now, signer.signer_id)
    own = {f"{one.key_id}.pem" for one in patient.app.keyring if one.own}
    strays = sorted(path.name for path in folder.glob("*.pem") if path.name not in own)
    if strays:
        yield warn(
            NAME, f"{folder} holds private keys that no keyring names: {', '.join(strays[:5])}",
            "a key being made was interrupted: delete them; after a restore, restore keyring.toml",
        )  # fmt: skip


def _window(key: PublicKey, now: int, signer_id: str) -> Result:
    if key.valid_until is not None and key.valid_until <= now:
        return fail(
            NAME, f"{key.key_id} ended at {utc(key.valid_until)}: what it signs does not count",
            "anchord key rotate",
        )  # fmt: skip
    if key.valid_until is not None and key.valid_until <= now + _SOON_S:
        return warn(
            NAME, f"{key.key_id} ends at {utc(key.valid_until)}",
            "before that: anchord key rotate, and publish the new one",
        )  # fmt: skip
    return ok(NAME, f"{key.key_id} of {signer_id} can sign")
