"""``python -m decisor``. Python has put the working folder first on the path; it may be someone else's."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]
    from decisor.cli import main

    main()
