"""The command line as ``python -m dpmarkov``."""

from dpmarkov.cli import main

if __name__ == "__main__":
    main()
