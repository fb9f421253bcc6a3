"""The lab's commands, one a file; each has `main(arguments) -> exit status`."""
