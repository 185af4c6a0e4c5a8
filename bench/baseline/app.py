"""The pattern's usual receiver: FastAPI, psycopg's pool, Stripe's library, one table.

`/webhooks/billing` runs the handler in the transaction of the receipt; `/webhooks/billing-async`
stores the receipt and leaves the rest to `worker.py`. It must stay what a good team would write
in an afternoon: a receiver that is tuned, or broken, would make every ratio worthless.
"""

import json
import os
from contextlib import asynccontextmanager

import stripe
from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from psycopg.types.json import Jsonb
from psycopg_pool import ConnectionPool

from billing import handle

SECRET = os.environ["STRIPE_WEBHOOK_SECRET"]
RECEIVE = """
INSERT INTO webhook_inbox (provider, endpoint, event_id, event_type, payload)
VALUES ('stripe', 'billing', %s, %s, %s)
ON CONFLICT (provider, endpoint, event_id) DO NOTHING RETURNING event_id
"""
PROCESSED = """
UPDATE webhook_inbox SET processed_at = now()
 WHERE provider = 'stripe' AND endpoint = 'billing' AND event_id = %s
"""

pool = ConnectionPool(os.environ["DATABASE_URL"], min_size=8, max_size=16, open=False)


@asynccontextmanager
async def lifespan(_app):
    pool.open(wait=True)
    yield
    pool.close()


app = FastAPI(lifespan=lifespan)


def receive(event, run_handler):
    """One transaction: leaving the block commits, an exception rolls back."""
    with pool.connection() as connection:
        row = (event["id"], event["type"], Jsonb(event))
        if connection.execute(RECEIVE, row).fetchone() is None:
            return  # a duplicate
        if run_handler:
            handle(connection, event["type"], event)
            connection.execute(PROCESSED, (event["id"],))


async def answer(request, run_handler):
    body = await request.body()
    try:
        stripe.Webhook.construct_event(body, request.headers.get("stripe-signature"), SECRET)
    except (ValueError, stripe.SignatureVerificationError):
        return Response(status_code=400)
    await run_in_threadpool(receive, json.loads(body), run_handler)
    return Response(status_code=200)


@app.get("/livez")
def livez():
    return Response(status_code=200)


@app.post("/webhooks/billing")
async def billing(request: Request):
    return await answer(request, run_handler=True)


@app.post("/webhooks/billing-async")
async def billing_async(request: Request):
    return await answer(request, run_handler=False)
