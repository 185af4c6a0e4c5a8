"""Measures each line of the table in turn, round after round, and reports ratios."""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import machine
import parties
import pictures
import report

TARGET = parties.ROOT / "target"


def options():
    """The command line; `bench/run --help` describes it."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--work", required=True)
    parser.add_argument("--postmaster", type=int, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, default=TARGET / "bench.json")
    parser.add_argument("--pictures", type=pathlib.Path)
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.seconds = 1, 2
    return chosen


@contextlib.contextmanager
def serving(server):
    """A server that is stopped whatever happens."""
    try:
        yield server
    finally:
        server.stop()


def one_round(postgres, chosen, log):
    """Every reading once. Each party starts with an empty database."""
    seconds, work = chosen.seconds, chosen.work
    reading = {}

    def step(name, measure):
        print(f"  {name} ...", flush=True)
        reading[name] = measure()

    def load(server, path, *more, **how):
        return lambda: parties.load(server, postgres, path, *more, seconds=seconds, **how)

    url = postgres.fresh("usual", parties.BENCH / "baseline/schema.sql")
    with serving(parties.baseline(url, log)) as usual:
        step("baseline async", load(usual, "/async"))
        step("baseline sync", load(usual, "/sync"))
        step("baseline duplicates", load(usual, "/async", "--duplicates", "90"))
    step("pgbench insert", lambda: postgres.pgbench("insert.sql", 32, int(seconds), work))
    url = postgres.fresh("ichido")
    with serving(parties.ichido(url, work, log, migrate=True)) as server:
        time.sleep(1)
        reading["idle memory MB"] = machine.memory_mb(server.process.pid)
        step("ichido async", load(server, "/webhooks/async"))
        step("ichido sync", load(server, "/webhooks/sync"))
        step("ichido sync 16", load(server, "/webhooks/sync", connections=16))
        step("ichido duplicates", load(server, "/webhooks/async", "--duplicates", "90"))
        step("ichido http", load(server, "/webhooks/async", "--forged"))
        reading["busy memory MB"] = machine.memory_mb(server.process.pid)
    step("pgbench sync", lambda: postgres.pgbench("sync.sql", 8, int(seconds), work))
    for file in pathlib.Path(work).glob("bench.db*"):
        file.unlink()
    with serving(parties.ichido(f"sqlite:{work}/bench.db", work, log, migrate=False)) as server:
        step("sqlite async", load(server, "/webhooks/async"))
        step("sqlite sync", load(server, "/webhooks/sync"))
    return reading


def crates():
    """Crates in the server's build."""
    done = subprocess.run(
        ["cargo", "tree", "-p", "ichido-server", "-e", "normal,build", "--prefix", "none"],
        capture_output=True, text=True, check=True, cwd=parties.ROOT,
    )
    return len({line.split(" (")[0] for line in done.stdout.splitlines() if line.strip()})


def main():
    """Measures, reports, writes."""
    chosen = options()
    postgres = parties.Postgres(os.environ["ICHIDO_TEST_POSTGRES"], chosen.postmaster)
    conditions = machine.conditions(postgres) | {
        "payload_bytes": parties.PAYLOAD.stat().st_size - 1,
        "seconds": chosen.seconds,
        "rounds": chosen.rounds,
        "date": time.strftime("%Y-%m-%d"),
    }
    rounds = []
    with open(pathlib.Path(chosen.work) / "servers.log", "w") as log:
        for number in range(chosen.rounds):
            print(f"round {number + 1} of {chosen.rounds}", flush=True)
            rounds.append(one_round(postgres, chosen, log))
        whole = {
            "conditions": conditions,
            "binary_mb": (TARGET / "release/ichido").stat().st_size / 1e6,
            "crates": crates(),
            "idle_memory_mb": statistics.median(r["idle memory MB"] for r in rounds),
            "rounds": rounds,
        }
        if chosen.pictures:
            whole["over_load"] = pictures.measure(postgres, chosen, log, rounds)
            pictures.draw(whole, chosen.pictures)
    whole["table"] = report.table(whole)
    chosen.json.parent.mkdir(parents=True, exist_ok=True)
    chosen.json.write_text(json.dumps(whole, indent=1) + "\n")
    print("\n" + report.text(whole))
    print(f"\nevery reading: {chosen.json}")


if __name__ == "__main__":
    sys.exit(main())
