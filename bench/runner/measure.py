"""Rounds: in each, every line is measured on every system, one after the other, so that a
machine that changes its mind changes it for all of them. Ratios are taken within a round.
"""

import functools
import statistics

from . import workers
from .lines import PGBENCH
from .processes import cpu_seconds

WARM_UP = 1.0  # seconds; connections, caches and plans are there after it


class Bench:
    """One run: its systems, its load and its results."""

    def __init__(self, place, cluster, load, systems, seconds):
        self.place, self.cluster, self.load, self.seconds = place, cluster, load, seconds
        self.systems = {system.name: system for system in systems}

    def line(self, line, turn):
        """One round of a line: the result of each of its systems, taken in rotated order."""
        names = list(line.systems)
        shift = turn % len(names)
        return {name: self._figure(line, name) for name in names[shift:] + names[:shift]}

    def _figure(self, line, name):
        if line.key == "workers":
            return workers.baseline(self.systems[name], self.load, self.seconds)
        if name == PGBENCH:
            return self._pgbench(line)
        with self.systems[name].running() as running:
            send = functools.partial(
                self.load.send, running.address, line.path, line.connections,
                duplicates=line.duplicates, **line.options,
            )  # fmt: skip
            warm = send(seconds=WARM_UP)
            self.cluster.settle()
            with Cpu(self.place, running) as cpu:
                found = send(seconds=self.seconds)
            found["cpu"] = {"generator": found["cpu_us"], **cpu.each(found["requests"])}
            events = warm["events"] + found["events"] if line.stores else 0
            if (stored := running.stored()) != events:
                raise RuntimeError(f"{name} holds {stored} events, {events} were acknowledged")
            return found

    def _pgbench(self, line):
        script, clients = line.pgbench
        with self.cluster.fresh(self.systems["baseline"].template()) as name:
            url = f"{self.cluster.url}/{name}"
            self.load.pgbench(script, url, clients, int(WARM_UP))
            self.cluster.settle()
            with Cpu(self.place, None) as cpu:
                found = self.load.pgbench(script, url, clients, max(1, round(self.seconds)))
            found["cpu"] = {"generator": found["cpu_us"], **cpu.each(found["requests"])}
            return found


class Cpu:
    """Processor time of the server and of PostgreSQL while something runs."""

    def __init__(self, place, running):
        self.groups = {"postgres": place.pg_process}
        if running:
            self.groups["server"] = running.pid

    def __enter__(self):
        self.before = {name: cpu_seconds(pid) for name, pid in self.groups.items()}
        return self

    def __exit__(self, *_):
        self.used = {
            name: cpu_seconds(pid) - self.before[name] for name, pid in self.groups.items()
        }

    def each(self, count):
        """Microseconds for each of `count` events."""
        return {name: seconds * 1e6 / count for name, seconds in self.used.items()}


def summary(line, rounds):
    """Medians of a line over its rounds."""

    def middle(name, *path):
        values = []
        for found in rounds:
            value = found[name]
            for key in path:
                value = value.get(key) if value else None
            if value is not None:
                values.append(value)
        return statistics.median(values) if values else None

    systems = {}
    for name in line.systems:
        groups = rounds[0][name].get("cpu", {})
        systems[name] = {
            "rate": middle(name, "rate"),
            "rates": [found[name]["rate"] for found in rounds],
            "latency_us": {
                key: middle(name, "latency_us", key) for key in rounds[0][name]["latency_us"]
            },
            "cpu_us": {group: middle(name, "cpu", group) for group in groups},
        }
    ratios = {}
    if line.subject in line.systems:
        for other in line.systems:
            if other != line.subject:
                each = [found[line.subject]["rate"] / found[other]["rate"] for found in rounds]
                ratios[other] = {"median": statistics.median(each), "rounds": each}
    return {
        "title": line.title,
        "connections": line.connections,
        "systems": systems,
        "ratios": ratios,
        "targets": {"ratios": line.ratios, "rate": line.rate},
    }
