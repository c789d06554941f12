"""The Chromium of this machine, for tests of pages."""

import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
MARKS = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
    pytest.mark.slow,
]
"""The marks of a file whose tests open pages."""


@contextmanager
def started():
    """A browser without a window."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser, address, **options):
    """A tab that may say nothing and ask no host but that of `address`."""
    context = browser.new_context(base_url=address, **options)
    tab = context.new_page()
    complaints, requests = listened(tab)
    yield tab
    context.close()
    assert complaints == []
    assert all(url.startswith((address, f"blob:{address}")) for url in requests)


def listened(tab):
    """What the console of a tab says, and the addresses that the tab asks for, from now on."""
    complaints, requests = [], []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: requests.append(request.url))
    return complaints, requests
