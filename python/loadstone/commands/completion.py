"""`loadstone completion` generates a completion script for a shell, or the man page, from the help of every command."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO

from loadstone import __version__
from loadstone.commands.parser import CommandParser, guard_command
from loadstone.engine import program

OPTION = re.compile(r"(?<![\w-])--?[a-z][a-zA-Z-]*")
VERB = re.compile(r"^  ([a-z-]+) ", re.MULTILINE)
HELP_SECONDS = 30
PLACES = """\
bash: loadstone completion bash > ~/.local/share/bash-completion/completions/loadstone
zsh:  loadstone completion zsh > ~/.zsh/_loadstone      (a directory of $fpath)
fish: loadstone completion fish > ~/.config/fish/completions/loadstone.fish
man:  loadstone completion man > ~/.local/share/man/man1/loadstone.1"""


@dataclass(frozen=True)
class CommandCatalogue:
    """All commands of Loadstone."""

    # A description of each command.
    commands: Mapping[str, str]
    # The names of the engine's commands.
    engine: Collection[str]
    # The general help text.
    usage: str
    # The function that runs a command of the lab.
    run: Callable[[str, list[str]], int]


def create_main(catalogue: CommandCatalogue) -> Callable[[list[str]], int]:
    """Creates the command `completion` for these commands."""

    @guard_command
    def main(arguments: list[str]) -> int:
        parser = CommandParser("completion", "Print a completion script for a shell, or the man page.", PLACES)
        parser.add_argument("form", choices=[*FORMS], help="what to print")
        form = FORMS[parser.parse_args(arguments).form]
        print(form(catalogue, read_help(catalogue)), end="")
        return 0

    return main


def read_help(catalogue: CommandCatalogue) -> dict[str, str]:
    """The help text of every command, and of every verb of a command, such as `systems up`."""
    texts: dict[str, str] = {}
    pending = [*catalogue.commands]
    while pending:
        path = pending.pop(0)
        name, *verbs = path.split()
        texts[path] = engine_help(name) if name in catalogue.engine else lab_help(catalogue, name, verbs)
        # The verbs of some commands have no separate help: such a verb prints the help of its command.
        if texts[path] != texts.get(path.rpartition(" ")[0]):
            pending = [*(f"{path} {verb}" for verb in list_verbs(texts[path])), *pending]
    return texts


def list_verbs(text: str) -> list[str]:
    """The verbs that a help text lists below `verbs:`."""
    _, _, listed = text.partition("\nverbs:\n")
    return VERB.findall(listed.partition("\n\n")[0])


def list_next_words(texts: Mapping[str, str], path: str) -> list[str]:
    """The verbs and options that may follow a command."""
    verbs = [name.rpartition(" ")[2] for name in texts if name.rpartition(" ")[0] == path]
    return verbs + list_options(texts[path])


def engine_help(name: str) -> str:
    """The help text of one of the engine's commands."""
    command = [program.find_engine(), name, "--help"]
    return subprocess.run(command, capture_output=True, text=True, timeout=HELP_SECONDS, check=True).stdout


def lab_help(catalogue: CommandCatalogue, name: str, verbs: Sequence[str] = ()) -> str:
    """The help text of one of the lab's commands, or of one of its verbs."""
    printed = StringIO()
    with redirect_stdout(printed), suppress(SystemExit):
        catalogue.run(name, [*verbs, "--help"])
    return printed.getvalue()


def list_options(text: str) -> list[str]:
    """The options that a help text lists at the beginning of lines."""
    lines = [line.strip().partition("   ")[0] for line in text.splitlines() if line.strip().startswith("-")]
    return list(dict.fromkeys(option for line in lines for option in OPTION.findall(line)))


