"""A child of ours that computes without end in one step of the interpreter, which no thread can interrupt."""


def main() -> None:
    print(pow(3, 10**10) % 7)
