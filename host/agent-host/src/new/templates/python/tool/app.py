"""A tool: counts the words of a text."""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import tools
from wit_world.imports import types

DEFINITION = types.ToolDefinition(
    name="{{snake}}",
    description="Counts the words of a text.",
    arguments=json.dumps({
        "type": "object",
        "properties": {"text": {"type": "string", "description": "The text."}},
        "required": ["text"],
        "additionalProperties": False,
    }),
    # The host checks every result against this.
    results=json.dumps({
        "type": "object",
        "properties": {"words": {"type": "integer", "minimum": 0}},
        "required": ["words"],
    }),
    capabilities=[],
    # It changes nothing, so the host may run it again after a crash.
    effect=types.EffectClass.READ_ONLY,
    destructive=False,
    time_limit_ms=None,
)


class Tools(exports.Tools):
    def describe(self):
        return [DEFINITION]

    def call(self, context, name, arguments):
        # A host checks the arguments first and calls by names that `describe` returned. `plugin
        # test` does neither: what does not fit is refused here, and any other name.
        if name != DEFINITION.name:
            raise Err(tools.ToolError_NotFound(f"there is no tool `{name}`"))
        text = json.loads(arguments).get("text")
        words = len(text.split()) if isinstance(text, str) else 0
        if words == 0:
            raise Err(tools.ToolError_InvalidArguments("`text` must have a word in it"))
        return tools.Progress_Done([types.Part_Text(json.dumps({"words": words}))])
