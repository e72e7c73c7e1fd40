"""`python -m scoreline` is the command `scoreline`."""

from scoreline.cli.main import entry

if __name__ == "__main__":
    entry()
