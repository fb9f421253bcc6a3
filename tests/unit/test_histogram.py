"""Histograms written by the engine and read by the lab."""

from __future__ import annotations

import base64
import struct
import zlib
from collections import Counter

import pytest

from loadstone.engine.histogram import Histogram, decode_histogram

# Created by the package hdrhistogram 0.10.8 from the values below, and from 2^40 values of 10^11.
OF_ANOTHER_LIBRARY = "HISTFAAAADt4nJNpmSzMwMAgwwABzFCaEch0M9ixgMH+A0SAiemnPBPTX36mg8wX+E97MV08z8i0O7MBBBwAVH4O1g=="
VALUES = (0, 1, 2_047, 2_048, 4_096, *[5_000] * 1_000, 123_456, 10**9)


def test_a_histogram_of_another_library_is_read() -> None:
    histogram = decode_histogram(OF_ANOTHER_LIBRARY)
    assert histogram.count == len(VALUES) + 2**40
    # The highest values of the buckets at three digits.
    ends = [0, 1, 2_047, 2_049, 4_099, 5_003, 123_519, 1_000_341_503]
    assert [histogram.layout.highest_equivalent(index) for index in sorted(histogram.counts)][:-1] == ends
    assert histogram.value_at_quantile(1) == histogram.value_at_quantile(0.5) == 100_059_316_223


def test_a_quantile_is_of_the_rank_rounded_up() -> None:
    histogram = Histogram(counts=Counter(dict.fromkeys(range(1_000), 1)))
    assert [histogram.value_at_quantile(share) for share in (0, 0.0005, 0.5, 0.95, 0.99, 0.999, 1)] == [
        0,
        0,
        499,
        949,
        989,
        998,
        999,
    ]
    with pytest.raises(ValueError, match="empty"):
        Histogram().value_at_quantile(0.5)
    with pytest.raises(ValueError, match="share between 0 and 1"):
        histogram.value_at_quantile(1.5)


def test_a_quantile_needs_ten_values_above_it() -> None:
    histogram = Histogram(counts=Counter({5: 1_000}))
    assert [histogram.supports_quantile(share) for share in (0.5, 0.99, 0.991, 0.999)] == [True, True, False, False]


@pytest.mark.parametrize("damage", ["", "HIST", "====", "!!!", base64.b64encode(b"\x1c\x84\x93\x13" * 20).decode()])
def test_a_damaged_histogram_is_refused(damage: str) -> None:
    with pytest.raises(ValueError, match="not an HDR histogram"):
        decode_histogram(damage)


def test_bare_and_deflated_histograms_are_the_same() -> None:
    deflated = base64.b64decode(OF_ANOTHER_LIBRARY)
    bare = zlib.decompress(deflated[8:])
    assert decode_histogram(base64.b64encode(bare).decode()) == decode_histogram(OF_ANOTHER_LIBRARY)
    with pytest.raises(ValueError, match="not an HDR histogram of the load generator: 16 of 17 bytes"):
        decode_histogram(base64.b64encode(bare[:4] + struct.pack(">i", 17) + bare[8:56]).decode())
