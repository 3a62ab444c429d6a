"""anchord makes records outlive their publisher: Bitcoin timestamps with signed receipts."""

__version__ = "0.1.0"
