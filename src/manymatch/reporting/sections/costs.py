"""What methods cost, as `manymatch efficiency` measured it, beside the papers' figures: a table,
and the time of a text query over the size of the gallery."""

from collections.abc import Mapping, Sequence

from manymatch.reporting.chart import STYLES, Chart, LogAxis, Series, line_chart
from manymatch.reporting.page import Section, gallery, method_address
from manymatch.reporting.published import Line, printed
from manymatch.reporting.table import Block, Cell, Column, Folded, Heading, Note, Table
from manymatch.results.all_results import AllResults
from manymatch.results.costs import Cost, Costs, TestCost

TIMES = "\u00d7"

COLUMNS = {
    "vectors": Column("Vectors"),
    "parameters": Column("Parameters"),
    "multiply_adds": Column("Multiply-adds", unit="a similarity"),
    "relative": Column("Multiply-adds", unit="relative to VSE∞"),
    "batch": Column("Batch", unit="images / captions"),
    "step": Column("Training step", unit="s"),
    "memory": Column("GPU memory", unit="MiB"),
    "test": Column("Whole test", unit="s"),
    "ranking": Column("Ranking", unit="s of the test"),
    "parse": Column("Parse", unit="ms"),
    "encode": Column("Encode", unit="ms"),
    "search 100000": Column("Search 100,000", unit="ms"),
    "query 10000": Column("Query 10,000", unit="ms"),
    "query 100000": Column("Query 100,000", unit="ms"),
}
"""The measures by key. The key of a search or a query ends with the number of images."""

PARTS_OF_QUERY = ("parse", "encode", "search", "query")
"""The parts of a text query; `query` is their sum."""


def table(costs: Costs, models: Mapping[str, str | None] | None = None) -> Table:
    """Our costs; columns without a figure are left out. `models` are the hashes of the evaluated
    models by name: a cost of another model is marked."""
    one_vector = [cost.multiply_adds for cost in costs.rows if cost.method == "vse_infinity"]
    rows = []
    for cost in costs.rows:
        texts = _our_texts(cost, one_vector)
        known = models or {}
        label = "of an earlier model" if cost.checkpoint_sha256 else "model not recorded"
        same = known.get(cost.name, cost.checkpoint_sha256) == cost.checkpoint_sha256
        badges = () if same else (label,)
        href = method_address(costs.dataset, cost.name) if cost.name in known else ""
        rows.append(
            [
                Cell(cost.name, badges=badges, href=href),
                *(Cell(texts.get(key, "")) for key in COLUMNS),
            ]
        )
    columns = [Column("Method", numeric=False), *COLUMNS.values()]
    return Table(f"Costs on {costs.dataset}", columns, rows).filled_columns()


def published() -> Table:
    """What the papers print, a row for each method of a source: the figures in words."""
    rows = []
    varying = "measure", "value", "smallest_gallery", "largest_gallery"
    for entry, lines in printed("costs", *varying):
        known = _their_texts(lines)
        figures = [
            f"{COLUMNS[key].heading}: {text}" for key, text in known.items() if key in COLUMNS
        ]
        source = ", ".join(filter(None, (entry["paper"], entry["section"], entry["data"])))
        cells = [entry["method"], source, "; ".join(figures), entry["hardware"] or "not named"]
        rows.append([*map(Cell, cells)])
    heads = ("Method", "Source", "Figures", "Hardware")
    return Table("What the papers print", [Column(head, numeric=False) for head in heads], rows)


def _our_texts(cost: Cost, one_vector: Sequence[int]) -> dict[str, str]:
    query, test = cost.query, cost.test
    texts = {
        "vectors": f"{cost.elements} {TIMES} {cost.size:,}",
        "parameters": scaled(cost.parameters),
        "multiply_adds": scaled(cost.multiply_adds),
        "batch": f"{cost.step.images} / {cost.step.captions}",
        "step": number(cost.step.seconds),
        "test": _seconds(test, test.embedding + test.ranking),
        "ranking": _seconds(test, test.ranking),
        "parse": "" if query.parse is None else number(query.parse),
        "encode": number(query.encode),
        **{f"search {images}": number(ms) for images, ms in query.search.items()},
        **{f"query {images}": number(query.total(images)) for images in query.search},
    }
    if one_vector:
        texts["relative"] = f"{number(cost.multiply_adds / one_vector[0])} {TIMES}"
    if cost.step.peak_gpu_memory_mb is not None:
        texts["memory"] = number(cost.step.peak_gpu_memory_mb)
    return texts


