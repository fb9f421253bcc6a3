"""A search run: after each block, the samples so far determine the next loads.

Variants are searched concurrently: a block is one trial of each unfinished search, in random order. If starting
servers takes longer than a trial, only searches with the same servers run concurrently. The state of a search is not
stored: a resumed run derives it from the trials in the folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from loadstone.experiment.model.vary import distinct_values
from loadstone.experiment.plan import forecast, order
from loadstone.experiment.plan.plan import Builder, PlannedTrial, scalar_of
from loadstone.judge.finding import Finding
from loadstone.judge.findings import judge_trial
from loadstone.judge.judgement import Search, VariantKey
from loadstone.judge.search import context_of, judge_searches
from loadstone.judge.settings import Settings
from loadstone.results.result_set import ResultSet, variant_name
from loadstone.results.trial_result import Scalar
from loadstone.runner.progress import RunProgress
from loadstone.runner.run import ExperimentRun
from loadstone.search.outcome import SearchOutcome
from loadstone.search.sentence import outcome_sentence

FINISHED = "all searches are finished"


@dataclass
class SearchRun(ExperimentRun):
    """A run that searches for a load."""

    # The findings on the judged trials, keyed by trial.
    judged: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    reported: set[VariantKey] = field(default_factory=set)

    def go(self) -> str:
        """Runs trials until all searches are finished. Raises LoadstoneError if the run cannot continue."""
        results = self.folder.load_results()
        progress = RunProgress(
            self.folder.name, self._expected(results), len(results.trials), self.seconds_each, rough=True
        )
        self.display.plan(progress)
        with self.conducting() as conductor:
            while block := list(self._block(results)):
                for planned in block:
                    self.trial(conductor, planned)
                    # A load at which every trial fails is a valid outcome, so failures do not stop the run.
                    self.attempts.failing.clear()
                    self.attempts.failed.clear()
                    progress.finish()
                results = self.folder.load_results()
                progress.trials = max(self._expected(results), progress.done)
        return FINISHED

    def searches(self, results: ResultSet) -> list[Search]:
        """The searches, based on the trials so far."""
        settings = Settings.from_question(results.question)
        for trial in results.trials:
            if trial.trial not in self.judged:
                self.judged[trial.trial] = judge_trial(trial, results.series(trial.trial), settings)
        contexts = [context_of(variant.config, self._load_key) for variant in self.plan.variants]
        return judge_searches(results.question, results.trials, self.judged, settings, contexts)

    def _block(self, results: ResultSet) -> Iterator[PlannedTrial]:
        """The next trials: planned trials without a result, otherwise one for each unfinished search."""
        done = {trial.trial for trial in results.trials}
        if results.planned.keys() - done:
            yield from (planned for planned in self._plan_trials(results.planned) if planned.trial not in done)
            return
        configs = []
        for search in self.searches(results):
            if isinstance(search.end, SearchOutcome):
                self._report(search, search.end)
            else:
                configs.append({**self._configs[search.context], self._load_key: scalar_of(search.end)})
        if not configs:
            return
        chosen = self._share_servers(configs)
        number = max(self.folder.blocks, default=0) + 1
        keys = [order.draw_key(config) for config in chosen]
        shuffled = [chosen[i] for i in order.draw_order(keys, self.experiment.seed, number)]
        before = dict(results.planned)
        named = {**before, **{f"{len(before) + i}": config for i, config in enumerate(shuffled)}}
        block = list(self._plan_trials(named))[len(before) :]
        trials = {planned.trial: planned.variant.config for planned in block}
        self.folder.record_block(number, trials, expected=self._expected(results))
        yield from block

    def _share_servers(self, configs: Sequence[Mapping[str, Scalar]]) -> list[Mapping[str, Scalar]]:
        """Selects the configs for the next block."""
        builder, measure = Builder(self.experiment, self._list_varied_keys), self.experiment.measure
        variants = [builder.build_variant(config) for config in configs]
        return [
            configs[at] for at in forecast.share_servers(variants, (measure.warmup or 0.0) + (measure.duration or 0.0))
        ]

    def _plan_trials(self, planned: Mapping[str, Mapping[str, Scalar]]) -> Iterator[PlannedTrial]:
        """The trials of these configs, in order; the repeat number counts the occurrences of the config so far."""
        counts: Counter[str] = Counter()
        builder = Builder(self.experiment, self._list_varied_keys)
        for number, config in enumerate(planned.values()):
            counts[order.draw_key(config)] += 1
            repeat = counts[order.draw_key(config)]
            variant = builder.build_variant(config)
            yield PlannedTrial(
                order.trial_name(number, order.DIGITS_MIN, variant.slug, repeat), variant, repeat, number
            )

    def _report(self, search: Search, end: SearchOutcome) -> None:
        """Prints the outcome of a search, once."""
        if search.context not in self.reported:
            self.reported.add(search.context)
            several = len({context_of(variant.config, self._load_key) for variant in self.plan.variants}) > 1
            name = f"{variant_name(search.context)}: " if several else ""
            self.display.say(f"{name}{outcome_sentence(end)}", bad=end.load is None)

    def _expected(self, results: ResultSet) -> int:
        """Estimates the number of trials: the trials of finished searches, and, for each unfinished search, the maximum
        number of probes with the minimum number of trials."""
        total = 0
        for search in self.searches(results):
            done = sum(len(samples) for samples in search.samples.values())
            guess = search.rule.probes_most * search.rule.at_least
            total += done if search.outcome else max(guess, done + 1)
        return total

    @property
    def _load_key(self) -> str:
        assert self.experiment.find is not None, "a search run has `find`"
        return self.experiment.find.over

    @property
    def _list_varied_keys(self) -> list[str]:
        varied = [name for name, values in distinct_values(self.experiment.vary).items() if len(values) > 1]
        return [*(varied or ["system"]), self._load_key]

    @property
    def _configs(self) -> dict[VariantKey, Mapping[str, Scalar]]:
        """Each search's config, in the order of the file's dimensions."""
        return {context_of(variant.config, self._load_key): variant.config for variant in self.plan.variants}
