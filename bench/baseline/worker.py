"""The pattern's usual worker loop: claim one with SKIP LOCKED, commit, process it, commit.

Usage: DATABASE_URL=... python worker.py PROCESSES [SECONDS]. Ends when nothing is due any more,
or after SECONDS, and prints one JSON object. It must count an event only after its commit.
"""

import json
import multiprocessing
import os
import sys
import time

import psycopg

from billing import handle

CLAIM = """
UPDATE webhook_inbox AS w
   SET attempts = w.attempts + 1, available_at = now() + interval '2 minutes'
  FROM (SELECT provider, endpoint, event_id FROM webhook_inbox
         WHERE processed_at IS NULL AND available_at <= now() AND attempts < 10
         ORDER BY available_at LIMIT 1 FOR UPDATE SKIP LOCKED) AS due
 WHERE (w.provider, w.endpoint, w.event_id) = (due.provider, due.endpoint, due.event_id)
RETURNING w.provider, w.endpoint, w.event_id
"""
KEY = "WHERE provider = %s AND endpoint = %s AND event_id = %s"
LOCK = f"SELECT event_type, payload FROM webhook_inbox {KEY} AND processed_at IS NULL FOR UPDATE"
PROCESSED = f"UPDATE webhook_inbox SET processed_at = now(), last_error = NULL {KEY}"


def work(until, processed):
    """Processes one event after the other."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        while time.monotonic() < until:
            with connection.transaction():
                key = connection.execute(CLAIM).fetchone()
            if key is None:
                return
            with connection.transaction():
                row = connection.execute(LOCK, key).fetchone()
                if row is None:
                    continue
                handle(connection, *row)
                connection.execute(PROCESSED, key)
            with processed.get_lock():
                processed.value += 1


def main():
    processes = int(sys.argv[1])
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else float("inf")
    processed = multiprocessing.Value("q", 0)
    start = time.monotonic()
    workers = [
        multiprocessing.Process(target=work, args=(start + seconds, processed))
        for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    took = time.monotonic() - start
    rate = processed.value / took
    print(json.dumps({"events": processed.value, "seconds": took, "rate": rate}))


if __name__ == "__main__":
    main()
