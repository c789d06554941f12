"""The search service: indexes behind HTTP, with a page for the browser."""
