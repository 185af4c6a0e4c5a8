"""WAL bytes an event: what a system writes for durability, over as many events on each, from a
checkpoint on. Sync in one transaction; async first received, then claimed and processed.

Ichido's server has no workers yet, so the part of one is played here, by the public SQL functions
(`claim`, `start`, `sound`): what they write does not depend on who calls them.
"""

import json
import re

import psycopg
from psycopg.types.json import Jsonb

from .lines import ASYNC, BASELINE, ICHIDO, SYNC
from .systems import BILLING
from .workers import run_baseline

EVENTS = 5_000
CLAIM = """
SELECT receipt, lease, event_id, occurred_at, body
  FROM ichido.claim(ARRAY['billing-async'], ARRAY['fresh'], 50, interval '1 minute')
"""


def measure(bench):
    """Bytes an event: received only (async), whole life (async), whole life (sync)."""
    found = {}
    for name in (ICHIDO, BASELINE):
        system = bench.systems[name]
        with system.running() as running, _Wal(bench.cluster) as written:
            _receive(bench, running, ASYNC, 64)
            found.setdefault("received", {})[name] = written.each()
            if name == ICHIDO:
                done = _process(f"{bench.cluster.url}/{running.database}")
            else:
                done = run_baseline(system, running.database, processes=2)["events"]
            if done != EVENTS:
                raise RuntimeError(f"{name} processed {done} of {EVENTS} events")
            found.setdefault("async", {})[name] = written.each()
        with system.running() as running, _Wal(bench.cluster) as written:
            _receive(bench, running, SYNC, 16)
            found.setdefault("sync", {})[name] = written.each()
    for each in found.values():
        each["ratio"] = each[ICHIDO] / each[BASELINE]
    return found


class _Wal:
    def __init__(self, cluster):
        self.cluster = cluster

    def __enter__(self):
        self.cluster.settle()
        self.before = self.cluster.wal_bytes()
        return self

    def __exit__(self, *_):
        pass

    def each(self):
        return (self.cluster.wal_bytes() - self.before) / EVENTS


def _receive(bench, running, path, connections):
    bench.load.send(running.address, path, connections, count=EVENTS, seconds=120)
    if running.stored() != EVENTS:
        raise RuntimeError(f"{running.stored()} of {EVENTS} events were stored")


def _handler():
    """The billing handler, with its parameters as psycopg writes them."""
    text = (BILLING / "postgres/invoice_paid.sql").read_text()
    return re.sub(r"(?<!:):([a-z_]+)", r"%(\1)s", text)


def _process(url):
    """Claims and processes until nothing is due; says how many."""
    handler, done = _handler(), 0
    with psycopg.connect(url, autocommit=True) as connection:
        while claimed := connection.execute(CLAIM).fetchall():
            for receipt, lease, event_id, occurred_at, body in claimed:
                with connection.transaction():
                    start = "SELECT xid FROM ichido.start(%s, %s)"
                    xid = connection.execute(start, (receipt, lease)).fetchone()[0]
                    connection.execute(
                        handler,
                        {
                            "payload": Jsonb(json.loads(body)),
                            "occurred_at": occurred_at,
                            "endpoint": "billing-async",
                            "event_id": event_id,
                        },
                    )
                    connection.execute("SELECT ichido.sound(%s)", (xid,))
                done += 1
    return done
