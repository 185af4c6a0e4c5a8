"""The receiver that most teams write: FastAPI, the provider's library, a pool, one inbox table.

It is what Ichido is compared with, so it is written as its users would: /sync commits receipt and
business change together, /async only the receipt.
"""

import contextlib
import json
import os

import psycopg_pool
import stripe
from fastapi import FastAPI, Request, Response
from psycopg.types.json import Jsonb
from starlette.concurrency import run_in_threadpool

SECRET = os.environ["STRIPE_WEBHOOK_SECRET"]

pool = psycopg_pool.ConnectionPool(
    os.environ["DATABASE_URL"], min_size=8, max_size=16, open=False
)


@contextlib.asynccontextmanager
async def lifespan(_: FastAPI):
    pool.open()
    yield
    pool.close()


app = FastAPI(lifespan=lifespan)


def book(connection, invoice):
    """An invoice was paid: books it once, never over a void one."""
    status = connection.execute(
        "INSERT INTO invoices (id, customer_id, status, amount_paid, paid_at)"
        " VALUES (%s, %s, 'paid', %s, now())"
        " ON CONFLICT (id) DO UPDATE SET status = 'paid', amount_paid = excluded.amount_paid,"
        " paid_at = excluded.paid_at, updated_at = now()"
        " WHERE invoices.status NOT IN ('paid', 'void') RETURNING status",
        (invoice["id"], invoice["customer"], invoice["amount_paid"]),
    ).fetchone()
    if status is None:
        status = connection.execute(
            "SELECT status FROM invoices WHERE id = %s", (invoice["id"],)
        ).fetchone()
    if status[0] != "paid":
        return
    booked = connection.execute(
        "INSERT INTO ledger_entries (invoice_id, kind, amount) VALUES (%s, 'payment', %s)"
        " ON CONFLICT DO NOTHING RETURNING id",
        (invoice["id"], invoice["amount_paid"]),
    ).fetchone()
    if booked:
        message = Jsonb({"invoice_id": invoice["id"], "amount": invoice["amount_paid"]})
        connection.execute(
            "INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)"
            " VALUES ('Invoice', %s, 'InvoicePaymentBooked', %s)",
            (invoice["id"], message),
        )


def take(event, sync):
    """One transaction: the receipt, and with `sync` also the effect and the mark."""
    with pool.connection() as connection:
        fresh = connection.execute(
            "INSERT INTO webhook_inbox (provider, endpoint, event_id, event_type, payload)"
            " VALUES ('stripe', 'billing', %s, %s, %s) ON CONFLICT DO NOTHING RETURNING event_id",
            (event["id"], event["type"], Jsonb(event)),
        ).fetchone()
        if fresh is None or not sync:
            return
        if event["type"] == "invoice.paid":
            book(connection, event["data"]["object"])
        connection.execute(
            "UPDATE webhook_inbox SET processed_at = now()"
            " WHERE provider = 'stripe' AND endpoint = 'billing' AND event_id = %s",
            (event["id"],),
        )


async def receive(request, sync):
    body = await request.body()
    signature = request.headers.get("stripe-signature", "")
    try:
        stripe.Webhook.construct_event(body, signature, SECRET)
    except (ValueError, stripe.SignatureVerificationError):
        return Response(status_code=400)
    await run_in_threadpool(take, json.loads(body), sync)
    return Response(status_code=200)


@app.post("/sync")
async def receive_sync(request: Request):
    return await receive(request, True)


@app.post("/async")
async def receive_async(request: Request):
    return await receive(request, False)
