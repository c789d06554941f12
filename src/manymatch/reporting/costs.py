"""What methods cost, as `manymatch efficiency` measured it, in a table with the papers' figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from manymatch.reporting import markdown
from manymatch.reporting.published_costs import Published, published
from manymatch.results.costs import Cost, Costs, QueryCost, TestCost

TIMES = "\u00d7"


@dataclass(frozen=True)
class Column:
    """A measure by its `key`; of a search or a query, with the number of images."""

    key: str
    title: str
    unit: str = ""


@dataclass(frozen=True)
class Row:
    """`mark`: where it is from, in a word, and of the papers' the `place`; `cells` run along the
    table's columns."""

    name: str
    mark: str
    place: str
    cells: list[str]
    hardware: str


@dataclass(frozen=True)
class Table:
    columns: list[Column]
    rows: list[Row]


COLUMNS = [
    Column("vectors", "Vectors"),
    Column("parameters", "Parameters"),
    Column("multiply_adds", "Multiply-adds", "a similarity"),
    Column("relative", "Multiply-adds", "of VSE∞'s"),
    Column("batch", "Batch", "images / captions"),
    Column("step", "Training step", "s"),
    Column("memory", "GPU memory", "MiB"),
    Column("test", "Whole test", "s"),
    Column("ranking", "of it ranking", "s"),
    Column("parse", "Parse", "ms"),
    Column("encode", "Encode", "ms"),
    Column("search 100000", "Search 100,000", "ms"),
    Column("query 10000", "Query 10,000", "ms"),
    Column("query 100000", "Query 100,000", "ms"),
]
_PARTS_OF_QUERY = ("parse", "encode", "search", "query")


def table(costs: Costs) -> Table:
    """Ours, then the papers'; columns that no row fills are left out."""
    one_vector = [cost.multiply_adds for cost in costs.rows if cost.method == "vse_infinity"]
    ours = [
        _row(cost.name, cost.setting or "untrained", "", _ours(cost, one_vector), costs.hardware)
        for cost in costs.rows
    ]
    theirs = [
        _row(each.method, "published", place(each), _theirs(each), each.hardware or "not named")
        for each in published()
    ]
    rows = [*ours, *theirs]
    filled = [n for n in range(len(COLUMNS)) if any(row.cells[n] for row in rows)]
    return Table(
        [COLUMNS[n] for n in filled],
        [
            Row(row.name, row.mark, row.place, [row.cells[n] or "-" for n in filled], row.hardware)
            for row in rows
        ],
    )


def place(each: Published) -> str:
    """ "SwAMP, table 12, Flickr30K"."""
    return ", ".join(filter(None, (each.paper, each.section, each.data)))


def _row(name: str, mark: str, where: str, texts: dict[str, str], hardware: str) -> Row:
    return Row(name, mark, where, [texts.get(column.key, "") for column in COLUMNS], hardware)


def _ours(cost: Cost, one_vector: Sequence[int]) -> dict[str, str]:
    texts = {
        "vectors": f"{cost.elements} {TIMES} {cost.size:,}",
        "parameters": scaled(cost.parameters),
        "multiply_adds": scaled(cost.multiply_adds),
        "batch": f"{cost.step.images} / {cost.step.captions}",
        "step": number(cost.step.seconds),
        "test": _seconds(cost.test, cost.test.embedding + cost.test.ranking),
        "ranking": _seconds(cost.test, cost.test.ranking),
    }
    if one_vector:
        texts["relative"] = f"{number(cost.multiply_adds / one_vector[0])} {TIMES}"
    if cost.step.peak_gpu_memory_mb is not None:
        texts["memory"] = number(cost.step.peak_gpu_memory_mb)
    return texts | _query(cost.query)


def _seconds(test: TestCost, seconds: float) -> str:
    """A time that was scaled up from a part of the images is marked as such."""
    return number(seconds) if test.scaled_from is None else f"{number(seconds)} (scaled)"


def _query(query: QueryCost) -> dict[str, str]:
    parts = {"parse": query.parse, "encode": query.encode}
    parts |= {f"search {images}": took for images, took in query.search.items()}
    parts |= {f"query {images}": query.total(images) for images in query.search}
    return {name: number(took) for name, took in parts.items() if took is not None}


def _theirs(each: Published) -> dict[str, str]:
    texts = {}
    for fact in each.facts:
        if fact.measure == "multiply_adds":
            texts[fact.measure] = scaled(fact.value)
        elif fact.measure == "relative":
            texts[fact.measure] = f"{fact.value:,.0f} {TIMES}"
        else:
            factor = 1000 if fact.measure in _PARTS_OF_QUERY else 1
            for key in _keys(fact.measure, fact.galleries):
                texts[key] = number(factor * fact.value, digits=4)
    return texts


def _keys(measure: str, galleries: tuple[int, int] | None) -> list[str]:
    """The columns that a fact fills: all whose number of images it is of."""
    if galleries is None:
        return [measure]
    sizes = (10_000, 100_000)
    return [f"{measure} {size}" for size in sizes if galleries[0] <= size <= galleries[1]]


def number(value: float, digits: int = 3) -> str:
    """With so many digits that count, or all before the point: 0.183, 25.9, 9,352."""
    return f"{value:,.0f}" if value >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def scaled(value: float) -> str:
    """16384 as "16.4 K"."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if value >= size:
            return f"{number(value / size)} {unit}"
    return f"{value:g}"


def sizes(costs: Costs) -> str:
    """On what: "test: 300 images, 1,500 captions; Xeon, 2 threads"."""
    return f"{costs.split}: {costs.images:,} images, {costs.captions:,} captions; {costs.hardware}"


def to_markdown(costs: Costs) -> str:
    """The table, ours and then the papers', with a row a method."""
    found = table(costs)
    heads = [
        f"{column.title} ({column.unit})" if column.unit else column.title
        for column in found.columns
    ]
    rows = [[row.name, _from(row), *row.cells] for row in found.rows]
    lines = markdown.table(["Method", "From", *heads], rows, texts=2)
    return (
        "\n".join([f"**What methods cost on {costs.dataset}** ({sizes(costs)})", "", *lines]) + "\n"
    )


def _from(row: Row) -> str:
    return f"{row.mark}: {row.place} ({row.hardware})" if row.place else row.mark
