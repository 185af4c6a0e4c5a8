"""Latency over load: at shares of what a system can do at most, how long does an event wait?

Requests are sent at a fixed rate, whatever the answers do, and latency counts from when a request
was due. So a stall counts for every event that it held up.
"""

from .lines import ASYNC, SYNC
from .measure import WARM_UP

SHARES = (10, 25, 50, 70, 80, 90, 95)
CONNECTIONS = 64

# The curve, its system, its path, and the line whose rate is its most.
CURVES = (
    ("Ichido, async", "ichido-postgres", ASYNC, "async"),
    ("Ichido, sync", "ichido-postgres", SYNC, "sync"),
    ("baseline, async", "baseline", ASYNC, "async"),
    ("baseline, sync", "baseline", SYNC, "sync"),
)


def curves(bench, results, seconds, say):
    """For each curve its most, and the percentiles at each share of it."""
    found = []
    for title, name, path, key in CURVES:
        with bench.systems[name].running() as running:
            send = lambda seconds, **options: bench.load.send(  # noqa: E731
                running.address, path, CONNECTIONS, seconds=seconds, strict=False, **options
            )
            send(WARM_UP)
            most = results[key]["systems"][name]["rate"] if key in results else None
            most = most or send(seconds)["rate"]
            points = []
            for share in SHARES:
                say(f"latency of {title} at {share} % of {most:,.0f}/s")
                bench.cluster.settle()
                got = send(seconds, rate=round(most * share / 100, 1))
                unanswered = got["requests"] - got["ok"] + got["unsent"]
                points.append(
                    {
                        "share": share,
                        "offered": got["offered"],
                        "rate": got["rate"],
                        "not_ok": unanswered,
                        "latency_us": got["latency_us"],
                    }
                )
        found.append({"title": title, "system": name, "path": path, "most": most, "points": points})
    return found
