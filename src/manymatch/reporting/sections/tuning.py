"""Tuning: the best validation rsum against the number of trials, for each preset."""

from collections.abc import Sequence

from manymatch.reporting.chart import STYLES, Chart, Series, line_chart
from manymatch.reporting.page import Section
from manymatch.reporting.table import Block, Cell, Column, Folded, Note, Table
from manymatch.results.all_results import AllResults
from manymatch.results.tuning import Tuning

_MEANING = (
    "Each preset was searched within the budget that the table states, by the rsum of the "
    "validation split alone. A pruned trial ended early, because earlier trials were better after "
    "as many epochs. 'still improves': the best trial is among the last quarter of the trials, so "
    "more trials may find better settings. Hours are those of one processor (of a GPU, if there "
    "was one)."
)


def section(results: AllResults) -> list[Block]:
    """The chart and the table of all presets, and the best settings of each."""
    tunings = results.current(Tuning)
    if not tunings:
        return []
    ranked = sorted(tunings, key=lambda tuning: -tuning.rsum)
    best = [Folded(f"{tuning.preset}: best settings", [settings(tuning)]) for tuning in ranked]
    return [chart(ranked), table(ranked), Note(_MEANING), *best]


def chart(tunings: Sequence[Tuning]) -> Chart:
    """A line for each preset: the best validation rsum of the trials so far."""
    series = [
        Series(
            tuning.preset,
            number % STYLES,
            tuning.best_so_far,
            f"best {tuning.rsum:.1f} in trial {tuning.best + 1}",
            [f"{rsum:.1f} after {count} trials" for count, rsum in tuning.best_so_far],
        )
        for number, tuning in enumerate(tunings)
    ]
    return line_chart("Best validation rsum", series, "trials")


def table(tunings: Sequence[Tuning]) -> Table:
    """One row for each preset: what the search cost, and what the search gained."""
    heads = ("Trials", "Pruned", "Diverged", "Hours", "First rsum", "Best rsum", "In trial")
    texts = ("Preset", "Allowed", "At the end")
    columns = [Column(head, numeric=head not in texts) for head in (texts[0], *heads, *texts[1:])]
    rows = []
    for tuning in tunings:
        states: list[str] = [trial.state for trial in tuning.trials]
        hours = "" if tuning.hours_allowed is None else f", {tuning.hours_allowed:g} hours"
        counts = (len(states), states.count("pruned"), states.count("diverged"))
        row = [Cell(tuning.preset), *(Cell.number(count, 0) for count in counts)]
        row += [Cell.number(tuning.hours, 2), Cell.number(tuning.trials[0].rsum)]
        row += [Cell.number(tuning.rsum), Cell.number(tuning.best + 1, 0)]
        row += [Cell(f"{tuning.trials_allowed} trials{hours}")]
        rows.append([*row, Cell(badges=("still improves",) if tuning.still_improves else ())])
    return Table("Tuning on the validation split", columns, rows)


def settings(tuning: Tuning) -> Table:
    """The settings of the first trial and of the best trial."""
    first, best = tuning.trials[0].settings, tuning.trials[tuning.best].settings
    columns = [Column(head, numeric=False) for head in ("Setting", "First trial", "Best trial")]
    rows = [
        [key, *("" if of.get(key) is None else f"{of[key]}" for of in (first, best))]
        for key in {**first, **best}
    ]
    return Table(f"{tuning.preset}: settings", columns, [[*map(Cell, row)] for row in rows])


SECTIONS = [Section("Experiments", "tuning", 90, "Tuning", section, (Tuning,))]
