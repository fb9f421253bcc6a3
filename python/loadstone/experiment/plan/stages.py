"""The stages of a variant: their rates, with templates rendered, and the engine's pace."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loadstone.experiment.model.experiment import Experiment
from loadstone.results.stage import Stage


def plan_stages(experiment: Experiment, render: Callable[[str], str]) -> tuple[Stage, ...]:
    """The stages of a variant. A ramp begins at the last rate of the previous stage, unless the file sets `from`."""
    planned: list[Stage] = []
    end_ns, end_rate = 0, 0.0
    for number, stage in enumerate(experiment.stages, 1):
        rates = {key: getattr(stage, key) for key in ("at", "from", "to")}
        known = {key: float(render(str(rate))) for key, rate in rates.items() if rate is not None}
        rate_from = known.get("at", known.get("from", end_rate))
        end_rate = known.get("at", known.get("to", rate_from))
        length_ns = round(getattr(stage, "for") * 1e9)
        planned.append(Stage(number, end_ns, length_ns, rate_from, end_rate))
        end_ns += length_ns
    return tuple(planned)


def rate_pieces(stages: Sequence[Stage], warmup_s: float) -> list[dict[str, float]]:
    """The rate over time for the engine, from the start of the warm-up; the warm-up has the first rate above 0."""
    first = next((rate for stage in stages for rate in (stage.rate_from, stage.rate_to) if rate), 1.0)
    pieces = [{"from": first, "to": first, "seconds": warmup_s}] if warmup_s else []
    pieces += [{"from": stage.rate_from, "to": stage.rate_to, "seconds": stage.length_ns / 1e9} for stage in stages]
    # The engine requires a rate above 0 at the end. The additional piece begins after the end of the window.
    return pieces if stages[-1].rate_to else [*pieces, {"from": first, "to": first, "seconds": 1}]