def _seconds(test: TestCost, seconds: float) -> str:
    """A time that is scaled from a part of the images is marked."""
    return number(seconds) if test.scaled_from is None else f"{number(seconds)} (scaled)"


def _their_texts(lines: Sequence[Line]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for line in lines:
        measure, value = line["measure"], float(line["value"])
        if measure == "multiply_adds":
            texts[measure] = scaled(value)
        elif measure == "relative":
            texts[measure] = f"{value:,.0f} {TIMES}"
        else:
            keys = [measure]
            if line["smallest_gallery"]:
                least, most = int(line["smallest_gallery"]), int(line["largest_gallery"])
                keys = [f"{measure} {size}" for size in (10_000, 100_000) if least <= size <= most]
            factor = 1000 if measure in PARTS_OF_QUERY else 1
            texts |= dict.fromkeys(keys, number(factor * value, digits=4))
    return texts


def number(value: float, digits: int = 3) -> str:
    """The value with `digits` significant digits, or all before the point: 0.183, 25.9, 9,352."""
    return f"{value:,.0f}" if value >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def scaled(value: float) -> str:
    """16384 as "16.4 K"."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if value >= size:
            return f"{number(value / size)} {unit}"
    return f"{value:g}"


def sizes(costs: Costs) -> str:
    """What was measured and where: "test: 300 images, 1,500 captions; Xeon, 2 threads"."""
    return f"{gallery(costs)}; {costs.hardware}"


def blocks(costs: Costs) -> list[Block]:
    """Our costs for a terminal. The papers' figures are on the page alone."""
    return [Heading(f"What methods cost on {costs.dataset}", sizes(costs)), table(costs)]


_NOTE = Note(
    "Published costs are from a paper, on its own data and hardware. Untrained: the "
    "cross-attention of SCAN (image-to-text, average pooling) on this data, with a training step "
    "of 128 pairs as in SwAMP's table; if images are only pixels, each image has 36 artificial "
    "regions. The times of a step and a query are medians. If ranking all images of the test "
    "takes over a minute, SCAN ranks a part of them, and “scaled” marks a time that was scaled "
    "up to all pairs. A query is parsed (for methods that read scene graphs), encoded, and "
    "compared with the images. DivE counts SCAN's similarity as about 80 times its own."
)


def section(results: AllResults) -> list[Block]:
    blocks: list[Block] = []
    for costs in results.current(Costs):
        code = f", measured with revision {costs.git_revision[:8]}" if costs.git_revision else ""
        blocks += [
            Note(f"What the methods cost on {sizes(costs)}{code}."),
            table(costs, {run.preset: run.provenance.checkpoint_sha256 for run in results.runs}),
            query_chart(costs),
            Folded("Costs that the papers print", [published()]),
            _NOTE,
        ]
    return blocks


def query_chart(costs: Costs) -> Chart:
    """Milliseconds of a text query over the images of the gallery, a line for each method."""
    series = []
    for position, cost in enumerate(costs.rows):
        points = [(images, cost.query.total(images)) for images in sorted(cost.query.search)]
        ends = dict.fromkeys(number(ms, digits=2) for _, ms in (points[0], points[-1]))
        labels = [f"{images:,} images: {number(ms)} ms" for images, ms in points]
        summary = f"{' to '.join(ends)} ms"
        series.append(Series(cost.name, position % STYLES, points, summary, labels))
    places = [point for line in series for point in line.points]
    axes = LogAxis([images for images, _ in places]), LogAxis([time for _, time in places])
    title = "Milliseconds of a text query"
    return line_chart(title, series, "images", x_axis=axes[0], y_axis=axes[1])


SECTIONS = [Section("Efficiency", "costs", 210, "Efficiency", section, (Costs,))]
