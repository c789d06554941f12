"""One module for each section of the report, with a function `section(results) -> View | None`."""
