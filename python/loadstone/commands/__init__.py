"""The lab's commands, one per file; each has `main(arguments) -> exit status`."""
