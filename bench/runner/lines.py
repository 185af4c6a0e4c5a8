"""The lines of the table: which work, on which systems, and what Ichido must reach.

A target is a ratio to another system's rate in the same round, or a rate.
"""

from dataclasses import dataclass, field

ASYNC = "/webhooks/billing-async"
SYNC = "/webhooks/billing"
HANDSHAKE = "/webhooks/handshake"

ICHIDO = "ichido-postgres"
SQLITE = "ichido-sqlite"
BASELINE = "baseline"
PGBENCH = "pgbench"


@dataclass(frozen=True)
class Line:
    key: str
    title: str
    systems: tuple
    subject: str = ICHIDO  # whose rate is compared
    path: str = ASYNC
    connections: int = 64
    duplicates: int = 0
    options: dict = field(default_factory=dict)  # further ones of the generator
    stores: bool = True
    pgbench: tuple = ()  # script and clients
    ratios: dict = field(default_factory=dict)  # system: least ratio
    rate: int | None = None  # least rate


# pgbench's clients are as many as gave it its best rate on two cores.
INSERT = ("insert.sql", 32)
BUSINESS = ("sync.sql", 8)

LINES = [
    Line(
        "async",
        "async receive, 64 connections",
        (ICHIDO, BASELINE, PGBENCH),
        pgbench=INSERT,
        ratios={BASELINE: 30, PGBENCH: 1.5},
    ),
    Line(
        "sync",
        "sync receive with the billing handler, 16 connections",
        (ICHIDO, BASELINE, PGBENCH),
        path=SYNC,
        connections=16,
        pgbench=BUSINESS,
        ratios={BASELINE: 10, PGBENCH: 1.2},
    ),
    Line(
        "duplicates",
        "90 % duplicates, async, 64 connections",
        (ICHIDO, BASELINE),
        duplicates=90,
        ratios={BASELINE: 30},
    ),
    Line(
        "verify",
        "HTTP + verification alone: signed handshakes",
        (ICHIDO,),
        path=HANDSHAKE,
        options={"provider": "slack"},
        stores=False,
        rate=40_000,
    ),
    Line(
        "forged",
        "HTTP + refusal: forged signatures, 400",
        (ICHIDO,),
        options={"forged": True, "expect": 400},
        stores=False,
    ),
    # The place of the workers' line: Ichido's part comes with its workers. Until then only the
    # baseline's loop is measured, by `workers.py`.
    Line(
        "workers",
        "workers, billing handler, one transaction an event",
        (BASELINE,),
        path="",
        ratios={BASELINE: 10},
    ),
    Line(
        "sqlite-async",
        "SQLite: async receive, 64 connections",
        (SQLITE, ICHIDO),
        subject=SQLITE,
        ratios={ICHIDO: 1},
    ),
    Line(
        "sqlite-sync",
        "SQLite: sync receive with the billing handler, 16 connections",
        (SQLITE, ICHIDO),
        subject=SQLITE,
        path=SYNC,
        connections=16,
    ),
]
KEYS = [line.key for line in LINES]
