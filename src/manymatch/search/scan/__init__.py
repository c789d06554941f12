"""The best items of a gallery for a query: exactly those of scoring every item."""
