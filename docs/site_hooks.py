"""What `make docs` changes in the pages: links that the site lacks, and requests to other hosts."""

from __future__ import annotations

import re
from typing import Any

_POLICY = "default-src 'self' 'unsafe-inline' data:; base-uri 'none'; form-action 'none'"


def on_post_page(output: str, **_: Any) -> str:
    """The page with a policy by which a browser asks no other host for anything."""
    policy = f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    return output.replace("<head>", f"<head>{policy}", 1)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with links to files of the repository as plain text: the site has no such files."""
    return re.sub(r"(?<!!)\[([^\]]+)\]\(\.\./[^)]+\)", r"\1", markdown)
