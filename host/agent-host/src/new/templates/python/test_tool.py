"""Tests of app.py, with the types that componentize-py makes of the interface."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("bindings")))

from componentize_py_types import Err
from wit_world.exports import tools

from app import DEFINITION, Tools


def call(text):
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
    return Tools().call(context, DEFINITION.name, json.dumps({"text": text}))


class TestTool(unittest.TestCase):
    def test_words_are_counted(self):
        [part] = call("two  words\n").value
        self.assertEqual(json.loads(part.value), {"words": 2})

    def test_a_text_without_words_is_refused_with_the_field_and_the_fix(self):
        with self.assertRaises(Err) as refused:
            call(" ")
        told = tools.ToolError_InvalidArguments("`text` must have a word in it")
        self.assertEqual(refused.exception.value, told)


if __name__ == "__main__":
    unittest.main()
