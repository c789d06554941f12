"""The sections of the report. Each module lists its own in `SECTIONS`."""
