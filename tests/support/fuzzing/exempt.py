"""Functions that look like parsers of foreign bytes, and are none, each with the reason."""

from __future__ import annotations

_OWN_STORE = "rows of our own store: tests/audit/test_store_bytes.py changes every byte of them"
_OWN_CURSOR = "a cursor that the same source wrote"
_CHECKED = "of bytes that a target's parser has checked before"

EXEMPT = {
    "adapters/headers/witness.py:tip_of": _CHECKED,
    "app/source_mirror.py:look": _OWN_CURSOR,
    "core/not_before.py:check_header": _CHECKED,
    "adapters/outputs/tree.py:add": "a line of an index that we write",
    "adapters/sources/readers.py:read_file": "hashes a file and looks at none of its bytes",
    "adapters/sources/resolver.py:look": _OWN_CURSOR,
    "adapters/sources/sql.py:look": _OWN_CURSOR,
    "adapters/sources/sql_cursor.py:read_place": _OWN_CURSOR,
    "adapters/sources/watched.py:look": _OWN_CURSOR,
    "adapters/store/calls.py:store_answer": "writes an answer that was checked",
    "adapters/store/calls.py:store_upgrade": "writes an answer that was checked",
    "adapters/store/citations.py:keep_citations": _CHECKED,
    "adapters/store/leaves.py:unpack_ids": _OWN_STORE,
    "adapters/store/tokens.py:store": "writes a token that was checked",
    "engine/audit/bundles.py:well_written": _CHECKED,
    "engine/audit/store_foreign.py:older_in": _OWN_STORE,
    "engine/audit/store_foreign.py:paths_in": _OWN_STORE,
    "engine/audit/store_notes.py:read": _OWN_STORE,
    "engine/audit/store_series.py:object_of": _OWN_STORE,
    "engine/audit/store_tokens.py:check_tokens": _OWN_STORE,
    "engine/stored.py:check_record": _OWN_STORE,
}
