"""The explorer in a real browser: all views, the keyboard, hostile captions, silence, no other
host, 400 px."""

import pytest
from chromium import MARKS, opened
from made_explored import DATASET, TEXTS

from manymatch.evaluation.votes import read_votes
from manymatch.search.explore.explorer import Explorer
from manymatch.search.service.app import application

from .conftest import serving

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = MARKS


@pytest.mark.usefixtures("explored")  # which removes the judgments
def test_all_views_by_the_keyboard(browser, layout):
    with (
        serving(application([], explorer=Explorer(layout, DATASET))) as port,
        opened(browser, f"http://127.0.0.1:{port}") as page,
    ):
        page.goto("/explore?utm=1")  # a name that no list knows
        caption = page.locator(".open").first
        playwright.expect(caption).to_have_text(TEXTS[0])  # a hostile text is a text
        playwright.expect(page.locator(".rows .mark").first).to_be_visible()  # files are read
        page.keyboard.press("/")
        page.keyboard.type("a red bird")
        page.keyboard.press("Enter")
        playwright.expect(page.locator(".open")).to_have_count(12)
        assert "word=a+red+bird" in page.url
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        playwright.expect(page.locator("h1")).to_have_text(TEXTS[1])
        playwright.expect(page.locator(".methods path").first).to_be_attached()
        page.get_by_role("button", name="sets", exact=True).click()
        playwright.expect(page.locator(".look").first).to_be_visible(timeout=60_000)
        assert "why=sets" in page.url
        page.keyboard.press("Escape")
        playwright.expect(page.locator(".open")).to_have_count(12)
        page.keyboard.press("2")
        page.fill("#annotator", "ann")
        with page.expect_response(lambda answer: "annotator=ann" in answer.url):
            page.keyboard.press("Tab")
        page.wait_for_timeout(300)  # the list is made anew
        playwright.expect(page.locator(".pair").first).to_be_focused()
        for key, said in (("y", "true"), ("n", "false"), ("s", "skipped")):
            page.keyboard.press(key)
            playwright.expect(page.locator(f".pair[data-said={said}]")).to_have_count(1)
        answers = [*read_votes(layout.votes(DATASET))["ann"].values()]
        assert answers == [True, False, None]
        page.goto("/explore?view=unjudged&k=5")
        cards = page.locator(".pair")
        playwright.expect(cards).to_have_count(24)
        page.locator(".pair button").first.click()  # a judged pair leaves the list:
        playwright.expect(page.locator(".pair[data-said]")).to_have_count(1)
        second = cards.nth(1).get_attribute("data-caption")
        page.keyboard.press("]")
        playwright.expect(cards.first).to_have_attribute("data-caption", second or "")
        page.keyboard.press("]")
        playwright.expect(page.locator(".pager .end")).to_be_visible()
        assert "page=1" in page.url
        page.keyboard.press("3")
        page.locator("canvas").hover()
        playwright.expect(page.locator(".space img")).to_be_visible()
        page.locator("canvas").click()
        playwright.expect(page.locator("h1")).to_be_visible()
        page.set_viewport_size({"width": 400, "height": 800})
        views = (
            "",
            "?view=constructor",
            "?way=i2t",
            "?view=query&row=1",
            "?view=unjudged",
            "?view=space",
        )
        for view in views:
            page.goto(f"/explore{view}")
            playwright.expect(page.locator("#view")).not_to_be_empty()
            assert page.evaluate("document.documentElement.scrollWidth") <= 400, view
