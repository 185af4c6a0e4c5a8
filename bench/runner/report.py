"""The table for people, in Markdown, so that it can stand in docs/benchmarks.md as it is.

It must show a missed target as missed.
"""

from .conditions import sentence
from .lines import BASELINE, ICHIDO, PGBENCH, SQLITE

SHORT = {ICHIDO: "Ichido", SQLITE: "Ichido, SQLite", BASELINE: "baseline", PGBENCH: "pgbench"}

WAL = (
    ("received", "async, received", None, ""),
    ("async", "async, received and processed", 0.8, "0.8x"),
    ("sync", "sync, received and processed", 0.8, "0.8x"),
)


def _table(head, rows):
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |"
        for row in lines
    )


def _mark(value, least=None, most=None):
    if least is None and most is None:
        return ""
    held = value >= least if least is not None else value <= most
    return " ✓" if held else " ✗"


def _rate(result, name):
    found = result["systems"].get(name)
    return f"{found['rate']:,.0f}" if found else ""


def _ratio(result, name):
    least = result["targets"]["ratios"].get(name)
    found = result["ratios"].get(name)
    if found is None:
        return f"not built yet (≥ {least:g}x)" if least else ""
    wanted = f" (≥ {least:g}x{_mark(found['median'], least=least)})" if least else ""
    digits = 1 if found["median"] >= 2 else 2
    return f"{found['median']:.{digits}f}x{wanted}"


def speed(results):
    """Rates and ratios."""
    rows = []
    for result in results.values():
        subject = SQLITE if SQLITE in result["systems"] else ICHIDO
        rate, least = _rate(result, subject), result["targets"]["rate"]
        if least:
            value = result["systems"][subject]["rate"]
            rate += f" (≥ {least:,}{_mark(value, least=least)})"
        other = ICHIDO if subject == SQLITE else BASELINE
        other_rate = _rate(result, other)
        if subject == SQLITE:
            other_rate += " (PostgreSQL)"
        rows.append(
            [result["title"], rate, other_rate, _ratio(result, other), _rate(result, PGBENCH),
             _ratio(result, PGBENCH)]
        )  # fmt: skip
    head = ["work", "Ichido, per s", "baseline, per s", "ratio", "pgbench, per s", "ratio"]
    return _table(head, rows)


def cost(results):
    """Latency, and whose processor time an event takes."""
    rows = []
    for key, result in results.items():
        for name, found in result["systems"].items():
            cpu, latency = found["cpu_us"], found["latency_us"]
            ms = [
                f"{latency[at] / 1000:.1f}" if latency.get(at) is not None else ""
                for at in ("p50", "p99", "p999")
            ]
            us = [
                f"{cpu[at]:.0f}" if at in cpu else "" for at in ("server", "postgres", "generator")
            ]
            us.append(f"{sum(cpu.values()):.0f}" if cpu else "")
            if any(ms) or any(us):
                rows.append([key, SHORT[name], *ms, *us])
    head = ["line", "system", "p50 ms", "p99 ms", "p99.9 ms", "server µs", "PostgreSQL µs",
            "generator µs", "all µs"]  # fmt: skip
    return _table(head, rows)


def sizes(found):
    """What is no rate: bytes, megabytes, crates, minutes."""
    rows = []

    def row(what, value, text, most, most_text):
        rows.append([what, text, f"≤ {most_text}{_mark(value, most=most)}" if most else ""])

    for key, title, most, most_text in WAL:
        if each := found.get("wal", {}).get(key):
            text = f"{each[ICHIDO]:,.0f} B, one table {each[BASELINE]:,.0f} B: {each['ratio']:.2f}x"
            row(f"WAL an event, {title}", each["ratio"], text, most, most_text)
    for engine, value in found.get("idle_bytes", {}).items():
        row(f"idle server on {engine}, resident", value, f"{value / 1e6:.1f} MB", 30e6, "30 MB")
    if "binary_bytes" in found:
        value = found["binary_bytes"]
        row("release binary", value, f"{value / 1e6:.1f} MB", 25e6, "25 MB")
    if "crates" in found:
        value = found["crates"]
        text = f"{value['normal']} ({value['with_build']} with those of the build)"
        row("crates, default features", value["with_build"], text, 300, "300")
    if "build" in found:
        value = found["build"]["seconds"]
        row("clean release build", value, f"{value / 60:.1f} min", 360, "6 min")
    return _table(["what", "measured", "target"], rows) if rows else ""


def layers(found):
    """Processor time by layer, and latency without company."""
    rows = []
    for group, title in (("server", "server"), ("postgres", "PostgreSQL")):
        for layer in found["cpu"]["async"][group]:
            us = [f"{found['cpu'][key][group][layer]:.1f}" for key in ("async", "sync")]
            rows.append([f"{title}: {layer}", *us])
    rows.append(
        ["load generator", *(f"{found['cpu'][k]['generator_us']:.1f}" for k in ("async", "sync"))]
    )
    rows.append(
        [
            "events a transaction (no µs)",
            f"{found['cpu']['async']['events_per_transaction']:.1f}",
            "1",
        ]
    )
    head = ["layer", "async, µs", "sync, µs"]
    alone = [[what, f"{us / 1000:.2f}"] for what, us in found["alone"].items()]
    return _table(head, rows) + "\n\n" + _table(["one connection alone", "p50, ms"], alone)


def whole(report):
    """Everything that a reader needs, in the order in which it is asked for."""
    parts = [sentence(report["conditions"])]
    if report["lines"]:
        parts += [speed(report["lines"])]
    if text := sizes(report):
        parts += [text]
    if report["lines"]:
        parts += ["Latency, and processor time an event:", cost(report["lines"])]
    if "layers" in report:
        parts += ["Processor time an event by layer:", layers(report["layers"])]
    return "\n\n".join(parts)
