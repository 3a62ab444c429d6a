"""The soak: days of virtual time, all faults from one seed, and a judge that trusts nothing.

`service` is the daemon's own work in a child process that is really killed; `trouble` draws what
goes wrong; `judge` recomputes everything from what the stand-ins know. `python -m benchmarks.soak`.
"""
