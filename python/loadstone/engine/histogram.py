"""Decodes, encodes and adds HDR histograms in the engine's format, and computes their quantiles.

The `hdrhistogram` package (0.10.8) is not used: it needs setuptools and pbr at run time, has C code and no types, and,
unlike the engine and Java's HdrHistogram, does not round ranks up. The format is HdrHistogram's V2, bare or deflated,
in base64 (Tene, <https://github.com/HdrHistogram/HdrHistogram>, `AbstractHistogram.encodeIntoByteBuffer`).
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

COOKIE = 0x1C849313
COOKIE_DEFLATED = 0x1C849314
# Cookie, bytes of counts, index offset, significant digits, lowest and highest trackable value, conversion ratio.
HEADER = struct.Struct(">iiiiqqd")
# A quantile with fewer samples above it than this is mostly chance (the check `too-few-samples`).
SAMPLES_ABOVE = 10


@dataclass(frozen=True)
class Layout:
    """The assignment of values to buckets; histograms with the same layout can be added exactly."""

    digits: int = 3
    lowest: int = 1

    def highest_equivalent(self, index: int) -> int:
        """The largest value of a bucket."""
        unit_bits = self.lowest.bit_length() - 1
        half_bits = (2 * int(10**self.digits) - 1).bit_length() - 1
        bits = max((index >> half_bits) - 1, 0)
        base = index - (bits << half_bits)
        return ((base + 1) << (bits + unit_bits)) - 1

    def lowest_equivalent(self, index: int) -> int:
        """The smallest value of a bucket."""
        return self.highest_equivalent(index - 1) + 1 if index else 0

    def bucket_middle(self, index: int) -> float:
        """The value that represents a bucket in a mean."""
        return (self.lowest_equivalent(index) + self.highest_equivalent(index)) / 2


@dataclass
class Histogram:
    """The counts of values, which are in the unit in which they were recorded (ns in the engine's histograms)."""

    layout: Layout = field(default_factory=Layout)
    counts: Counter[int] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        """The number of values."""
        return self.counts.total()

    def add_histogram(self, other: Histogram) -> None:
        """Adds another histogram exactly. Raises ValueError if its buckets differ."""
        if self.counts and other.counts and self.layout != other.layout:
            raise ValueError(f"histograms of {self.layout} and {other.layout} cannot be added")
        if other.counts:
            self.layout = other.layout
        self.counts.update(other.counts)

    def value_at_quantile(self, share: float) -> int:
        """The quantile for `share` (0.99 is the 99th percentile), rounded up to the end of its bucket.

        Raises ValueError if there are no values.
        """
        if not self.counts:
            raise ValueError("an empty histogram has no quantiles")
        # 0.999 is treated as a decimal, not as a rounded float: for 1,000 values, its rank is 999, not 1,000.
        rank = max(math.ceil(Fraction(str(share)) * self.count), 1)
        count = 0
        for index in sorted(self.counts):
            count += self.counts[index]
            if count >= rank:
                return self.layout.highest_equivalent(index)
        raise ValueError(f"a quantile is a share between 0 and 1, not {share}")

    @property
    def mean(self) -> float:
        """The mean, with each value counted at the middle of its bucket. Raises ValueError if there are no values."""
        if not self.counts:
            raise ValueError("an empty histogram has no mean")
        total = sum(count * self.layout.bucket_middle(index) for index, count in self.counts.items())
        return total / self.count

    @property
    def minimum(self) -> int:
        """The smallest value, rounded down to the start of its bucket. Raises ValueError if there are no values."""
        return self.layout.lowest_equivalent(min(self.counts))

    def supports_quantile(self, share: float) -> bool:
        """Whether there are enough values above this quantile for it to be meaningful."""
        return self.count * (1 - Fraction(str(share))) >= SAMPLES_ABOVE


def decode_histogram(text: str) -> Histogram:
    """Decodes a histogram. Raises ValueError if it is damaged or in another format."""
    try:
        data = base64.b64decode(text, validate=True)
        (cookie,) = struct.unpack_from(">i", data)
        if cookie == COOKIE_DEFLATED:
            data = zlib.decompress(data[8:])
            (cookie,) = struct.unpack_from(">i", data)
        if cookie != COOKIE:
            raise ValueError(f"not an HDR histogram V2: it starts with {cookie & 0xFFFFFFFF:#x}")
        _, length, offset, digits, lowest, _, _ = HEADER.unpack_from(data)
    except (binascii.Error, struct.error, zlib.error) as error:
        raise ValueError(f"not an HDR histogram: {error}") from error
    payload = data[HEADER.size : HEADER.size + length]
    if len(payload) != length or offset != 0:
        raise ValueError(
            f"not an HDR histogram of the load generator: {len(payload)} of {length} bytes, offset {offset}"
        )
    counts: Counter[int] = Counter()
    index = 0
    for number in decode_numbers(payload):
        # A negative number is a run of empty buckets.
        if number < 0:
            index -= number
            continue
        if number:
            counts[index] = number
        index += 1
    return Histogram(Layout(digits, lowest), counts)


def decode_numbers(payload: bytes) -> Iterator[int]:
    """Reads ZigZag LEB128 numbers of at most 9 bytes; a ninth byte has no continuation bit."""
    value = shift = 0
    for byte in payload:
        if shift == 56:
            value |= byte << shift
        else:
            value |= (byte & 0x7F) << shift
            if byte & 0x80:
                shift += 7
                continue
        yield (value >> 1) ^ -(value & 1)
        value = shift = 0
    if shift:
        raise ValueError("not an HDR histogram: it ends within a number")


def encode_histogram(histogram: Histogram) -> str:
    """Encodes a histogram; the inverse of `decode_histogram`."""
    payload, following = bytearray(), 0
    for index in sorted(histogram.counts):
        if index > following:
            payload += encode_number(following - index)
        payload += encode_number(histogram.counts[index])
        following = index + 1
    layout = histogram.layout
    highest = max(layout.highest_equivalent(max(following - 1, 0)), 2 * layout.lowest)
    head = HEADER.pack(COOKIE, len(payload), 0, layout.digits, layout.lowest, highest, 1.0)
    deflated = zlib.compress(head + bytes(payload))
    return base64.b64encode(struct.pack(">ii", COOKIE_DEFLATED, len(deflated)) + deflated).decode()


def encode_number(number: int) -> bytes:
    """A number in the encoding that `decode_numbers` reads."""
    value, encoded = (number << 1) ^ (number >> 63), bytearray()
    while value >= 0x80 and len(encoded) < 8:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
