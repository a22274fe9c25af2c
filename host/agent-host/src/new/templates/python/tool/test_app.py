"""Tests of app.py, with the types that componentize-py makes of the interface."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("bindings")))

from componentize_py_types import Err
from wit_world.exports import tools

from app import DEFINITION, Tools


def call(arguments, name=DEFINITION.name):
    context = tools.CallContext(
        agent_id="a",
        session_id="s",
        user_id="u",
        call_id="c",
        idempotency_key="c/0",
        deadline_ms=30_000,
        resumed=None,
        answer=None,
    )
    return Tools().call(context, name, json.dumps(arguments))


class TestTool(unittest.TestCase):
    def test_words_are_counted(self):
        [part] = call({"text": "two  words\n"}).value
        self.assertEqual(json.loads(part.value), {"words": 2})

    def test_a_text_without_words_is_refused_with_the_field_and_the_fix(self):
        told = tools.ToolError_InvalidArguments("`text` must have a word in it")
        for arguments in [{"text": " "}, {"text": 1}, {}]:
            with self.assertRaises(Err) as refused:
                call(arguments)
            self.assertEqual(refused.exception.value, told)

    def test_another_tool_is_not_found(self):
        with self.assertRaises(Err) as refused:
            call({"text": "words"}, "no_such_tool")
        told = tools.ToolError_NotFound("there is no tool `no_such_tool`")
        self.assertEqual(refused.exception.value, told)


if __name__ == "__main__":
    unittest.main()
