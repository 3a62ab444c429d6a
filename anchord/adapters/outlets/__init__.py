"""Where receipts go by themselves: a folder of bundles, a webhook, somebody's own database."""
