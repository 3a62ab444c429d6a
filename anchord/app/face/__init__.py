"""The face of records: pages, documents, badges and snippets, made from a `RecordView`.

`files` is the list of all that is made of a record; `anchord serve` and `anchord mirror publish`
hand out what it makes, so both give the same bytes. Nothing here reads a store or a clock.
"""
