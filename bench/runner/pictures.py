"""Latency over load, at fixed rates, drawn as SVG.

Latency counts from when a delivery was due, so that a stall is seen by all who had to wait.
"""

import statistics

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plot  # noqa: E402 (the backend comes first)

import parties  # noqa: E402

SHARES = (0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.95)
CURVES = (
    ("Ichido, async", "ichido async", "#0b6e4f"),
    ("Ichido, sync with billing", "ichido sync", "#1f5fa8"),
    ("usual receiver, async", "baseline async", "#b5541c"),
    ("usual receiver, sync", "baseline sync", "#8a6d3b"),
)


def measure(postgres, chosen, log, rounds):
    """Readings at shares of each party's own highest rate."""
    def curve(server, path, name):
        most = statistics.median(r[name]["rate_per_s"] for r in rounds)
        points = []
        for share in SHARES:
            print(f"  {name} at {share:.0%} ...", flush=True)
            reading = parties.load(server, postgres, path, "--rate", str(most * share),
                                   seconds=min(chosen.seconds, 5))
            points.append({"rate_per_s": reading["rate_per_s"], **reading["latency_us"]})
        return points

    found = {}
    url = postgres.fresh("ichido")
    server = parties.ichido(url, chosen.work, log, migrate=True)
    try:
        found["ichido async"] = curve(server, "/webhooks/async", "ichido async")
        found["ichido sync"] = curve(server, "/webhooks/sync", "ichido sync")
    finally:
        server.stop()
    url = postgres.fresh("usual", parties.BENCH / "baseline/schema.sql")
    server = parties.baseline(url, log)
    try:
        found["baseline async"] = curve(server, "/async", "baseline async")
        found["baseline sync"] = curve(server, "/sync", "baseline sync")
    finally:
        server.stop()
    return found


def draw(whole, folder):
    """latency.svg and throughput.svg."""
    folder.mkdir(parents=True, exist_ok=True)
    plot.rcParams.update({"font.size": 10, "svg.hashsalt": "ichido", "axes.grid": True,
                          "grid.color": "#e4e4e4", "axes.axisbelow": True})
    figure, axes = plot.subplots(1, 3, figsize=(13, 4.2), sharey=True)
    for axis, quantile in zip(axes, ("p50", "p99", "p99.9")):
        for label, name, colour in CURVES:
            points = whole["over_load"][name]
            axis.plot([p["rate_per_s"] for p in points], [p[quantile] / 1000 for p in points],
                      marker="o", markersize=3, color=colour, label=label)
        axis.set(title=quantile, xlabel="events a second", xscale="log", yscale="log")
    axes[0].set_ylabel("latency, ms")
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(folder / "latency.svg", metadata={"Date": None})
    figure, axis = plot.subplots(figsize=(8, 3.4))
    names = ("baseline sync", "baseline async", "pgbench sync", "pgbench insert", "ichido sync",
             "ichido async", "ichido duplicates", "sqlite sync", "sqlite async")
    rates = [statistics.median(r[name]["rate_per_s"] for r in whole["rounds"]) for name in names]
    ours = ["#0b6e4f" if name.startswith(("ichido", "sqlite")) else "#b9b9b9" for name in names]
    bars = axis.barh(names, rates, color=ours)
    axis.bar_label(bars, [f"{rate:,.0f}" for rate in rates], padding=3)
    axis.set_xlabel("events a second, 2.6 KB, durable")
    axis.margins(x=0.12)
    figure.tight_layout()
    figure.savefig(folder / "throughput.svg", metadata={"Date": None})
