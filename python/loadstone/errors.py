"""Errors that require an action by the user."""


class LoadstoneError(Exception):
    """An error whose message names an object and its location; `hint` is the next step. Neither ends in a period."""

    # The exit status of the command: 1 for a failed run, 2 for bad usage.
    exit_status = 1

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        return f"error: {self.args[0]}\nhint: {self.hint}"
