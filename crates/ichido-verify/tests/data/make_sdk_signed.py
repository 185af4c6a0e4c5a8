#!/usr/bin/env python3
"""Signs events with the senders' own libraries and writes sdk_signed.json beside this file.

Needs, in a virtual environment:  pip install stripe==16.1.0 standardwebhooks==1.1.0 svix==2.9.1
The result is test data and is kept; run this again only to take in newer libraries.
"""

import base64
import datetime
import importlib.metadata
import json
import pathlib

import standardwebhooks.webhooks
import stripe
import svix.webhooks

NOW = 1_790_000_000
WHEN = datetime.datetime.fromtimestamp(NOW, tz=datetime.timezone.utc)
STRIPE_SECRET = "whsec_sdk_signed_test_data_0123456789"
STANDARD_SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()


def version(package):
    return f"{package} {importlib.metadata.version(package)}"


def entry(provider, sdk, secret, headers, body, event_id, event_type, order_key):
    return {
        "provider": provider,
        "sdk": sdk,
        "secret": secret,
        "now_unix": NOW,
        "headers": headers,
        "body_base64": base64.b64encode(body.encode()).decode(),
        "event_id": event_id,
        "event_type": event_type,
        "order_key": order_key,
    }


def stripe_events():
    snapshot = {
        "id": "evt_sdkSnapshot01",
        "object": "event",
        "api_version": stripe.api_version,
        "created": NOW - 3,
        "data": {"object": {"id": "in_sdk01", "object": "invoice", "amount_paid": 1999}},
        "livemode": False,
        "pending_webhooks": 1,
        "type": "invoice.paid",
    }
    thin = {
        "id": "evt_sdkThin01",
        "object": "v2.core.event",
        "type": "v1.billing.meter.error_report_triggered",
        "livemode": False,
        "created": "2026-09-21T14:13:20.123Z",
        "related_object": {"id": "mtr_sdk01", "type": "billing.meter", "url": "/v1/x"},
    }
    for event, order_key in ((snapshot, "in_sdk01"), (thin, "mtr_sdk01")):
        body = json.dumps(event, indent=2, ensure_ascii=False)
        mac = stripe.WebhookSignature._compute_signature(f"{NOW}.{body}", STRIPE_SECRET)
        header = f"t={NOW},v1={mac},v0={'0' * 64}"
        assert stripe.WebhookSignature.verify_header(body, header, STRIPE_SECRET)
        headers = {"content-type": "application/json", "stripe-signature": header}
        yield entry(
            "stripe", version("stripe"), STRIPE_SECRET, headers, body,
            event["id"], event["type"], order_key,
        )


def standard_events():
    body = json.dumps(
        {"type": "invoice.paid", "timestamp": "2026-09-21T14:13:19Z", "data": {"id": "inv_ü"}},
        ensure_ascii=False,
    )
    for provider, package, library, prefix in (
        ("standard-webhooks", "standardwebhooks", standardwebhooks.webhooks, "webhook"),
        ("svix", "svix", svix.webhooks, "svix"),
    ):
        event_id = f"msg_sdk_{provider}"
        signature = library.Webhook(STANDARD_SECRET).sign(event_id, WHEN, body)
        headers = {
            "content-type": "application/json",
            f"{prefix}-id": event_id,
            f"{prefix}-timestamp": str(NOW),
            f"{prefix}-signature": signature,
        }
        yield entry(
            provider, version(package), STANDARD_SECRET, headers, body,
            event_id, "invoice.paid", "inv_ü",
        )


def github_documented():
    """The example of GitHub's page on validating deliveries; its id and type are ours."""
    mac = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    headers = {
        "content-type": "application/json",
        "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
        "x-github-event": "push",
        "x-hub-signature-256": f"sha256={mac}",
    }
    yield entry(
        "github", "GitHub documentation, validating webhook deliveries",
        "It's a Secret to Everybody", headers, "Hello, World!",
        headers["x-github-delivery"], "push", None,
    )


events = [*stripe_events(), *standard_events(), *github_documented()]
target = pathlib.Path(__file__).with_name("sdk_signed.json")
target.write_text(json.dumps(events, indent=2) + "\n")
