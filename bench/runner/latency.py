"""Latency over load: at shares of what a system can do at most, how long does an event wait?

Requests are sent at a fixed rate, whatever the answers do, and latency counts from when a request
was due. So a stall counts for every event that it held up.
"""

import functools

from .lines import ASYNC, SYNC
from .measure import WARM_UP

SHARES = (10, 25, 50, 70, 80, 90, 95)
CONNECTIONS = 64
# A percentile is told where this many requests lie beyond it at least.
BEYOND = 2
SECONDS_MAX = 15  # a slow system is given longer, to have enough requests, but no longer than this

# The curve, its system, its path, and the line whose rate is its most.
CURVES = (
    ("ichido-postgres", ASYNC, "async"),
    ("ichido-postgres", SYNC, "sync"),
    ("baseline", ASYNC, "async"),
    ("baseline", SYNC, "sync"),
)


def curves(bench, results, seconds, say):
    """For each curve its most, and the percentiles at each share of it."""
    found = []
    for name, path, key in CURVES:
        with bench.systems[name].running() as running:
            send = functools.partial(
                bench.load.send, running.address, path, CONNECTIONS, strict=False
            )
            send(seconds=WARM_UP)
            most = results[key]["systems"][name]["rate"] if key in results else None
            most = most or send(seconds=seconds)["rate"]
            points = []
            for share in SHARES:
                say(f"latency of {name}, {key}, at {share} % of {most:,.0f}/s")
                bench.cluster.settle()
                points.append({"share": share, **_point(send, most * share / 100, seconds)})
        found.append({"system": name, "line": key, "most": most, "points": points})
    return found


def _point(send, rate, seconds):
    seconds = max(seconds, min(SECONDS_MAX, 1000 * BEYOND / rate))
    got = send(seconds=seconds, rate=round(rate, 1))
    latency = got["latency_us"]
    if got["requests"] < 1000 * BEYOND:
        del latency["p999"]
    return {
        "offered": got["offered"],
        "rate": got["rate"],
        "requests": got["requests"],
        "not_ok": got["requests"] - got["ok"] + got["unsent"],
        "latency_us": latency,
    }
