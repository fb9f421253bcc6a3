"""The lab's commands, one in each file; each has a function `main(arguments) -> exit status`."""
