"""The values of YAML's plain scalars, if YAML 1.1 (PyYAML, Ruby) and YAML 1.2 (most editors, schemas) agree on them."""

from __future__ import annotations

import re
from typing import Any

TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
NULL = ("", "~", "null", "Null", "NULL")
# The core schema of YAML 1.2 (section 10.3.2), as far as YAML 1.1 agrees with it.
WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)")
HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)?\.[0-9]+([eE][-+][0-9]+)?|[-+]?(0|[1-9][0-9]*)\.([eE][-+][0-9]+)?")
INFINITE_OR_NAN = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
# Scalars on which the versions disagree: https://yaml.org/type/bool.html, int.html and float.html compared with 1.2.
TRUTH = re.compile(r"yes|Yes|YES|on|On|ON|no|No|NO|off|Off|OFF")
LEADING_ZERO = re.compile(r"[-+]?0[0-9]+(\.[0-9]*)?")
OCTAL = re.compile(r"0o[0-7]+")
BINARY = re.compile(r"[-+]?0b[01_]+")
UNDERSCORES = re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?")
SEXAGESIMAL = re.compile(r"[-+]?[0-9]+(:[0-5]?[0-9])+(\.[0-9]*)?")
EXPONENT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+")


def resolve_scalar(text: str) -> Any:
    """The value of a plain scalar."""
    if text in NULL:
        return None
    if text in TRUE or text in FALSE:
        return text in TRUE
    if WHOLE.fullmatch(text):
        return int(text)
    if HEXADECIMAL.fullmatch(text):
        return int(text, 16)
    if DECIMAL.fullmatch(text):
        return float(text)
    if INFINITE_OR_NAN.fullmatch(text):
        return float(text.replace(".", "", 1))
    return text


def explain_ambiguity(text: str) -> tuple[str, str] | None:
    """The message and hint for a scalar that YAML 1.1 and 1.2 read differently; None for other scalars."""
    if TRUTH.fullmatch(text):
        truth = "true" if text.lower() in ("yes", "on") else "false"
        return (
            f"`{text}` is {truth} in YAML 1.1 and a string in YAML 1.2",
            f'write {truth}, or "{text}" for the string',
        )
    if LEADING_ZERO.fullmatch(text):
        number = text.lstrip("+-0") or "0"
        number = ("-" if text.startswith("-") else "") + (f"0{number}" if number.startswith(".") else number)
        return f"`{text}` may be octal", f'write {number}, or "{text}" to keep its zeros'
    if OCTAL.fullmatch(text) or BINARY.fullmatch(text):
        base, digits = (8, text.replace("0o", "")) if "o" in text else (2, text.replace("0b", "").replace("_", ""))
        message = f"`{text}` is a number in one version of YAML and a string in another"
        return message, f'write {int(digits, base)}, or "{text}"'
    if SEXAGESIMAL.fullmatch(text):
        return (
            f"`{text}` is a base-60 number in YAML 1.1",
            f'write a duration as 90s or 1m30s, or quote it: "{text}"',
        )
    if "_" in text and UNDERSCORES.fullmatch(text):
        plain = text.replace("_", "")
        return f"`{text}` is a number in YAML 1.1 and a string in YAML 1.2", f'write {plain}, or "{text}"'
    if EXPONENT.fullmatch(text) and not DECIMAL.fullmatch(text):
        value = float(text)
        plain = f"{value:.0f}" if value.is_integer() and abs(value) < 1e18 else repr(value)
        # YAML 1.1 requires a decimal point, and a point before `inf`.
        plain = plain if "." in plain else plain.replace("e", ".0e").replace("inf", ".inf")
        return f"`{text}` is a string in YAML 1.1 and a number in YAML 1.2", f'write {plain}, or "{text}"'
    return None
