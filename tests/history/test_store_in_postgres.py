"""A history in a folder and one in PostgreSQL hold the same; several processes' runs are in PostgreSQL alone."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from decisor.errors import SetupError
from decisor.history.place import FolderPlace, Place
from decisor.history.postgres import News, PostgresPlace
from decisor.history.recorder import update_past_run
from decisor.history.store import History, PastRun, RunMark
from decisor.trace.events import Conclusion, Note, RunStart, RunUsage, Trace, TraceEntry
from decisor.types import Decision, Question, Usage
from history.test_history_store import NOTE
from history.test_history_store import keep as record
from servers.sql_databases import postgres_database

pytest.importorskip("psycopg_pool")


@pytest.fixture(params=["folder", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "folder":
        yield FolderPlace(tmp_path)
        return
    with postgres_database(()) as url:
        place = PostgresPlace(url)
        yield place
        place.close()


@pytest.fixture
def postgres() -> Iterator[PostgresPlace]:
    with postgres_database(()) as url:
        place = PostgresPlace(url)
        yield place
        place.close()


def keep(history: History, text: str, answer: str = "elm", owner: str = "") -> int:
    """Record a run, as a command does in a folder and a server in PostgreSQL."""
    place = history.place
    if not isinstance(place, PostgresPlace):
        return record(history, text, answer, owner)
    question = Question(text)
    trace = Trace()
    for event in (RunStart(question, "plan_rag", "m"), NOTE, Conclusion(Decision(answer)), RunUsage(Usage(calls=2))):
        trace.add(event)
    number = history.begin(PastRun(question, owner=owner))
    past = PastRun(question, number=number, owner=owner)
    for entry in trace.entries:
        past = update_past_run(past, entry)
    with place.transaction() as tables:
        tables.execute("INSERT INTO live (number, job) VALUES (?, ?)", (number, "{}"))
    place.publish(history, [News(number, 0, 0, trace.entries, "{}")], [])
    place.publish(history, [News(number, 0, len(trace.entries), (), "{}")], [past])
    return number


def test_a_run_comes_back_with_its_trace(place: Place) -> None:
    history = History(place)
    number = keep(history, "Which site? \0 \U0001f333", "Röhm")
    run = history.read(number)
    assert (run.answer, run.state, run.technique, run.usage.calls) == ("Röhm", "answered", "plan_rag", 2)
    entries = history.entries(number)
    assert [type(entry.event) for entry in entries] == [RunStart, Note, Conclusion, RunUsage]
    assert entries[1].event == NOTE and history.read() == run


def test_runs_are_listed_searched_and_kept_apart(place: Place) -> None:
    history = History(place)
    for text, answer, owner in (
        ("100 % of_sites!", "elm", "ann"),
        ("Which SITE?", "Röhm", "ann"),
        ("Mine?", "x", "bob"),
    ):
        keep(history, text, answer, owner)
    assert [run.number for run in history.list("ann")] == [2, 1]
    assert [run.number for run in history.list("ann", most=1, before=2)] == [1]
    found = {
        words: [run.number for run in history.search(words, "ann")] for words in ("%", "of_", "röhm site", "!", "'")
    }
    assert found == {"%": [1], "of_": [1], "röhm site": [2], "!": [1], "'": []}
    assert history.show(3, "ann", "bob") == ("ann",) == history.show(3, "ann", "bob")
    assert history.owner_of(3, "ann") == "bob"
    assert [run.number for run in history.list("ann", others=True)] == [3, 2, 1]
    assert history.delete([1, 3], "ann") == 1 and not history.entries(2, "ann")[4:]
    with pytest.raises(SetupError, match="There is no run"):
        history.read(1, "ann")
    with pytest.raises(SetupError, match="There is no run"):
        history.mark(2, RunMark("right"), "bob")
    assert history.delete(None, "bob") == 1 and not history.list("ann", others=True)[1:]
    assert keep(history, "one more") == 4


def test_marks_are_changed_by_many_at_once(place: Place) -> None:
    history = History(place)
    number = keep(history, "Which site?")

    def count(_: int) -> None:
        history.change(number, "", lambda run: replace(run, entries=run.entries + 1))

    before = history.read(number).entries
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(40)))
    assert history.read(number).entries == before + 40


def test_beyond_the_cap_the_oldest_are_dropped(place: Place) -> None:
    history = History(place, cap=9_500)
    keep(history, "one")
    history.mark(1, RunMark("right"))
    for text in ("two", "three", "four"):
        keep(history, text)
    assert [run.number for run in history.list()] in ([4, 3, 1], [4, 1])
    assert sum(place.sizes().values()) <= 9_500 and sorted(place.sizes()) == [*{run.number for run in history.list()}]


def test_a_process_that_lost_a_run_changes_nothing_more(postgres: PostgresPlace) -> None:
    history = History(postgres)
    trace = Trace()
    for event in (RunStart(Question("Which?"), "plan_rag", "m"), NOTE):
        trace.add(event)
    number = history.begin(PastRun(Question("Which?"), owner="ann"))
    with postgres.transaction() as tables:
        tables.execute("INSERT INTO live (number, job) VALUES (?, ?)", (number, "{}"))
    first = postgres.take(1)
    assert postgres.take(2) is None
    for seen in ([], [number]):
        assert postgres.release_strays(2, {}, seen) == ({number}, {*seen}, 0)
    second = postgres.take(2)
    assert first is not None and second is not None and (first.attempt, second.attempt) == (1, 2)
    past = replace(second.past, state="answered", answer="elm", usage=Usage())

    def news(attempt: int) -> News:
        return News(number, attempt, 0, trace.entries, "{}")

    assert postgres.publish(history, [news(1)], [past]) == {number}
    assert not history.entries(number, "ann")
    assert postgres.news_since([(number, 0, 0)]) == {number: (2, "", [])}
    assert postgres.publish(history, [news(2)], [past]) == set()
    assert history.read(number, "ann").answer == "elm" and len(history.entries(number, "ann")) == 2
    assert postgres.take(1) is None and not postgres.news_since([(number, 0, 0)])


def test_a_run_that_was_put_in_line_is_taken_back_by_the_process_that_does_it(postgres: PostgresPlace) -> None:
    # As after PostgreSQL began again: process 2 could not see yet that process 1 is alive.
    history = History(postgres)
    number = history.begin(PastRun(Question("Which?"), owner="ann"))
    with postgres.transaction() as tables:
        tables.execute("INSERT INTO live (number, job) VALUES (?, ?)", (number, "{}"))
    taken = postgres.take(1)
    assert taken is not None and taken.attempt == 1
    # Its own runs are no strays for want of a lock, but one that it does not know is.
    assert postgres.release_strays(1, {number: 1}, [number]) == (set(), set(), 0)
    assert postgres.release_strays(1, {}, []) == ({number}, set(), 0)
    postgres.release_strays(2, {}, [number])
    assert postgres.take(1, [number]) is None
    postgres.release_strays(1, {number: 1}, [])
    assert postgres.take(2) is None
    over = replace(taken.past, state="answered", answer="elm", usage=Usage())
    postgres.reply(number, "query", 1, "yes")
    postgres.keep_bought([(number, "key", "{}")])
    assert postgres.replies(number) == {("query", 1): "yes"} and postgres.bought(number) == {"key": "{}"}
    assert postgres.publish(history, [News(number, 1, 0, [], "{}")], [over]) == set()
    assert history.read(number, "ann").answer == "elm"
    # What comes after the end, as from a process that lost the run, is not kept for ever.
    postgres.reply(number, "stop", 0, "")
    postgres.keep_bought([(number, "key", "{}")])
    assert not postgres.replies(number) and not postgres.bought(number)
    # An attempt that another process has taken is not taken back.
    other = history.begin(PastRun(Question("Which?"), owner="ann"))
    with postgres.transaction() as tables:
        tables.execute("INSERT INTO live (number, job) VALUES (?, ?)", (other, "{}"))
    postgres.take(1)
    postgres.leave(1)
    second = postgres.take(2)
    postgres.release_strays(1, {other: 1}, [])
    assert second is not None and second.attempt == 2
    assert postgres.publish(history, [News(other, 1, 0, [], "{}")], []) == {other}


def test_only_what_is_new_of_runs_is_read_and_all_of_a_new_attempt(postgres: PostgresPlace) -> None:
    history, numbers = History(postgres), []
    entries = [TraceEntry(number, 0, 0.0, Note(f"{number}")) for number in range(1, 5)]
    for text in ("One?", "Two?"):
        number = history.begin(PastRun(Question(text)))
        with postgres.transaction() as tables:
            tables.execute("INSERT INTO live (number, job) VALUES (?, ?)", (number, "{}"))
        postgres.take(1)
        postgres.publish(history, [News(number, 1, 0, entries, text)], [])
        numbers.append(number)

    def counts(*read: tuple[int, int, int]) -> dict[int, tuple[int, str, int]]:
        news = postgres.news_since(read)
        return {number: (attempt, state, len(lines)) for number, (attempt, state, lines) in news.items()}

    one, two = numbers
    assert counts((one, 1, 0), (two, 1, 3), (99, 0, 0)) == {one: (1, "One?", 4), two: (1, "Two?", 1)}
    postgres.leave(1)
    assert [taken.past.number for taken in (postgres.take(2), postgres.take(2)) if taken] == [one, two]
    postgres.publish(history, [News(two, 2, 0, entries[:2], "")], [])
    assert counts((one, 1, 4), (two, 1, 4)) == {one: (2, "", 0), two: (2, "", 2)}


def test_connections_that_postgresql_closed_meanwhile_are_replaced(postgres: PostgresPlace) -> None:
    import psycopg

    history = History(postgres)
    keep(history, "Which site?")
    with psycopg.connect(postgres.url, autocommit=True) as other:
        ends = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        assert set(other.execute(f"{ends} AND datname = current_database()").fetchall()) == {(True,)}
    assert len(history.list()) == 1


def test_many_processes_make_the_tables_at_once() -> None:
    with postgres_database(()) as url:
        places = [PostgresPlace(url) for _ in range(6)]
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(PostgresPlace.sizes, places))
        with places[0].transaction() as tables:
            tables.execute("UPDATE format SET version = 99")
        places.append(PostgresPlace(url))
        with pytest.raises(SetupError, match="of format 99"):
            places[-1].sizes()
        for place in places:
            place.close()


def test_a_store_that_cannot_be_reached_says_so_without_its_password() -> None:
    place = PostgresPlace("postgresql://me:hunter22x@127.0.0.1:9/shop?connect_timeout=1")
    place.pool.timeout = 1
    with pytest.raises(SetupError, match="Is PostgreSQL up") as caught:
        History(place).list()
    assert "hunter22x" not in str(caught.value)
    place.close()
