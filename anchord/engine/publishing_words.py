"""What a published tree tells a stranger who opens it."""

from __future__ import annotations

README = """\
Records with their receipts, published as plain files.

Each record is named by the SHA-256 of its canonical bytes. Its folder holds

  bundle.json   the record, every signed event about it, the proofs, the public keys
  state.json    what these events come to, once those that do not hold are left out
  proof.ots     the OpenTimestamps proof of its SHA-256, where there is one

and, where pages were published, what shows the same to people (index.html, badge.svg) and programs
(events.json, graph.json, and <folder>.json beside the folder). index.html is where to begin.

Records with a Pith Number are in pith/<the 26 letters of the number>/, all others in
record/<sha256>/. The mirror manifest is pith-mirrors.json.

How to check a record with common tools, believing nobody here:

  1. The hash. With Python, over the value of "canonical_record" in the bundle:
       hashlib.sha256(json.dumps(record, sort_keys=True, separators=(",", ":"),
                                 ensure_ascii=False).encode()).hexdigest()
     must be "canonical_sha256". (A bundle that names the scheme rfc8785 is hashed after RFC 8785.
     In record/ the hash may be that of a file which is not here.)
  2. The time. The standard OpenTimestamps client proves when it existed, against your own Bitcoin
     node:  ots verify -d <canonical_sha256> proof.ots
  3. An event. Without "event_id" and "signature_b64", written as in step 1, its SHA-256 is its
     event_id. signature_b64 is the Ed25519 signature over these 32 bytes, made with the key that
     the event's signer names; keys/ has the keys. Where a key belongs to somebody, ask them, not
     this tree.

That nothing is missing or was slipped in:

  4. index.json is signed in the same way (the document without "signature_b64"). It holds the size
     and SHA-256 of the files in index/, which hold those of every file here.
  5. log/ holds a log of all events of this signer as c2sp.org/tlog-tiles lays it out; each
     checkpoint in log/checkpoints is a signed note (c2sp.org/tlog-checkpoint), and <size>.ots is
     its OpenTimestamps proof. An entry is the event's SHA-256 (32 bytes) and its signature (64).

The files may be copied and served by anyone; none of the checks asks where they came from.
"""
