"""`python -m support.fuzzing --seconds 600`: every parser in turn, until the time is over.

From Python 3.12 on, inputs that reach new lines are kept and broken further. A fault is printed
with its input, made small, and the seed that finds it again.
"""

# ruff: noqa: T201 -- it prints

from __future__ import annotations

import argparse
import logging
import secrets
import sys
import time
from pathlib import Path

from support.fuzzing.engine import Fault, Target, grow, run
from support.fuzzing.targets import TARGETS


def main() -> int:
    """Fuzz; 1: a parser broke the law."""
    asked = _arguments()
    logging.disable(logging.CRITICAL)
    chosen = [one for one in TARGETS if asked.only in one.name]
    share = max(0.5, asked.seconds / max(1, len(chosen)))
    print(f"{len(chosen)} parsers, {share:.1f} s each, seed {asked.seed}")
    began, faults, total = time.monotonic(), 0, 0
    for target in chosen:
        try:
            count = _fuzz(target, asked.seed, share)
        except Fault as fault:
            faults += 1
            print(f"FAULT {fault}\n{_kept(fault, Path(asked.found))}")
        else:
            total += count
            print(f"{target.name}: {count:,} inputs", flush=True)
    print(f"{total:,} inputs in {time.monotonic() - began:.0f} s, {faults} faults")
    return 1 if faults else 0


def _fuzz(target: Target, seed: str, seconds: float) -> int:
    count = run(target, seed, seconds * 0.9)
    if target.grows:
        grow(target, seed, 1 << 17, 1 + int(seconds / 3))
    return count


def _kept(fault: Fault, folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{fault.target.replace(' ', '-')}-{secrets.token_hex(4)}"
    path.write_bytes(fault.data)
    return f"the input is in {path}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", default=secrets.token_hex(4), help="the same finds the same")
    parser.add_argument("--only", default="", help="parsers with this in their name")
    parser.add_argument("--found", default=".fuzz", help="where inputs of faults are put")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
