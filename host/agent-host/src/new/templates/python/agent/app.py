"""An agent: answers in one sentence.

A step is a pure function: what happened since the last step goes in, a decision comes out. Nothing
survives from one step to the next but the thread, so every key of an operation follows from it.
"""

import json

from wit_world import exports
from wit_world.exports import agent
from wit_world.imports import types

PROMPT = "You answer in one sentence."


class Agent(exports.Agent):
    def describe(self):
        return agent.Description(
            id="{{name}}",
            display_name="{{title}}",
            summary="Answers in one sentence.",
            session_types=[],
            wants=[],
            memo_formats=[],
        )

    def step(self, turn, news):
        for item in news:
            if isinstance(item, agent.News_Settled) and item.value.key.startswith("model-"):
                return after_model(turn, item.value.outcome)
        # The user spoke, or the tools that the model called have ended.
        return ask_model(turn)


def ask_model(turn):
    operator = json.loads(turn.settings())["prompt"]
    request = agent.ModelRequest(
        system=[block for block in (PROMPT, operator) if block],
        context=agent.Context_Whole(),
        also=[],
        tools=agent.Toolset_All(),
        model=None,
        max_tokens=None,
        reply_schema=None,
        audience=agent.Audience.USER,
    )
    return start([agent.Operation(f"model-{turn.head() or 0}", agent.Work_Model(request))])


def after_model(turn, outcome):
    """Carries out the calls that the model made; without one, its answer ends the turn."""
    if isinstance(outcome, agent.Outcome_Failed):
        return decide(agent.Decision_Fail(f"the model could not be asked: {outcome.value.message}"))
    if not isinstance(outcome, agent.Outcome_Message):
        return decide(agent.Decision_Fail("the model could not be asked"))
    message = turn.message(outcome.value)
    calls = [part.value for part in message.parts if isinstance(part, types.Part_Call)]
    if not calls:
        # The answer is in the thread already.
        return decide(agent.Decision_Reply([]))
    return start([
        agent.Operation(
            f"call-{message.id}-{call.index}",
            agent.Work_Tool(agent.Call_OfModel(agent.ModelCallPlace(message.id, call.index))),
        )
        for call in calls
    ])


def start(operations):
    return decide(agent.Decision_Wait(agent.Wait(operations, [], agent.Until.ALL, False)))


def decide(decision):
    return agent.StepResult(decision, [], None)
