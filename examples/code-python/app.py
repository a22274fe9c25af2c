"""A tool that runs programs in Python, the counterpart of the built-in `execute_code`."""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import tools
from wit_world.imports import types

import modules
import program

CODE_BYTES_MAX = 256 * 1024
LANGUAGES = ("python", "py", "python3")
# Milliseconds of a program without a `timeout`, those before the end of its call, and those of a
# program in a call that has no end.
TIME_MS = 800
MARGIN_MS = 250
TIME_MS_MAX = 600_000


def fields(required, **properties):
    """The JSON Schema of an object with these fields: a type, or a type and a description."""
    return {
        "type": "object",
        "properties": {name: {"type": kind, "description": text} for name, (kind, text) in properties.items()},
        "required": required.split(),
    }


ARGUMENTS = fields(
    "code",
    code=("string", "The program."),
    language=(["string", "null"], "Its language; `python` if omitted."),
    timeout=(["integer", "null"], "Milliseconds after which it is stopped, 800 if omitted. The operator's limits "
             "apply where they are shorter."),
)
ARGUMENTS["additionalProperties"] = False
ARGUMENTS["properties"]["timeout"]["minimum"] = 1

ERROR = fields(
    "name message",
    name=("string", "Its name, such as `TypeError`."),
    message=("string", "Its message."),
    line=("integer", "The line of the program, from 1."),
    column=("integer", "The column in it, from 1."),
    stack=("array", "The functions that were running, innermost first."),
    hint=("string", "Something that may help."),
)
ERROR["properties"]["stack"]["items"] = {"type": "string"}

RESULT = fields(
    "status language stdout stderr durationMs",
    status=("string", "The manner in which it ended."),
    language=("string", "Its language."),
    rendered=("string", "The value of its last expression as text, where JSON would lose something."),
    stdout=("string", "The text that it printed."),
    stderr=("string", "The text that it printed as warnings and errors."),
    durationMs=("integer", "Milliseconds that it took."),
)
RESULT["properties"]["status"]["enum"] = ["completed", "failed", "timed-out", "out-of-memory"]
RESULT["properties"]["value"] = {"description": "The value of its last expression."}
RESULT["properties"]["error"] = ERROR

EXECUTE = types.ToolDefinition(
    name="execute_python",
    description="Runs a program in Python and returns what it printed, the value of its last expression, and its "
    f"error with line and column. A program has no files and no network; it computes, for {TIME_MS} ms unless "
    f"`timeout` says otherwise. Modules: {', '.join(modules.NAMES)}.",
    arguments=json.dumps(ARGUMENTS),
    results=json.dumps(RESULT),
    capabilities=[],
    effect=types.EffectClass.READ_ONLY,
    destructive=False,
    time_limit_ms=None,
)


def checked(arguments):
    """The program and its time, or the error that says what is wrong with the arguments.

    The host has compared them with the schema before.
    """
    asked = json.loads(arguments)
    code = asked.get("code")
    if not isinstance(code, str) or not code.strip():
        raise invalid("code", "must not be empty")
    if (size := len(code.encode(errors="replace"))) > CODE_BYTES_MAX:
        raise invalid("code", f"has {size} bytes; {CODE_BYTES_MAX} is the most")
    language = asked.get("language")
    if language is not None and str(language).strip().lower() not in LANGUAGES:
        raise invalid("language", f"is `{language}`, which is not installed; installed: {LANGUAGES[0]}")
    return code, asked.get("timeout") or TIME_MS


def invalid(field, problem):
    return Err(tools.ToolError_InvalidArguments(f"`{field}` {problem}"))


class Tools(exports.Tools):
    def describe(self):
        return [EXECUTE]

    def call(self, context, name, arguments):
        if name != EXECUTE.name:
            raise Err(tools.ToolError_NotFound(f"there is no tool `{name}`"))
        code, time_ms = checked(arguments)
        whole_ms = context.deadline_ms or TIME_MS_MAX
        result = program.run(code, min(time_ms, max(whole_ms - min(MARGIN_MS, whole_ms // 10), 1)))
        text = json.dumps(result, ensure_ascii=False)
        # A surrogate on its own is text in Python, and nowhere else.
        return tools.Progress_Done([types.Part_Text(text.encode(errors="replace").decode())])
