"""The command behind `bench/run`: measures, prints, writes the report as JSON and pictures."""

import json
import signal
import sys
import time

from . import conditions, latency, layers, measure, report, wal, whole
from .database import Cluster
from .lines import LINES
from .load import Load
from .options import options
from .place import Place
from .systems import Baseline, Ichido


def say(text):
    print(f"  {text}", file=sys.stderr, flush=True)


def lines(bench, chosen):
    """All rounds of the chosen lines."""
    wanted = [line for line in LINES if not chosen.only or line.key in chosen.only]
    rounds = {line.key: [] for line in wanted}
    for turn in range(chosen.rounds):
        for line in wanted:
            found = bench.line(line, turn)
            rounds[line.key].append(found)
            rates = ", ".join(f"{name} {each['rate']:,.0f}/s" for name, each in found.items())
            say(f"round {turn + 1}: {line.key}: {rates}")
    return {line.key: measure.summary(line, rounds[line.key]) for line in wanted}


def run(chosen):
    place = Place.from_environment()
    cluster, load = Cluster(place), Load(place)
    postgres, sqlite = (Ichido(place, cluster, engine) for engine in ("postgres", "sqlite"))
    systems = [postgres, sqlite, Baseline(place, cluster)]
    bench = measure.Bench(place, cluster, load, systems, chosen.seconds)
    wants = lambda name: not chosen.only or name in chosen.only  # noqa: E731
    found = {
        "conditions": conditions.conditions(cluster, load, chosen.seconds, chosen.rounds),
        "lines": lines(bench, chosen),
    }
    if wants("wal"):
        say("WAL an event")
        found["wal"] = wal.measure(bench)
    if wants("sizes"):
        say("sizes")
        found["idle_bytes"] = {each.engine: whole.idle_bytes(each) for each in (postgres, sqlite)}
        found["binary_bytes"] = whole.binary_bytes(place)
        found["crates"] = whole.crates()
    if chosen.build:
        say("a clean release build")
        found["build"] = whole.clean_build(place)
    if wants("latency") and not chosen.quick:
        found["latency"] = latency.curves(bench, found["lines"], min(chosen.seconds, 4), say)
    if chosen.layers:
        say("where the time goes")
        profiled = Ichido(place, cluster, "postgres", place.profiled)
        found["layers"] = layers.measure(bench, profiled, chosen.seconds)
    return found


def main():
    chosen = options()
    # Ends like an error does: everything that was started is stopped on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    start = time.monotonic()
    found = run(chosen)
    print(report.whole(found))
    if chosen.json:
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps(found, indent=2) + "\n")
        say(f"report: {chosen.json}")
    if chosen.pictures:
        from . import pictures

        chosen.pictures.mkdir(parents=True, exist_ok=True)
        if found["lines"]:
            pictures.throughput(found["lines"], chosen.pictures / "throughput.svg")
        if "latency" in found:
            pictures.latency(found["latency"], chosen.pictures / "latency.svg")
        say(f"pictures: {chosen.pictures}")
    say(f"took {(time.monotonic() - start) / 60:.1f} minutes")


main()
