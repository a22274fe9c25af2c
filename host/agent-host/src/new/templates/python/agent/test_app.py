"""Tests of app.py, with the types that componentize-py makes of the interface."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("bindings")))

from wit_world.exports import agent
from wit_world.imports import turn, types

from app import PROMPT, Agent


class Turn(turn.View):
    """A turn with a thread of messages, each a list of parts."""

    def __init__(self, *messages):
        self.messages = messages

    def settings(self):
        return json.dumps({"prompt": "Prefer short words.", "settings": {}})

    def head(self):
        return len(self.messages)

    def message(self, id):
        parts = self.messages[id - 1]
        return types.Message(id, types.Role.ASSISTANT, parts, "model:main", False, None)


def after_model(outcome, *messages):
    settled = agent.News_Settled(agent.Settlement("model-1", outcome))
    return Agent().step(Turn(*messages), [settled]).decision


class TestAgent(unittest.TestCase):
    def test_the_model_is_asked_for_one_sentence_and_told_what_the_operator_says(self):
        decision = Agent().step(Turn([types.Part_Text("Hello")]), [agent.News_Said([1])]).decision
        [operation] = decision.value.start
        self.assertEqual(operation.key, "model-1")
        self.assertEqual(operation.work.value.system, [PROMPT, "Prefer short words."])

    def test_an_answer_ends_the_turn(self):
        answer = [types.Part_Text("Hello.")]
        decision = after_model(agent.Outcome_Message(2), [], answer)
        self.assertEqual(decision, agent.Decision_Reply([]))

    def test_calls_of_the_model_are_carried_out(self):
        calls = [types.Part_Call(types.ModelCall(0, "read_file", "{}"))]
        decision = after_model(agent.Outcome_Message(2), [], calls)
        [operation] = decision.value.start
        self.assertEqual(operation.key, "call-2-0")

    def test_a_model_that_cannot_be_asked_fails_the_turn_with_the_reason(self):
        failure = agent.Failure("model-unavailable", "no answer", True)
        decision = after_model(agent.Outcome_Failed(failure))
        self.assertIn("no answer", decision.value)


if __name__ == "__main__":
    unittest.main()
