"""The workers' line: events that wait are processed, one transaction an event.

The baseline's loop is measured here. Ichido's workers are to stand beside it, on as many waiting
events of the same payload, once the server has them.
"""

import json

from .processes import output
from .systems import BASELINE

PROCESSES = 4  # more gave no more on two cores
WAITING = 20_000  # more than the loop can do in the time that is measured

# Every waiting event is one of its own, as if it had just been received.
FILL = """
INSERT INTO webhook_inbox (provider, endpoint, event_id, event_type, payload)
SELECT 'stripe', 'billing', 'evt_' || unique_part, 'invoice.paid',
       replace($body${body}$body$, '{{unique}}', unique_part)::jsonb
  FROM (SELECT '1' || substr(md5(n::text), 1, 23) AS unique_part
          FROM generate_series(1, {count}) AS n) AS events
"""


def baseline(system, load, seconds):
    """Events a second of the usual loop."""
    cluster = system.cluster
    with cluster.fresh(system.template()) as name:
        body = load.text.replace("{customer}", "SJLzq9dWptoLB7")
        cluster.query(FILL.format(body=body, count=WAITING), name)
        cluster.query("ANALYZE webhook_inbox", name)
        cluster.settle()
        found = run_baseline(system, name, PROCESSES, seconds)
        done = "SELECT count(*) FROM webhook_inbox WHERE processed_at IS NOT NULL"
        if cluster.value(done, name) != found["events"]:
            raise RuntimeError(f"not what the worker says it did: {found}")
        return {"rate": found["rate"], "requests": found["events"], "latency_us": {}}


def run_baseline(system, database, processes, seconds=120):
    """Runs the usual loop until nothing is due, or for so long."""
    command = [system.place.python, BASELINE / "worker.py", processes, seconds]
    url = f"{system.cluster.url}/{database}"
    env = {"DATABASE_URL": url, "PYTHONDONTWRITEBYTECODE": "1"}
    return json.loads(output(command, env=env))
