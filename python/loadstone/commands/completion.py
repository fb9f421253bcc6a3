"""`loadstone completion`: prints completion for a shell, or the man page, made from the help of every command."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Collection, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO

from loadstone import __version__
from loadstone.commands.parser import CommandParser, guard_command
from loadstone.engine import program

OPTION = re.compile(r"(?<![\w-])--?[a-z][a-zA-Z-]*")
HELP_SECONDS = 30
PLACES = """\
bash: loadstone completion bash > ~/.local/share/bash-completion/completions/loadstone
zsh:  loadstone completion zsh > ~/.zsh/_loadstone      (a directory of $fpath)
fish: loadstone completion fish > ~/.config/fish/completions/loadstone.fish
man:  loadstone completion man > ~/.local/share/man/man1/loadstone.1"""


@dataclass(frozen=True)
class CommandCatalogue:
    """All commands of the command line."""

    # A description of each command.
    commands: Mapping[str, str]
    # The engine's commands among them.
    engine: Collection[str]
    # The general help.
    usage: str
    # Runs a command of the lab.
    run: Callable[[str, list[str]], int]


def create_main(catalogue: CommandCatalogue) -> Callable[[list[str]], int]:
    """The command `completion` for these commands."""

    @guard_command
    def main(arguments: list[str]) -> int:
        parser = CommandParser("completion", "Print completion for a shell, or the man page.", PLACES)
        parser.add_argument("form", choices=[*FORMS], help="what to print")
        form = FORMS[parser.parse_args(arguments).form]
        print(form(catalogue, read_help(catalogue)), end="")
        return 0

    return main


def read_help(catalogue: CommandCatalogue) -> dict[str, str]:
    """The help text of every command."""
    return {
        name: engine_help(name) if name in catalogue.engine else lab_help(catalogue, name)
        for name in catalogue.commands
    }


def engine_help(name: str) -> str:
    """The help of a command of the engine."""
    command = [program.find_engine(), name, "--help"]
    return subprocess.run(command, capture_output=True, text=True, timeout=HELP_SECONDS, check=True).stdout


def lab_help(catalogue: CommandCatalogue, name: str) -> str:
    """The help of a command of the lab."""
    printed = StringIO()
    with redirect_stdout(printed), suppress(SystemExit):
        catalogue.run(name, ["--help"])
    return printed.getvalue()


def help_options(text: str) -> list[str]:
    """The options that a help text lists at the start of a line."""
    lines = [line.strip().partition("   ")[0] for line in text.splitlines() if line.strip().startswith("-")]
    return list(dict.fromkeys(option for line in lines for option in OPTION.findall(line)))


def bash_completion(catalogue: CommandCatalogue, texts: Mapping[str, str]) -> str:
    """Completion for bash: commands, then options or files."""
    cases = "\n".join(f'        {name}) words="{" ".join(help_options(text))}" ;;' for name, text in texts.items())
    return f"""\
# bash completion for loadstone {__version__}, made by `loadstone completion bash`
_loadstone() {{
    local words word=${{COMP_WORDS[COMP_CWORD]}}
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "{" ".join(texts)}" -- "$word"))
        return
    fi
    case ${{COMP_WORDS[1]}} in
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    if [[ $word != -* ]]; then COMPREPLY+=($(compgen -f -- "$word")); fi
}}
complete -o filenames -F _loadstone loadstone
"""


def zsh_completion(catalogue: CommandCatalogue, texts: Mapping[str, str]) -> str:
    """Completion for zsh."""
    cases = "\n".join(f"    {name}) compadd -- {' '.join(help_options(text))} ;;" for name, text in texts.items())
    listed = "\n".join(f"    '{name}:{quote_text(command_summary(catalogue, name))}'" for name in texts)
    return f"""\
#compdef loadstone
# zsh completion for loadstone {__version__}, made by `loadstone completion zsh`
local -a commands
commands=(
{listed}
)
if ((CURRENT == 2)); then
  _describe command commands
  return
fi
if [[ $PREFIX == -* ]]; then
  case $words[2] in
{cases}
  esac
else
  _files
fi
"""


def fish_completion(catalogue: CommandCatalogue, texts: Mapping[str, str]) -> str:
    """Completion for fish."""
    lines = [f"# fish completion for loadstone {__version__}, made by `loadstone completion fish`"]
    for name, text in texts.items():
        lines += [
            f"complete -c loadstone -n __fish_use_subcommand -f -a {name} -d "
            f"'{quote_text(command_summary(catalogue, name))}'"
        ]
        for option in help_options(text):
            flag = f"-l {option[2:]}" if option.startswith("--") else f"-o {option[1:]}"
            lines.append(f"complete -c loadstone -n '__fish_seen_subcommand_from {name}' {flag}")
    return "\n".join(lines) + "\n"


def man_page(catalogue: CommandCatalogue, texts: Mapping[str, str]) -> str:
    """The man page: the general help, then the help of each command."""
    parts = [f'.TH LOADSTONE 1 "" "loadstone {__version__}"\n.SH NAME\nloadstone \\- compare data stores under load']
    parts += [
        f".SH {title}\n.nf\n{escape_roff(text)}\n.fi" for title, text in [("SYNOPSIS", catalogue.usage), *texts.items()]
    ]
    return "\n".join(parts) + "\n"


def command_summary(catalogue: CommandCatalogue, name: str) -> str:
    """The description of a command, without its example."""
    return catalogue.commands[name].partition(":")[0]


def quote_text(text: str) -> str:
    """A text escaped for single quotes in zsh and fish."""
    return text.replace("'", "").replace(":", "")


def escape_roff(text: str) -> str:
    """A text with roff's escapes and requests quoted (groff(7))."""
    escaped = text.rstrip().replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", escaped, flags=re.MULTILINE)


FORMS: Mapping[str, Callable[[CommandCatalogue, Mapping[str, str]], str]] = {
    "bash": bash_completion,
    "zsh": zsh_completion,
    "fish": fish_completion,
    "man": man_page,
}
