"""`python -m pipelines.report_page PORT FOLDER`: the pages of the reports, for this machine alone.

A page of another site whose name leads to 127.0.0.1 is of one origin with this server in a browser.
So requests with another name than this machine's are refused.
"""

from __future__ import annotations

import sys

import uvicorn
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.staticfiles import StaticFiles

HOST = "127.0.0.1"


def pages(folder: str) -> TrustedHostMiddleware:
    """The application that gives out the files in `folder`."""
    files = StaticFiles(directory=folder, html=True, check_dir=False)
    return TrustedHostMiddleware(files, [HOST, "localhost"], www_redirect=False)


if __name__ == "__main__":
    uvicorn.run(pages(sys.argv[2]), host=HOST, port=int(sys.argv[1]), log_level="warning")
