"""A run that searches: after each trial its samples decide which load comes next.

Variants are searched side by side: a block is one trial of each search that is not at its end, in random order.
Nothing about the search itself is kept: what the trials in the folder come to is worked out again whenever it is
resumed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from loadstone.experiment.model.points import dimensions
from loadstone.experiment.plan import order
from loadstone.experiment.plan.plan import Builder, PlannedTrial, scalar_of
from loadstone.judge.finding import Finding
from loadstone.judge.findings import judge_trial
from loadstone.judge.judgement import Search, VariantKey
from loadstone.judge.searches import context_of, searches
from loadstone.judge.settings import Settings
from loadstone.results.result_set import ResultSet
from loadstone.results.trial_result import Scalar
from loadstone.runner.progress import Whole
from loadstone.runner.run import Run
from loadstone.search.outcome import Outcome
from loadstone.search.sentence import sentence

OVER = "every search is at its end"


@dataclass
class Find(Run):
    """A run whose loads are searched for."""

    # The findings of the trials that were judged, by their id.
    judged: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    told: set[VariantKey] = field(default_factory=set)

    def go(self) -> str:
        """Runs trials until every search is at its end. Raises LoadstoneError when it cannot go on."""
        results = self.folder.load()
        whole = Whole(self.folder.name, self._expected(results), len(results.trials), self.seconds_each)
        self.shown.plan(whole)
        with self.conducting() as conductor:
            while block := list(self._block(results)):
                for each in block:
                    self.trial(conductor, each)
                    # A load that nothing can work at is an answer, and each search ends after two of them.
                    self.failing.clear()
                    self.failed.clear()
                    whole.finish()
                results = self.folder.load()
                whole.trials = max(self._expected(results), whole.done)
        return OVER

    def searches(self, results: ResultSet) -> list[Search]:
        """What the trials come to so far."""
        settings = Settings.of(results.question)
        for trial in results.trials:
            if trial.trial not in self.judged:
                self.judged[trial.trial] = judge_trial(trial, results.series(trial.trial), settings)
        contexts = [context_of(variant.config, self._over) for variant in self.plan.variants]
        return searches(results.question, results.trials, self.judged, settings, contexts)

    def _block(self, results: ResultSet) -> Iterator[PlannedTrial]:
        """The trials that come next: those that were planned and have no line, else one of each search."""
        there = {trial.trial for trial in results.trials}
        if results.planned.keys() - there:
            yield from (each for each in self._planned(results.planned) if each.trial not in there)
            return
        wanted = []
        for each in self.searches(results):
            if isinstance(each.end, Outcome):
                self._tell(each, each.end)
            else:
                wanted.append({**self._configs[each.context], self._over: scalar_of(each.end)})
        if not wanted:
            return
        number = max(self.folder.blocks, default=0) + 1
        keys = [order.key(each) for each in wanted]
        drawn = [wanted[i] for i in order.permutation(keys, self.experiment.seed, number)]
        before = dict(results.planned)
        named = {**before, **{f"{len(before) + i}": config for i, config in enumerate(drawn)}}
        block = list(self._planned(named))[len(before) :]
        self.folder.plan(number, {each.trial: each.variant.config for each in block})
        yield from block

    def _planned(self, planned: Mapping[str, Mapping[str, Scalar]]) -> Iterator[PlannedTrial]:
        """The trials of these configs in their order; how often one came before is its repeat."""
        seen: Counter[str] = Counter()
        builder = Builder(self.experiment, self._varied)
        for number, config in enumerate(planned.values()):
            seen[order.key(config)] += 1
            repeat = seen[order.key(config)]
            variant = builder.variant(config)
            yield PlannedTrial(
                order.trial_name(number, order.DIGITS_MIN, variant.slug, repeat), variant, repeat, number
            )

    def _tell(self, found: Search, end: Outcome) -> None:
        """Says once what a search came to."""
        if found.context not in self.told:
            self.told.add(found.context)
            self.shown.say(sentence(end), bad=end.load is None)

    def _expected(self, results: ResultSet) -> int:
        """About how many trials there will be: those of searches at their end, and half the most of the others."""
        total = 0
        for each in self.searches(results):
            done = sum(len(samples) for samples in each.samples.values())
            guess = each.rule.probes_most * each.rule.at_least
            total += done if each.outcome else max(guess, done + 1)
        return total

    @property
    def _over(self) -> str:
        assert self.experiment.find is not None, "a run that searches has something to search for"
        return self.experiment.find.over

    @property
    def _varied(self) -> list[str]:
        found = dimensions(self.experiment.vary)
        return [*([name for name, values in found.items() if len(values) > 1] or ["system"]), self._over]

    @property
    def _configs(self) -> dict[VariantKey, Mapping[str, Scalar]]:
        """Each search's config, in the order of the file's dimensions."""
        return {context_of(variant.config, self._over): variant.config for variant in self.plan.variants}
