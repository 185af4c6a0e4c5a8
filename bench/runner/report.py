"""The table: each line as ratios of readings of the same round; the median of the rounds counts."""

import statistics

# Line, ours, what it is compared with: (name, theirs, what must be reached).
LINES = [
    ("async receive, 64 connections", "ichido async",
     [("baseline", "baseline async", 30), ("pgbench", "pgbench insert", 1.5)]),
    ("sync receive, billing handler, 64 connections", "ichido sync",
     [("baseline", "baseline sync", 10), ("pgbench", "pgbench sync", 1.2)]),
    ("sync receive, billing handler, 16 connections", "ichido sync 16",
     [("baseline", "baseline sync", 10), ("pgbench", "pgbench sync", 1.2)]),
    ("90 % duplicates", "ichido duplicates", [("baseline", "baseline duplicates", 30)]),
    ("HTTP and verification alone (forged signatures)", "ichido http", []),
    ("SQLite, async receive", "sqlite async", [("PostgreSQL", "ichido async", 1)]),
    ("SQLite, sync receive, billing handler", "sqlite sync", [("PostgreSQL", "ichido sync", 1)]),
]


def table(whole):
    """One row a line: rate, ratios, latency, processor time."""
    rows = []
    rounds = whole["rounds"]
    middle = lambda values: statistics.median(list(values))
    for name, ours, others in LINES:
        rate = middle(r[ours]["rate_per_s"] for r in rounds)
        ratios = [
            {
                "to": other,
                "ratio": middle(r[ours]["rate_per_s"] / r[theirs]["rate_per_s"] for r in rounds),
                "theirs_per_s": middle(r[theirs]["rate_per_s"] for r in rounds),
                "target": target,
            }
            for other, theirs, target in others
        ]
        latency = {key: middle(r[ours]["latency_us"][key] for r in rounds)
                   for key in ("p50", "p99", "p99.9")}
        cpu = {party: middle(r[ours]["cpu_us"][party] for r in rounds)
               for party in ("server", "postgresql", "generator")}
        rows.append({"line": name, "rate_per_s": rate, "ratios": ratios,
                     "latency_us": latency, "cpu_us": cpu})
    wal = [
        {"line": line, "ours": middle(r[ours]["wal_bytes"] for r in rounds),
         "theirs": middle(r[theirs]["wal_bytes"] for r in rounds)}
        for line, ours, theirs in (
            ("WAL bytes an event, received (work waits)", "ichido async", "pgbench insert"),
            ("WAL bytes an event, whole life (sync)", "ichido sync", "pgbench sync"),
        )
    ]
    return {"rates": rows, "wal": wal}


def text(whole):
    """The table in Markdown, with its conditions."""
    conditions, found = whole["conditions"], whole["table"]
    postgresql = conditions["postgresql"]
    lines = [
        f"{conditions['date']}, commit {conditions['commit']}, {conditions['processor']}, "
        f"{conditions['cores']} cores for everything, Linux {conditions['kernel']}, "
        f"PostgreSQL {postgresql['server_version']} (fsync {postgresql['fsync']}, "
        f"synchronous_commit {postgresql['synchronous_commit']}, shared_buffers "
        f"{postgresql['shared_buffers']}), {conditions['payload_bytes']} byte events, "
        f"{conditions['rounds']} rounds of {conditions['seconds']:g} s, medians.",
        "",
        "| work | events/s | ratio (target) | p50 / p99 / p99.9 ms | "
        "µs of processor an event: server, PostgreSQL, generator |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in found["rates"]:
        ratios = "; ".join(
            f"{r['ratio']:.2f} x {r['to']} of {r['theirs_per_s']:,.0f}/s ({r['target']})"
            for r in row["ratios"]
        ) or "(40,000/s)"
        latency = " / ".join(f"{row['latency_us'][key] / 1000:.1f}"
                             for key in ("p50", "p99", "p99.9"))
        cpu = ", ".join(f"{row['cpu_us'][party]:.0f}"
                        for party in ("server", "postgresql", "generator"))
        lines.append(f"| {row['line']} | {row['rate_per_s']:,.0f} | {ratios} | {latency} | {cpu} |")
    for row in found["wal"]:
        lines.append(f"| {row['line']} | {row['ours']:,.0f} | {row['ours'] / row['theirs']:.2f} x "
                     f"one table's {row['theirs']:,.0f} (0.8) | | |")
    lines.append(f"| idle server; binary; crates | {whole['idle_memory_mb']:.1f} MB; "
                 f"{whole['binary_mb']:.1f} MB; {whole['crates']} | (30 MB; 25 MB; 300) | | |")
    return "\n".join(lines)
