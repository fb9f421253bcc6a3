#!/usr/bin/env bash
# Lists the missing programs that a build of Loadstone needs, one per line, each with the command that installs the
# program. The exit status is 2 if any is missing. The script runs no other programs, so it works on a minimal machine.

rust_needed=1.90 # Cargo.toml: rust-version
python_needed=3.11
jdk_needed=17
python=${PYTHON:-python3}

missing=0
lacks() { # the problem, the command that fixes it
    echo "error: $1: $2" >&2
    missing=2
}

found() { command -v "$1" >/dev/null; }

older() { # version, the version needed; each major.minor, further parts are ignored
    local major minor major_needed minor_needed
    IFS=. read -r major minor _ <<<"$1"
    IFS=. read -r major_needed minor_needed _ <<<"$2"
    ((major < major_needed || (major == major_needed && ${minor:-0} < ${minor_needed:-0})))
}

install_rust="curl -sSf https://sh.rustup.rs | sh"
found rustup && install_rust="rustup toolchain install stable && rustup default stable"
found cargo || lacks "cargo not found" "$install_rust"
if ! found rustc; then
    lacks "rustc not found" "$install_rust"
elif ! read -r _ version _ <<<"$(rustc --version 2>/dev/null)" || [[ $version != [0-9]* ]]; then
    lacks "rustc does not run" "$install_rust"
elif older "$version" $rust_needed; then
    lacks "rustc $version is too old; $rust_needed is needed" "$install_rust"
fi

if ! found "$python"; then
    lacks "$python not found" "apt-get install python3 python3-venv"
else
    read -r version <<<"$("$python" -c 'import platform; print(platform.python_version())' 2>/dev/null)"
    if [[ $version != [0-9]* ]]; then
        lacks "$python does not run" "apt-get install python3 python3-venv"
    elif older "$version" $python_needed; then
        lacks "$python $version is too old; $python_needed is needed" "apt-get install python$python_needed-venv && make PYTHON=python$python_needed"
    elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        lacks "$python has no module venv" "apt-get install python3-venv"
    fi
fi

javac=${JAVA_HOME:+$JAVA_HOME/bin/}javac
if ! found "$javac"; then
    lacks "$javac not found" "apt-get install openjdk-$jdk_needed-jdk-headless"
else
    read -r _ version _ <<<"$("$javac" -version 2>&1)"
    if [[ $version != [0-9]* ]]; then
        lacks "$javac does not run" "apt-get install openjdk-$jdk_needed-jdk-headless"
    elif older "$version" $jdk_needed; then
        lacks "$javac $version is too old; $jdk_needed is needed" "apt-get install openjdk-$jdk_needed-jdk-headless"
    fi
fi
found mvn || lacks "mvn not found" "apt-get install maven"

if ! found gcc; then
    lacks "gcc not found" "apt-get install gcc libc6-dev"
elif ! gcc -fsyntax-only -x c - <<<'#include <stdlib.h>' 2>/dev/null; then
    lacks "gcc cannot find stdlib.h" "apt-get install libc6-dev"
fi
found make || lacks "make not found" "apt-get install make"

exit $missing
