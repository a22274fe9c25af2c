"""The run of a program: its time, its output, the value of its last expression, and its error."""

import ast
import collections
import io
import json
import linecache
import random
import sys
import time
import traceback
import types

import modules

# Characters that are kept of each stream, of a value and of a message; levels of a value as JSON,
# of which the host takes 64; frames of an error, and characters of each.
STREAM_CHARS_MAX = 256 * 1024
VALUE_CHARS_MAX = 64 * 1024
VALUE_LEVELS_MAX = 32
MESSAGE_CHARS_MAX = 8 * 1024
FRAMES_MAX = 10
FRAME_CHARS_MAX = 200
# Seconds in which an error says its message, after the time of the program.
MESSAGE_S = 0.05
RESERVE_BYTES = 1024 * 1024
# The largest whole number that every reader of JSON reads as it is.
WHOLE_MAX = 2**53 - 1

FILE = "program.py"
# Names of its own, since a program may give those of the modules to something else.
now = time.monotonic
monitoring = sys.monitoring
CLOCK = monitoring.DEBUGGER_ID
# Without a jump and without a call a program ends by itself.
EVENTS = monitoring.events.JUMP, monitoring.events.PY_START, monitoring.events.PY_RESUME
monitoring.use_tool_id(CLOCK, "time")


class TimeUp(BaseException):
    """The end of a program's time. No `except Exception` of the program holds it up."""


class Stream(io.TextIOBase):
    """Text that a program prints: its beginning, and the number of characters that are left out."""

    def __init__(self):
        self.kept = []
        self.room = STREAM_CHARS_MAX
        self.dropped = 0

    def writable(self):
        return True

    def write(self, text):
        kept = text[: self.room]
        if kept:
            self.kept.append(kept)
            self.room -= len(kept)
        self.dropped += len(text) - len(kept)
        return len(text)

    def text(self):
        mark = f"\n[cut here: {STREAM_CHARS_MAX} characters are kept, and {self.dropped} left out]"
        return "".join(self.kept) + (mark if self.dropped else "")


def watched(work, subject, deadline):
    """Does a program's work, which a `TimeUp` ends at the first jump or call after the deadline.

    A program that catches it has the next one at once: unlike a trace function, this one stays.
    """

    def look_at_clock(*_):
        if now() >= deadline:
            raise TimeUp

    for event in EVENTS:
        monitoring.register_callback(CLOCK, event, look_at_clock)
    monitoring.set_events(CLOCK, sum(EVENTS))
    # From here on to the end of `finally` there must be no jump and no call of a Python function.
    try:
        return work(subject)
    finally:
        monitoring.set_events(CLOCK, 0)


def bounded_sleep(deadline):
    """A `time.sleep` that ends with the program's time."""
    sleep = time.sleep

    def until_deadline(seconds):
        left = max(deadline - now(), 0)
        sleep(min(seconds, left))
        if seconds >= left:
            raise TimeUp

    return until_deadline


def evaluate(code):
    """Runs a program, and returns the fields of the result that show its value."""
    tree = ast.parse(code, FILE)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    names = sys.modules["__main__"].__dict__
    exec(compile(tree, FILE, "exec"), names)
    return {} if last is None else shown(eval(compile(last, FILE, "eval"), names))


def whole(digits):
    """Reads a whole number, if others read it alike."""
    number = int(digits)
    if abs(number) > WHOLE_MAX:
        raise ValueError("not exact everywhere")
    return number


def is_flat(value, levels):
    """Returns true if lists and objects are nested in so many levels at most."""
    if isinstance(value, dict):
        value = list(value.values())
    return not isinstance(value, list) or (levels > 0 and all(is_flat(one, levels - 1) for one in value))


def shown(value):
    """A value as JSON where JSON loses nothing of it, otherwise as text."""
    if value is None:
        return {}
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        if len(text) <= VALUE_CHARS_MAX:
            text.encode()
            read = json.loads(text, parse_int=whole)
            if is_flat(read, VALUE_LEVELS_MAX) and read == value:
                return {"value": read}
    except (TypeError, ValueError, RecursionError):
        pass
    return {"rendered": cut(repr(value), VALUE_CHARS_MAX)}


def cut(text, chars_max):
    """The beginning of a long text, with its length."""
    if len(text) <= chars_max:
        return text
    return f"{text[:chars_max]}\n[cut here: it has {len(text)} characters]"


def thrown(error):
    """An error with the program's own lines, innermost first."""
    told = {"name": cut(type(error).__name__, FRAME_CHARS_MAX), "message": message(error)}
    steps = collections.deque(maxlen=FRAMES_MAX)
    step = error.__traceback__
    while step:
        # A program that is stopped at the entry of a function has no line in it yet.
        if step.tb_frame.f_code.co_filename == FILE and step.tb_lineno:
            steps.appendleft(step)
        step = step.tb_next
    frames = [frame for step in steps for frame in traceback.extract_tb(step, limit=1)]
    if isinstance(error, SyntaxError) and error.filename == FILE:
        told |= {"line": error.lineno, "column": error.offset}
    elif frames:
        before = linecache.getline(FILE, frames[0].lineno).encode()[: frames[0].colno]
        told |= {"line": frames[0].lineno, "column": len(before.decode(errors="ignore")) + 1}
    if frames:
        told["stack"] = [cut(f"{frame.name} ({FILE}:{frame.lineno}): {frame.line}", FRAME_CHARS_MAX) for frame in frames]
    if isinstance(error, ImportError):
        told["hint"] = f"These modules are there: {', '.join(modules.NAMES)}."
    elif isinstance(error, OSError):
        told["hint"] = "A program has no files, no network and no processes."
    return {name: value for name, value in told.items() if value is not None}


def message(error):
    """The message of an error. Its text may be a work of the program, and gets some time for that."""
    try:
        return cut(watched(str, error, now() + MESSAGE_S), MESSAGE_CHARS_MAX)
    except BaseException:
        return "its message cannot be read"


def ended(code, time_ms, reserve):
    """Runs a program, and returns the fields of the result that say how it ended."""
    deadline = now() + time_ms / 1000
    time.sleep = bounded_sleep(deadline)
    try:
        return {"status": "completed"} | watched(evaluate, code, deadline)
    except TimeUp as error:
        said = {"name": "TimedOut", "message": f"the program was stopped: it had {time_ms} ms"}
        return {"status": "timed-out", "error": thrown(error) | said}
    except MemoryError as error:
        reserve.clear()
        said = {"message": "the program used more memory than it may"}
        return {"status": "out-of-memory", "error": thrown(error) | said}
    except SystemExit as error:
        if error.code in (None, 0):
            return {"status": "completed"}
        return {"status": "failed", "error": thrown(error)}
    except BaseException as error:
        return {"status": "failed", "error": thrown(error)}


def run(code, time_ms):
    """Runs a program for at most so many milliseconds, and returns its result."""
    began = now()
    # Chance would otherwise be the same in every call, as it was when the component was built.
    random.seed()
    sys.modules["__main__"] = types.ModuleType("__main__")
    linecache.cache[FILE] = (len(code), None, code.splitlines(keepends=True), FILE)
    streams = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = io.StringIO(), Stream(), Stream()
    stdout, stderr = sys.stdout, sys.stderr
    # Memory in which to say that there is no more.
    reserve = [bytearray(RESERVE_BYTES)]
    try:
        result = ended(code, time_ms, reserve)
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        reserve.clear()
    return {
        **result,
        "language": "python",
        "stdout": stdout.text(),
        "stderr": stderr.text(),
        "durationMs": round((now() - began) * 1000),
    }
