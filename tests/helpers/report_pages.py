"""The pages that the stage `report` writes, and changes of what it reads."""

import json

from manymatch.reporting.report import report


def pages_of(reports):
    """Make the report; the HTML of each page by its name: `index`, `scenes-results` ..."""
    report(reports, plans_of(reports))
    return written_pages(reports)


def plans_of(reports):
    """The folder of experiments beside a made-up folder of results."""
    return reports.parent / "experiments"


def written_pages(reports):
    """The HTML of each page that a report has written."""
    return {path.stem: path.read_text(encoding="utf-8") for path in paths_of(reports)}


def paths_of(reports):
    return [reports / "index.html", *sorted((reports / "pages").iterdir())]


def section_of(page, anchor):
    """The HTML of one section."""
    return page.partition(f'<section id="{anchor}"')[2].partition("</section>\n")[0]


def edit(path, change):
    """Change the value of a JSON file."""
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))
