"""A search on a terminal: its probes, and why it stopped."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from loadstone.judge.judgement import Search
from loadstone.report import probes
from loadstone.results.result_set import variant_name


def searched(search: Search) -> list[Table | Text]:
    """The table of a search's probes, with its notes."""
    title = " ".join(["probes", *([variant_name(search.context)] if search.context else [])])
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for head in probes.heads(search):
        table.add_column(head, justify="left" if head == probes.DECISION else "right", no_wrap=head != probes.DECISION)
    for row in probes.rows(search):
        table.add_row(*row)
    return [table, *(Text(f"{line}.") for line in probes.explanation(search))]
