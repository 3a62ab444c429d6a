"""Fuzzing: every parser of foreign bytes is fed with broken ones, and held to its law.

The law: whatever the bytes, a parser returns a value or raises one of `anchord.errors`; time and
memory grow no faster than the input. `targets` lists who is fed; `finder` finds who is missing.
"""
