"""Signs the example events of docs/protocol.md again, after somebody edited one.

Run as `python tests/support/protocol_examples.py`. The key is the page's own, known to everybody.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PAGE = Path(__file__).resolve().parents[2] / "docs/protocol.md"
EXAMPLE_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


def resign(match: re.Match[str]) -> str:
    """Return the block with the id and signature that its body asks for."""
    event = json.loads(match[2])
    body = {key: event[key] for key in event if key not in {"event_id", "signature_b64"}}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    signature = base64.b64encode(EXAMPLE_KEY.sign(digest)).decode("ascii")
    signed = {"event_id": f"sha256:{digest.hex()}", **body, "signature_b64": signature}
    return match[1] + json.dumps(signed, indent=2, ensure_ascii=False) + match[3]


def main() -> None:
    """Rewrite the page in place."""
    pattern = r"(<!-- example: event-\w+ -->\n+```json\n)(.*?)(\n```)"
    PAGE.write_text(
        re.sub(pattern, resign, PAGE.read_text("utf-8"), flags=re.DOTALL), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
