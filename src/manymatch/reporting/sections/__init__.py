"""Sections that only the page shows: functions `section(results) -> View | None`."""
