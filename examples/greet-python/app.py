"""A tool in Python: the same contract as every other, `wit/tools.wit`."""

import json

from wit_world import exports
from wit_world.exports import tools
from wit_world.imports import types

GREET = types.ToolDefinition(
    name="greet",
    description="Greets somebody by name.",
    arguments=json.dumps({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}),
    results=None,
    capabilities=[],
    effect=types.EffectClass.READ_ONLY,
    destructive=False,
    time_limit_ms=None,
)


class Tools(exports.Tools):
    def describe(self):
        return [GREET]

    def call(self, context, name, arguments):
        # The host has validated the arguments against the schema.
        return tools.Progress_Done([types.Part_Text("hello " + json.loads(arguments)["name"])])
