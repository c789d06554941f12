"""`python -m pipelines.report_page PORT FOLDER`: the pages of the reports, for this machine alone.

A page of another site whose name leads to 127.0.0.1 is of one origin with this server in a browser.
So requests with another name than this machine's are refused.
"""

import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

HOST = "127.0.0.1"


def pages(folder: str) -> Starlette:
    """The application that gives out the files in `folder`, which is made if it is missing."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    allowed = Middleware(
        TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"], www_redirect=False
    )
    files = Mount("/", StaticFiles(directory=folder, html=True))
    return Starlette(routes=[files], middleware=[allowed])


if __name__ == "__main__":
    # `uvicorn.run` reads the number of workers from the environment, and refuses several.
    settings = uvicorn.Config(
        pages(sys.argv[2]), host=HOST, port=int(sys.argv[1]), log_level="warning", workers=1
    )
    uvicorn.Server(settings).run()
