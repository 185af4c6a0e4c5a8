"""Draws what was measured: throughput, and latency over load. SVG with real text, small enough
to live in the repository. It must never draw an axis without its unit.
"""

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter  # noqa: E402

from .lines import BASELINE, ICHIDO, PGBENCH, SQLITE  # noqa: E402

# Colours that are told apart without red and green.
COLOURS = {ICHIDO: "#0b6e99", SQLITE: "#63b3cf", BASELINE: "#c2601d", PGBENCH: "#8a8a8a"}
NAMES = {
    ICHIDO: "Ichido on PostgreSQL",
    SQLITE: "Ichido on SQLite",
    BASELINE: "baseline (FastAPI, psycopg)",
    PGBENCH: "pgbench, the same work raw",
}
BARS = {
    "async": "async receive",
    "sync": "sync receive,\nbilling handler",
    "duplicates": "90 % duplicates",
    "sqlite-async": "SQLite,\nasync receive",
    "sqlite-sync": "SQLite, sync,\nbilling handler",
}
STYLE = {
    "svg.fonttype": "none",  # text as text
    "svg.hashsalt": "ichido",  # the same bytes for the same figures
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "figure.constrained_layout.use": True,
}
PERCENTILES = (("p50", "p50", "solid"), ("p99", "p99", "dashed"), ("p999", "p99.9", "dotted"))
THOUSANDS = FuncFormatter(lambda value, _: f"{value:,.0f}")
PLAIN = FuncFormatter(lambda value, _: f"{value:g}")


def _save(figure, path):
    figure.savefig(path, metadata={"Date": None, "Creator": None}, facecolor="white")
    plt.close(figure)


def throughput(results, path):
    """A group of bars for each line."""
    bars = [
        (key, name, result["systems"][name]["rate"])
        for key, result in results.items()
        if key in BARS
        for name in (ICHIDO, SQLITE, PGBENCH, BASELINE)
        if name in result["systems"] and not (name == ICHIDO and SQLITE in result["systems"])
    ]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(7.5, 0.6 + 0.42 * len(bars)))
        at, ticks, labels, seen = 0.0, [], [], set()
        for key in BARS:
            group = [bar for bar in bars if bar[0] == key]
            start = at
            for _, name, rate in group:
                label = NAMES[name] if name not in seen else None
                seen.add(name)
                axes.barh(at, rate, 0.85, color=COLOURS[name], label=label)
                axes.annotate(f"{rate:,.0f}", (rate, at), (4, 0), textcoords="offset points",
                              va="center")  # fmt: skip
                at += 1
            if group:
                ticks.append((start + at - 1) / 2)
                labels.append(BARS[key])
                at += 0.7
        axes.set_yticks(ticks, labels)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.xaxis.set_major_formatter(THOUSANDS)
        axes.margins(x=0.12)
        axes.set_xlabel("events per second")
        axes.legend(frameon=False, loc="lower right")
        _save(figure, path)


def latency(curves, path):
    """Two panels, async and sync: percentiles over the offered rate, both logarithmic."""
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(1, 2, figsize=(9.5, 4.6), sharey=True)
        for axes, kind in zip(panels, ("async", "sync")):
            for curve in (curve for curve in curves if curve["line"] == kind):
                for key, label, dashes in PERCENTILES:
                    points = [point for point in curve["points"] if key in point["latency_us"]]
                    axes.plot(
                        [point["offered"] for point in points],
                        [point["latency_us"][key] / 1000 for point in points],
                        linestyle=dashes, marker="o", markersize=3,
                        color=COLOURS[curve["system"]],
                        label=f"{NAMES[curve['system']].partition(' (')[0]}, {label}",
                    )  # fmt: skip
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.xaxis.set_major_formatter(THOUSANDS)
            axes.yaxis.set_major_formatter(PLAIN)
            axes.set_xlabel("offered events per second (log)")
            titles = {"async": "async receive", "sync": "sync receive, billing handler"}
            axes.set_title(titles[kind], fontsize=11)
        panels[0].set_ylabel("latency from when it was due, ms (log)")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, frameon=False, fontsize=9, ncols=2, loc="outside lower center"
        )
        _save(figure, path)
