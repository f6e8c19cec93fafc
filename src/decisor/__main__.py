"""``python -m decisor``."""

from decisor.cli import main

if __name__ == "__main__":
    main()
