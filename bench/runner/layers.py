"""Where the time goes: processor time of an event by layer, from `perf`, and how long one event
takes that has the machine to itself. Uses a build that keeps its frame pointers; nothing of it
goes into the table of rates.
"""

import collections
import functools
import re
import signal
import subprocess

from .lines import ASYNC, HANDSHAKE, ICHIDO, SYNC
from .measure import Cpu
from .processes import output, tree

FREQUENCY = 997  # samples a second and core; prime, so that it does not beat with a timer

# A sample belongs to the first layer that a frame names, from the innermost frame outwards: what
# the kernel does for a socket belongs to whoever called it. (libc keeps no frame pointers, so its
# memory functions do not know their callers, and are a layer.)
MEMORY = (
    "malloc|_int_free|unlink_chunk|free@|cfree|realloc|brk|memmove|memset|memcpy|palloc|AllocSet"
)
SERVER = {
    "verification (HMAC, JSON, digest)": r"ichido_verify|\bsha2|\bhmac::",
    "database driver and its sockets": "tokio_postgres|postgres_(protocol|types)|deadpool",
    "inbox: route, queue, group": r"\bichido::(postgres|inbox|intake|id|event|engine|handlers|"
    "sql_handler)",
    "HTTP and its sockets": r"hyper|httparse|\bhttp::|http_body|\bichido::(http|metrics)",
    "memory and copying": MEMORY,
    "runtime: tasks, timers, waiting": r"tokio|\bmio::|epoll|futex|schedule|idle|tracing",
}
POSTGRES = {
    "WAL and fsync": "XLog|WAL|wal_|fdatasync|fsync|pwrite|ext4|jbd2|blk_",
    "sockets and protocol": "sys_send|sys_recv|tcp_|epoll|WaitEventSet|secure_|pq_|socket",
    "compression of bodies": "lz4|LZ4|pglz|toast",
    "parse and plan": "yyparse|yylex|parser|[Pp]arse|transform|analyze|[Pp]lan|rewrite|"
    "eval_const|ScanKeywordLookup|_copy|add_path|expression_tree",
    "memory and copying": MEMORY,
    "rows and indexes": "heap|_bt_|index|Exec|[Tt]uple|[Bb]uffer|[Ss]lot|hash_search|plpgsql|"
    "exec_|array|SPI_|[Ff]unctionCall|Snapshot|Lock|Datum",
}
OTHER = "the rest"


def measure(bench, system, seconds):
    """`cpu`: microseconds an event by layer; `alone`: microseconds with one connection."""
    found = {"cpu": {}, "alone": {}}
    for key, path, connections in (("async", ASYNC, 64), ("sync", SYNC, 16)):
        with system.running() as running:
            bench.load.send(running.address, path, connections, seconds=1)
            found["cpu"][key] = _profile(bench, running, path, connections, seconds)
    plain = bench.systems[ICHIDO]
    alone = (("HTTP + verification", HANDSHAKE, "slack"), ("async", ASYNC, "stripe"),
             ("sync with the billing handler", SYNC, "stripe"))  # fmt: skip
    for title, path, provider in alone:
        with plain.running() as running:
            send = functools.partial(bench.load.send, running.address, path, 1, provider)
            send(seconds=1)
            bench.cluster.settle()
            found["alone"][title] = send(seconds=seconds)["latency_us"]["p50"]
    return found


def _profile(bench, running, path, connections, seconds):
    data = bench.place.work / "perf.data"
    before = bench.cluster.transactions()
    perf = subprocess.Popen(
        ["perf", "record", "-q", "-a", "-g", "-F", str(FREQUENCY), "-o", str(data)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        with Cpu(bench.place, running) as cpu:
            sent = bench.load.send(running.address, path, connections, seconds=seconds)
        transactions = max(1, bench.cluster.transactions() - before)
        pids = {"server": tree(running.pid), "postgres": tree(bench.place.pg_process)}
    finally:
        perf.send_signal(signal.SIGINT)
        perf.wait(60)
    each = cpu.each(sent["requests"])
    groups = {"server": SERVER, "postgres": POSTGRES}
    counts = {name: collections.Counter() for name in groups}
    unknown = collections.Counter()
    text = output(["perf", "script", "-i", data, "-F", "comm,pid,ip,sym"])
    for pid, frames in samples(text):
        for name, layers in groups.items():
            if pid in pids[name]:
                layer = layer_of(frames, layers)
                counts[name][layer] += 1
                if layer == OTHER:
                    unknown[f"{name}: {frames[0] if frames else '?'}"] += 1
    return {
        "rate": sent["rate"],
        "mean_latency_us": sent["latency_us"]["mean"],
        "events_per_transaction": sent["requests"] / transactions,
        "generator_us": sent["cpu_us"],
        **{
            name: {
                layer: each[name] * counts[name][layer] / max(1, counts[name].total())
                for layer in (*layers, OTHER)
            }
            for name, layers in groups.items()
        },
        "unknown": dict(unknown.most_common(20)),
    }


def samples(text):
    """Process and frames, innermost first, of each sample that `perf script` prints."""
    for block in text.split("\n\n"):
        head, _, rest = block.strip("\n").partition("\n")
        if found := re.search(r"\s(\d+)(?:/\d+)?\s*$", head):
            frames = [line.strip().partition(" ")[2] for line in rest.splitlines()]
            yield int(found[1]), frames


def layer_of(frames, layers):
    """The layer of a sample."""
    for frame in frames:
        for title, pattern in layers.items():
            if re.search(pattern, frame):
                return title
    return OTHER
