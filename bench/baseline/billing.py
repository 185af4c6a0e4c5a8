"""The billing handler as the usual Python implementation has it: a payment is booked once.

It must stay plain: one statement after the other inside the caller's transaction.
"""

from psycopg.types.json import Jsonb

UPSERT = """
INSERT INTO invoices (id, customer_id, status, amount_paid, paid_at)
VALUES (%(id)s, %(customer)s, 'paid', %(amount_paid)s, now())
ON CONFLICT (id) DO UPDATE
   SET status = 'paid', amount_paid = excluded.amount_paid,
       paid_at = coalesce(invoices.paid_at, excluded.paid_at), updated_at = now()
 WHERE invoices.status NOT IN ('paid', 'void')
"""
STATUS = "SELECT status FROM invoices WHERE id = %s"
BOOK = """
INSERT INTO ledger_entries (invoice_id, kind, amount) VALUES (%s, 'payment', %s)
ON CONFLICT (invoice_id, kind) DO NOTHING RETURNING id
"""
TELL = """
INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
VALUES ('Invoice', %s, 'InvoicePaymentBooked', %s)
"""


def handle(connection, event_type, event):
    """Runs the handler of an event, inside the transaction that is open."""
    if event_type != "invoice.paid":
        return
    invoice = event["data"]["object"]
    connection.execute(UPSERT, invoice)
    status = connection.execute(STATUS, (invoice["id"],)).fetchone()
    if status != ("paid",):
        return
    amount = invoice["amount_paid"]
    if connection.execute(BOOK, (invoice["id"], amount)).fetchone():
        message = Jsonb({"invoice_id": invoice["id"], "amount": amount})
        connection.execute(TELL, (invoice["id"], message))
