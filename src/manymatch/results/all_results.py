"""All results below the folder `reports`, read and checked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import TypeVar

from manymatch.config.preset import Preset
from manymatch.results.base import Result
from manymatch.results.experiments import Claims, Experiment, read_claims
from manymatch.results.runs import Run, read_runs

Kind = TypeVar("Kind", bound=Result)


def has_dataset(kind: type[Result]) -> bool:
    """Whether results of this kind belong to a data set of the pipeline."""
    return "{dataset}" in kind.path


@dataclass(frozen=True)
class AllResults:
    """The evaluated models, and the other results by their kind, each list in the order of the
    class's `read_all`. `claims` are those of the experiments, by the experiments' names."""

    runs: list[Run]
    kinds: Mapping[type[Result], Sequence[Result]] = field(default_factory=dict)
    claims: Mapping[str, Claims] = field(default_factory=dict)
    published: Mapping[str, Preset] = field(default_factory=dict)
    """The presets with the settings of papers, by their files."""

    @classmethod
    def read(cls, reports: Path, plans: Path, kinds: Iterable[type[Result]] = ()) -> "AllResults":
        """Read every result file of `kinds`, and the claims in the folder `plans` of experiments.

        Raises:
            DataError, ConfigError: there is no run, a file is malformed, or a claim is wrong.
        """
        results = cls(
            read_runs(reports), {kind: kind.read_all(reports) for kind in dict.fromkeys(kinds)}
        )
        labels: dict[str, set[str]] = {}
        for experiment in results.current(Experiment):
            own = {point.label for point in experiment.points}
            labels[experiment.name] = labels.get(experiment.name, set()) | own
        return replace(results, claims=read_claims(plans, labels))

    def current(self, kind: type[Kind], outdated: bool = False) -> list[Kind]:
        """The results of a kind, without those that another model made than the evaluated one of
        the same name, or with `outdated` only those."""
        results = [result for result in self.kinds.get(kind, ()) if isinstance(result, kind)]
        return [result for result in results if self._is_outdated(result) == outdated]

    @property
    def comparisons(self) -> list[Experiment]:
        """The experiments that compare whole methods."""
        return [one for one in self.current(Experiment) if one.compares_methods]

    @property
    def broadest(self) -> Experiment | None:
        """The comparison of methods with most runs; of equal ones that with the best mean rsum."""
        rsums = [
            [run.metrics.rsum for point in one.points for run in point.runs]
            for one in self.comparisons
        ]
        pairs = zip(rsums, self.comparisons, strict=True)
        best = max(pairs, key=lambda pair: (len(pair[0]), fmean(pair[0])), default=None)
        return best and best[1]

    @property
    def judged(self) -> bool:
        """Whether a run has metrics of positives beyond the pairs."""
        return any(run.metrics.multi for run in self.runs)

    @property
    def datasets(self) -> list[str]:
        """The data sets with results; those with a trained model come first."""
        others = (results for kind, results in self.kinds.items() if has_dataset(kind))
        results = chain(self.runs, *others)
        return list(dict.fromkeys(getattr(result, "dataset", "") for result in results))

    def on_dataset(self, dataset: str) -> "AllResults":
        """The results on one data set, with all results that belong to no data set."""
        kinds = {
            kind: [one for one in results if getattr(one, "dataset", "") == dataset]
            if has_dataset(kind)
            else results
            for kind, results in self.kinds.items()
        }
        return replace(self, runs=[run for run in self.runs if run.dataset == dataset], kinds=kinds)

    def _is_outdated(self, result: Result) -> bool:
        made_by = getattr(result, "checkpoint_sha256", None)
        name = getattr(result, "dataset", ""), getattr(result, "preset", "")
        models = [
            run.provenance.checkpoint_sha256
            for run in self.runs
            if (run.dataset, run.preset) == name and hasattr(result, "checkpoint_sha256")
        ]
        return bool(models) and models[0] != made_by
