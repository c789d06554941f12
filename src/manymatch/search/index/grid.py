"""The results of a search as a page of pictures that needs no other file."""

import base64
import tempfile
from html import escape
from pathlib import Path

from manymatch.model.answer import Answer, Result
from manymatch.model.picture_bytes import thumbnail
from manymatch.search.index.index import Index
from manymatch.util.errors import DataError
from manymatch.util.files import write_text

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
      content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{query}</title>
<style>
:root {{ color-scheme: light dark; font: 16px/1.4 system-ui, sans-serif }}
main {{ display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(10rem, 1fr)) }}
figure {{ margin: 0; overflow-wrap: anywhere }}
img {{ width: 100% }}
</style>
<h1>{query}</h1>
<main>
{figures}
</main>
</html>
"""


def write_grid(index: Index, answer: Answer) -> Path:
    """Write the page into a new temporary folder; returns its path."""
    figures = "\n".join(
        f"<figure>{_picture(index, result)}<figcaption>{result.score:.3f} "
        f"{escape(result.text or result.path)}</figcaption></figure>"
        for result in answer.results
    )
    page = Path(tempfile.mkdtemp(prefix="manymatch-"), "results.html")
    write_text(page, _PAGE.format(query=escape(answer.query), figures=figures))
    return page


def _picture(index: Index, result: Result) -> str:
    """The small picture; nothing for an item without one."""
    try:
        data = base64.b64encode(thumbnail(index.picture(result.id))).decode()
    except DataError:
        return ""
    return f'<img alt="" src="data:image/jpeg;base64,{data}">'
