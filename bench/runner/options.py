"""The options of `bench/run`. Needs nothing but Python itself, so that `--help` works at once."""

import argparse
import os
from pathlib import Path

from .lines import KEYS
from .place import ROOT


def _from_caller(text):
    """A path as it was meant where the command was typed."""
    return Path(os.environ.get("BENCH_CALLED_FROM", ".")) / text


def options():
    parser = argparse.ArgumentParser(
        prog="bench/run",
        description="Measures the baseline, pgbench and Ichido on both engines in turns, on a "
        "private PostgreSQL, and prints the table of docs/benchmarks.md.",
    )
    parser.add_argument("--seconds", type=float, default=6, help="each figure takes (default 6)")
    parser.add_argument("--rounds", type=int, default=3, help="of every line (default 3)")
    parser.add_argument(
        "--only", action="append", choices=[*KEYS, "wal", "sizes", "latency"], metavar="LINE",
        help=f"only this line; may be repeated: {', '.join(KEYS)}, wal, sizes, latency",
    )  # fmt: skip
    parser.add_argument(
        "--quick", action="store_true", help="2 seconds, one round, no latency over load"
    )
    parser.add_argument("--build", action="store_true", help="time a clean release build, too")
    parser.add_argument(
        "--layers", action="store_true", help="where the time goes, too: builds the server with "
        "frame pointers and runs it under perf, as root",
    )  # fmt: skip
    parser.add_argument("--json", type=_from_caller, metavar="FILE", help="where the report goes")
    parser.add_argument(
        "--pictures", type=_from_caller, metavar="DIR", help="where the pictures go (a whole run: "
        "docs/pictures; otherwise none)",
    )  # fmt: skip
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.seconds, chosen.rounds = 2, 1
    if not (0.5 <= chosen.seconds <= 600 and 1 <= chosen.rounds <= 100):
        parser.error("--seconds is from 0.5 to 600, --rounds from 1 to 100")
    if chosen.pictures is None and not chosen.only and not chosen.quick:
        chosen.pictures = ROOT / "docs/pictures"
    return chosen


if __name__ == "__main__":
    options()
