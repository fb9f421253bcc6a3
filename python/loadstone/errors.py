"""What Loadstone tells a user who has to do something."""


class LoadstoneError(Exception):
    """An error that names the thing and the place, with the next step in `hint`; neither ends in a period."""

    # What the command exits with: 1 for a failed run, 2 for bad usage.
    exit_status = 1

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        return f"error: {self.args[0]}\nhint: {self.hint}"
