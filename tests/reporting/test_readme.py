"""The results between the markers of README.md and docs/results.md."""

import pytest

from manymatch.reporting.readme import update_pages
from manymatch.util.errors import DataError

PAGE = "# Title\n\n<!-- results -->\nold\n<!-- /results -->\n\nThe end.\n"
TABLE = """**scenes-study** (test: 300 images). All methods.

| Method |
| --- |
| dive |

R@1 is in percent."""
BOARD = f"**scenes** (test)\n\n| cora |\n\n{TABLE}\n\n**scenes**: claims?\n\n- None.\n"


def write(folder, page=PAGE, board=BOARD):
    paths = folder / "README.md", folder / "results.md", folder / "leaderboard.md"
    for path, text in zip(paths, (page, PAGE, board), strict=True):
        path.write_text(text)
    return paths


def test_both_pages_get_their_part_between_the_markers_and_again(tmp_path):
    readme, results, board = write(tmp_path)
    for _ in range(2):
        update_pages(readme, results, board)
        for path, block in ((readme, TABLE), (results, BOARD.strip())):
            expected = f"# Title\n\n<!-- results -->\n\n{block}\n\n<!-- /results -->\n\nThe end.\n"
            assert path.read_text() == expected


def test_the_readme_has_six_columns_and_their_explanation(tmp_path):
    wide = BOARD.replace("| Method |\n| --- |\n| dive |", "| a | b | c | d | e | f | g |")
    wide = wide.replace(
        "R@1 is in percent.", "R@1 is in percent. Log variance: images. Best in bold."
    )
    readme, results, board = write(tmp_path, board=wide)
    update_pages(readme, results, board)
    text = readme.read_text()
    assert "| a | b | c | d | e | f |\n" in text and "percent. Best in bold." in text
    assert "| f | g |" in results.read_text()


def test_a_table_without_an_explaining_line_ends_before_the_next_caption(tmp_path):
    readme, results, board = write(tmp_path, board=BOARD.replace("R@1 is in percent.\n\n", ""))
    update_pages(readme, results, board)
    assert "claims?" not in readme.read_text() and "| dive |" in readme.read_text()


@pytest.mark.parametrize(
    "text",
    [
        "no marker\n",
        "<!-- results -->\n",
        "<!-- /results -->\n<!-- results -->\n",
        "<!-- results --><!-- /results --><!-- results --><!-- /results -->",
    ],
)
def test_a_page_without_one_pair_of_markers_is_refused(tmp_path, text):
    readme, results, board = write(tmp_path, page=text)
    with pytest.raises(DataError, match="expected one line <!-- results -->"):
        update_pages(readme, results, board)
    assert readme.read_text() == text and results.read_text() == PAGE


def test_a_missing_leaderboard_or_table_is_one_line_with_a_remedy(tmp_path):
    readme, results, board = write(tmp_path, board="**scenes** (test)\n\n| cora |\n")
    for words in (r"leaderboard.md: .*'scenes-study' is missing", "Run 'manymatch report'"):
        with pytest.raises(DataError, match=words):
            update_pages(readme, results, board)
        board.unlink(missing_ok=True)
    assert readme.read_text() == results.read_text() == PAGE
