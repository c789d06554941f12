"""The page in a real browser: search, explanations, history, keyboard, silence, no other host."""

import csv

import httpx
import pytest
from chromium import MARKS, opened
from waiting import ready

from manymatch.search.service.app import application
from manymatch.search.service.served_index import ServedIndex

from .conftest import serving

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = MARKS
SHOWN = "li:not([hidden]) > .card"


@pytest.fixture(scope="module")
def address(indexes):
    """The address of a running service whose indexes are ready."""
    app = application([ServedIndex.from_folder(folder) for folder in indexes])
    with serving(app) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        ready(client)
        yield str(client.base_url).rstrip("/")


@pytest.fixture
def page(browser, address):
    with opened(browser, address, viewport={"width": 1400, "height": 900}) as tab:
        yield tab


def names(page):
    """The paths of the results that are shown."""
    return page.locator(SHOWN).evaluate_all("cards => cards.map(card => card.title)")


def focused(page):
    return page.evaluate("document.activeElement.title")


def test_a_search_by_the_keyboard_alone(page):
    page.goto("/")
    page.locator(".introduction").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("two dogs")
    page.keyboard.press("Enter")
    page.locator(SHOWN).first.wait_for()
    shown = names(page)
    assert len(shown) == 5
    for key, expected in (("ArrowDown", 0), ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1)):
        page.keyboard.press(key)
        assert focused(page) == shown[expected]
    page.keyboard.press("Enter")
    title = page.locator("dialog[open] h2")
    playwright.expect(title).to_have_text(shown[1])
    page.keyboard.press("ArrowRight")
    playwright.expect(title).to_have_text(shown[2])
    page.keyboard.press("Escape")
    playwright.expect(title).to_be_hidden()
    assert focused(page) == shown[2]
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "q"


def test_the_address_holds_the_state(page, items):
    page.goto("/?q=a+red+bird")
    page.locator(SHOWN).nth(1).click()
    page.locator(".look").first.wait_for()
    assert f"item={items[names(page)[1]]}" in page.url
    page.go_back()
    dialog = page.locator("dialog")
    playwright.expect(dialog).to_be_hidden()
    page.go_forward()
    playwright.expect(dialog).to_be_visible()
    page.reload()
    page.locator(".look").first.wait_for()
    page.get_by_label("Close (Escape)").click()

    slider = page.get_by_label("Lowest score of photos")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("PageUp")
    left = len(names(page))
    shares = page.locator(f"{SHOWN} .share").all_text_contents()
    assert len(shares) == left and all(text.endswith("% own pair") for text in shares)
    assert left < 5 and "least.photos=" in page.url
    page.reload()
    page.locator(SHOWN).first.wait_for()
    assert len(names(page)) == left
    page.fill("#q", "two dogs")
    page.keyboard.press("Enter")
    playwright.expect(page.locator(SHOWN)).to_have_count(5)
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    saved = [*csv.DictReader(download.value.path().open(encoding="utf-8"))]
    assert [row["path"] for row in saved] == names(page)


def test_a_score_is_explained_and_hostile_text_is_text(page, items):
    hostile = next(path for path in items if path.startswith("<img"))
    page.goto(f"/?q=a+red+bird&index=photos&item={items[hostile]}&of=photos")
    page.locator(".look").first.wait_for()
    looks = page.locator(".look")
    assert looks.count() == page.locator(".readings li").count() == page.locator(".pair").count()
    assert page.locator(".large .attention").count() == 0
    looks.nth(1).click()
    assert page.locator(".large .attention rect").count() == 49
    playwright.expect(page.locator("dialog h2")).to_have_text(hostile)
    assert "<script>" in page.locator(".captions li").first.text_content()
    assert page.title().startswith("a red bird")

    page.goto(f"/?q=a+red+bird+above+a+table&index=graphs&item={items[hostile]}&of=graphs")
    page.locator(".entities li").first.wait_for()
    assert page.locator(".entities b").all_text_contents() == ["bird", "table"]
    assert page.locator(".limits .badge").count() == 1
    page.get_by_text("More like this").click()
    playwright.expect(page.locator("dialog")).to_be_hidden()
    playwright.expect(page.locator(SHOWN)).to_have_count(4)
    assert hostile not in names(page)


def test_a_picture_is_a_query(page, photos):
    page.goto("/")
    page.set_input_files("#file", photos / "2.png")
    page.locator(SHOWN).first.wait_for()
    assert names(page)[0] == "2.png" and "picture=2.png" in page.url
    page.get_by_label("captions").check()
    page.get_by_label("photos", exact=True).uncheck()
    texts = page.locator(".texts .text")
    playwright.expect(texts).to_have_count(3)
    playwright.expect(page.locator(SHOWN)).to_have_count(3)  # the texts alone
    assert any("<script>" in text for text in texts.all_text_contents())
    texts.first.click()
    page.locator(".look").first.wait_for()
    page.keyboard.press("Escape")
    page.get_by_label("Remove the picture").click()
    page.locator(".introduction").wait_for()
    page.evaluate(
        """bytes => {
            const data = new DataTransfer();
            data.items.add(new File([new Uint8Array(bytes)], "pasted.png", { type: "image/png" }));
            dispatchEvent(new ClipboardEvent("paste", { clipboardData: data }));
        }""",
        list((photos / "3.png").read_bytes()),
    )
    page.locator(".texts .text").first.wait_for()
    assert "picture=pasted.png" in page.url


def test_two_methods_side_by_side_fit_a_narrow_screen(page):
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto("/?q=two+dogs&index=photos&index=graphs")
    page.locator(SHOWN).first.wait_for()
    assert page.locator(".column h2").all_text_contents() == ["photos", "graphs"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.locator(SHOWN).first.click()
    page.locator(".look").first.wait_for()
    assert "photos: rank 1, graphs: rank" in page.locator(".found").text_content()
    assert page.evaluate("document.querySelector('dialog').scrollWidth") <= 400
    red = "getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]"
    assert int(page.evaluate(red)) < 100
    page.emulate_media(color_scheme="light")
    assert int(page.evaluate(red)) > 100