def bash_completion(catalogue: CommandCatalogue, texts: Mapping[str, str]) -> str:
    """The completion script for bash, which completes commands, then verbs, options or files."""
    cases = "\n".join(f'        " {path}") words="{" ".join(list_next_words(texts, path))}" ;;' for path in texts)
    paths = "|".join(f'" {path}"' for path in texts)
    return f"""\
# bash completion for loadstone {__version__}, made by `loadstone completion bash`
_loadstone() {{
    local words="{" ".join(catalogue.commands)}" word=${{COMP_WORDS[COMP_CWORD]}} path="" i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "$path ${{COMP_WORDS[i]}}" in
            {paths}) path+=" ${{COMP_WORDS[i]}}" ;;
            *) break ;;
        esac
    done
    case $path in
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    if [[ -n $path && $word != -* ]]; then COMPREPLY+=($(compgen -f -- "$word")); fi
}}
complete -o filenames -F _loadstone loadstone
"""


def zsh_completion(catalogue: CommandCatalogue, texts: Mapping[str, str]) -> str:
    """The completion script for zsh."""
    listed = "\n".join(f"    '{name}:{quote_text(command_summary(catalogue, name))}'" for name in catalogue.commands)
    cases = "\n".join(f"    ' {path}') following=({' '.join(list_next_words(texts, path))}) ;;" for path in texts)
    paths = "|".join(f"' {path}'" for path in texts)
    return f"""\
#compdef loadstone
# zsh completion for loadstone {__version__}, made by `loadstone completion zsh`
local -a commands following
local line="" i
commands=(
{listed}
)
if ((CURRENT == 2)); then
  _describe command commands
  return
fi
for ((i = 2; i < CURRENT; i++)); do
  case "$line $words[i]" in
    {paths}) line+=" $words[i]" ;;
    *) break ;;
  esac
done
case $line in
{cases}
esac
compadd -- $following
[[ $PREFIX == -* ]] || _files
"""


def fish_completion(catalogue: CommandCatalogue, texts: Mapping[str, str]) -> str:
    """The completion script for fish."""
    lines = [f"# fish completion for loadstone {__version__}, made by `loadstone completion fish`"]
    for path, text in texts.items():
        *above, name = path.split()
        verbs = list_verbs(text)
        here = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in path.split())
        without = f"; and not __fish_seen_subcommand_from {' '.join(verbs)}" if verbs else ""
        summary = quote_text(command_summary(catalogue, path) if not above else verb_summary(texts, path))
        before = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in above)
        siblings = list_verbs(texts[" ".join(above)]) if above else []
        if above:
            before += f"; and not __fish_seen_subcommand_from {' '.join(siblings)}"
        lines += [f"complete -c loadstone -n '{before or '__fish_use_subcommand'}' -f -a {name} -d '{summary}'"]
        for option in list_options(text):
            kind = "-l" if option.startswith("--") else "-s" if len(option) == 2 else "-o"
            lines.append(f"complete -c loadstone -n '{here}{without}' {kind} {option.lstrip('-')}")
    return "\n".join(lines) + "\n"


def verb_summary(texts: Mapping[str, str], path: str) -> str:
    """The description of a verb in the help of its command."""
    above, _, verb = path.rpartition(" ")
    match = re.search(rf"^  {verb} +(.*)$", texts[above], re.MULTILINE)
    return match[1] if match else ""


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
    """Removes quotes and colons, so that zsh and fish can read the text in single quotes."""
    return text.replace("'", "").replace(":", "")


def escape_roff(text: str) -> str:
    """Escapes the characters that are special in roff (groff(7))."""
    escaped = text.rstrip().replace("\\", "\\e").replace("-", "\\-")
    escaped = re.sub(r"[^\x00-\x7f]", lambda match: f"\\[u{ord(match[0]):04X}]", escaped)
    return re.sub(r"^([.'])", r"\\&\1", escaped, flags=re.MULTILINE)


FORMS: Mapping[str, Callable[[CommandCatalogue, Mapping[str, str]], str]] = {
    "bash": bash_completion,
    "zsh": zsh_completion,
    "fish": fish_completion,
    "man": man_page,
}
