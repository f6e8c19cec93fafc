"""The command, as ``decisor`` and as ``python -m decisor``."""

import sys


def main() -> None:
    """Run the command line.

    Until the command begins, an interrupt ends the process at once: a traceback of imports says nothing.
    """
    try:
        import signal

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        from decisor.cli import main
    except KeyboardInterrupt:
        sys.exit(130)
    main()


if __name__ == "__main__":
    if not sys.flags.safe_path:  # Python has put the working folder first on the path; it may be someone else's
        del sys.path[0]
    main()
