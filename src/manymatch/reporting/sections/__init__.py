"""Sections that only the page shows: `section(results) -> View | None` in one module for each."""
