"""Broken inputs made of good ones: a few changes at once, of the kinds that parsers trip over."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

ODD = (
    b"", b"\0", b"\xff", b"\xff\xff\xff\xff", b"\x80" * 8, b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r",
    b"\n", b"\x1b[2J", b"\xe2\x80\xae", b"'", b'"', b"\\", b"<script>", b"../", b"%00", b"%s{0}",
    b"0", b"-1", b"1e999", b"NaN", b"9" * 20, b"1" * 5000, b"18446744073709551616", b"null",
    b"true", b"[]", b"{}", b'""', b"[" * 80, b'{"a":' * 80, b'"\\ud800"', b'"\\u0000"',
    b"\xf0\x9f\x98\x80", b"0001-01-01T00:00:00Z", b"9999-12-31T23:59:60Z", b"\xd9\xa1", b"\xc2\xb2",
)  # fmt: skip
"""What reads differently from what it looks like, in some format or other."""
_NUMBER = re.compile(rb"-?[0-9]+")
_VALUE = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null')
_NUMBERS = (0, 1, -1, 2, 31, 32, 33, 127, 128, 255, 256, 65_535, 2**31, 2**32, 2**53, 2**63, 2**64)


class Mutator:
    """Makes broken inputs; the same seed makes the same ones.

    Args:
        seed: where the dice begin.
        words: what the format at hand is made of.
        longest: no input is longer.
    """

    def __init__(
        self, seed: int | str, words: Sequence[bytes] = (), longest: int = 1 << 16
    ) -> None:
        self._dice = random.Random(seed)
        self._words = (*words, *ODD)
        self._longest = longest
        self._ways: tuple[Callable[[bytes], bytes], ...] = (
            self._flip, self._byte, self._cut, self._drop, self._insert, self._repeat, self._number,
            self._value, self._value, self._width, self._swap, self._replace,
        )  # fmt: skip

    def broken(self, pool: Sequence[bytes]) -> bytes:
        """Return an input made of those in the pool, one to five changes away from them."""
        dice = self._dice
        data = dice.choice(pool)
        if dice.random() < 0.1:
            data = self._spliced(data, dice.choice(pool))
        for _ in range(min(dice.choice((1, 1, 1, 2, 3, 5)), 5)):
            data = dice.choice(self._ways)(data)
        return data[: self._longest]

    def grown(self, data: bytes, word: bytes, size: int) -> bytes:
        """Return an input of about `size` bytes, most of it one word over and over."""
        place = self._dice.randrange(len(data) + 1)
        return data[:place] + word * max(1, size // len(word)) + data[place:]

    def _place(self, data: bytes) -> int:
        return self._dice.randrange(len(data) + 1)

    def _span(self, data: bytes) -> tuple[int, int]:
        start = self._place(data)
        return start, min(len(data), start + self._dice.choice((1, 1, 2, 4, 8, 32, 256)))

    def _flip(self, data: bytes) -> bytes:
        if not data:
            return data
        place = self._dice.randrange(len(data))
        return (
            data[:place] + bytes([data[place] ^ 1 << self._dice.randrange(8)]) + data[place + 1 :]
        )

    def _byte(self, data: bytes) -> bytes:
        place = self._place(data)
        return data[:place] + bytes([self._dice.randrange(256)]) + data[place + 1 :]

    def _cut(self, data: bytes) -> bytes:
        return data[: self._place(data)]

    def _drop(self, data: bytes) -> bytes:
        start, stop = self._span(data)
        return data[:start] + data[stop:]

    def _insert(self, data: bytes) -> bytes:
        place = self._place(data)
        return data[:place] + self._dice.choice(self._words) + data[place:]

    def _replace(self, data: bytes) -> bytes:
        start, stop = self._span(data)
        return data[:start] + self._dice.choice(self._words) + data[stop:]

    def _repeat(self, data: bytes) -> bytes:
        start, stop = self._span(data)
        return data[:stop] + data[start:stop] * self._dice.choice((1, 2, 9, 70, 300)) + data[stop:]

    def _swap(self, data: bytes) -> bytes:
        (a, b), (c, d) = sorted((self._span(data), self._span(data)))
        return data if c < b else data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]

    def _spliced(self, data: bytes, other: bytes) -> bytes:
        return data[: self._place(data)] + other[self._place(other) :]

    def _number(self, data: bytes) -> bytes:
        return self._one_of(_NUMBER, data, lambda: str(self._dice.choice(_NUMBERS)).encode())

    def _value(self, data: bytes) -> bytes:
        """Replace a value of JSON by another one, often of another type."""
        values = (b"null", b"true", b"0", b"-1", b"1.5", b"[]", b"{}", b'""', b'"x"', b"1e400",
                  b'"\\u0000"', b"10000000000000000000000")  # fmt: skip
        return self._one_of(_VALUE, data, lambda: self._dice.choice(values))

    def _one_of(self, what: re.Pattern[bytes], data: bytes, by: Callable[[], bytes]) -> bytes:
        found = [match.span() for match in what.finditer(data[: 1 << 14])]
        if not found:
            return data
        start, stop = self._dice.choice(found)
        return data[:start] + by() + data[stop:]

    def _width(self, data: bytes) -> bytes:
        """Overwrite a number of one of the usual widths, as lengths and counts are."""
        width = self._dice.choice((1, 2, 4, 8))
        number = self._dice.choice(_NUMBERS) % (1 << 8 * width)
        place = self._place(data)
        raw = number.to_bytes(width, self._dice.choice(("big", "little")))
        return data[:place] + raw + data[place + width :]
