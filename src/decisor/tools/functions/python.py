"""Any Python function as a tool: its type hints are the schema of its arguments, its docstring says what it does.

The function is trusted code that a person named; what a model writes are its arguments only. It runs in a thread (or,
if it is async, in the event loop) up to a deadline. Python cannot stop a thread: one that runs over its deadline goes
on by itself, and after a few of those the tool refuses further calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from decisor.errors import SetupError, ToolError
from decisor.outside import quoted
from decisor.settings import import_named
from decisor.tools.functions.arguments import Arguments
from decisor.tools.functions.results import Cut, observe
from decisor.types import Observation

if TYPE_CHECKING:
    from decisor.tools.functions.signature import Signature

SPEC = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
MOST_OVERDUE, OVERDUE = 3, "decisor-overdue"
CUT = Cut()


@dataclass
class FunctionTool:
    """Satisfies ``types.Tool``. ``seconds``: wall clock of one call.

    Raises:
        SetupError: a hint of the function cannot be read from JSON.
    """

    function: Callable[..., object]
    seconds: float = 30.0
    cut: Cut = CUT
    running: set[threading.Thread] = field(default_factory=set)

    def __post_init__(self) -> None:
        assert self.signature  # what is wrong with the hints is said now

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", "") or type(self.function).__name__

    @cached_property
    def signature(self) -> Signature:
        from decisor.tools.functions.signature import signature  # pydantic loads for function tools only

        return signature(self.function)

    @cached_property
    def arguments(self) -> Arguments:
        return Arguments(self.signature.schema, self.signature.schema)

    def describe(self) -> str:
        about = inspect.getdoc(self.function) or "(no description)"
        return f"{about}\n{self.arguments.describe()}"

    async def call(self, text: str) -> Observation:
        """Raises ToolError where the arguments do not fit, or the function fails or takes too long."""
        arguments = self.signature.convert(self.arguments.read(text))
        try:
            if inspect.iscoroutinefunction(self.function):
                async with asyncio.timeout(self.seconds):
                    value: object = await self.function(**arguments)
            else:
                value = await self._in_thread(arguments)
            return observe(value, self.name, self.cut)
        except TimeoutError as error:
            raise ToolError(f"{self.name} took longer than {self.seconds:g} s.") from error
        except ToolError:
            raise
        except Exception as error:
            raise ToolError(f"{self.name} failed: {type(error).__name__}: {quoted(str(error))}") from error

    async def close(self) -> None:
        """Holds nothing open."""

    async def _in_thread(self, arguments: dict[str, object]) -> object:
        """A thread of our own that does not keep the process from ending. Raises TimeoutError, or what was raised."""
        self.running = {thread for thread in self.running if thread.is_alive()}
        if len(self.running) >= MOST_OVERDUE and all(thread.name == OVERDUE for thread in self.running):
            raise ToolError(f"{self.name} is still busy with {len(self.running)} calls that ran over their deadline.")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[tuple[object, BaseException | None]] = loop.create_future()

        def settle(value: object, error: BaseException | None) -> None:
            if not done.done():
                done.set_result((value, error))

        def work() -> None:
            value: object = None
            failure: BaseException | None = None
            try:
                value = context.run(self.function, **arguments)
            except BaseException as error:  # SystemExit of a user's function ends its call, not us
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(settle, value, failure)

        context = contextvars.copy_context()
        thread = threading.Thread(target=work, name=self.name, daemon=True)
        self.running.add(thread)
        thread.start()
        try:
            async with asyncio.timeout(self.seconds):
                value, failure = await done
        except TimeoutError:
            thread.name = OVERDUE
            raise
        if failure is not None:
            raise failure if isinstance(failure, Exception) else RuntimeError(type(failure).__name__)
        return value


def load_function(spec: str) -> Callable[..., object]:
    """What ``module:function`` names; modules of the working directory are found first. Only for what a person typed.

    Raises:
        SetupError: there is no such module or function, or the module fails.
    """
    module_name, _, path = spec.partition(":")
    target: object = import_named(spec)
    for name in path.split("."):
        if not hasattr(target, name):
            functions = [one for one, value in vars(target).items() if inspect.isfunction(value) and one[0] != "_"]
            own = [one for one in functions if getattr(target, one).__module__ == module_name]
            raise SetupError(f"{spec}: there is no {name}. {module_name} has {', '.join(own) or 'no functions'}.")
        target = getattr(target, name)
    if not callable(target):
        raise SetupError(f"{spec} is not a function but {type(target).__name__}.")
    return target
