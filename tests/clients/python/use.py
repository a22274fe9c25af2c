"""A client that is generated from the description, in use: it opens a session, writes to it, answers
a question, reads the events, and is refused. `agent_host_client` is what the generator wrote."""

import json
import os
import time

from agent_host_client import AuthenticatedClient
from agent_host_client.api.agents import create_agent, get_agent, list_agents
from agent_host_client.api.operator import list_events
from agent_host_client.api.sessions import (
    answer_client_action,
    create_session,
    get_session,
    list_sessions,
    send_message,
)
from agent_host_client.models import (
    AcceptedAccepted,
    AcceptedEnded,
    Agent,
    AgentKind,
    AgentList,
    ClientActionAnswer,
    ConfirmationAnswer,
    ConfirmationPendingAction,
    EventList,
    EventSessionOpenedV1,
    NewAgent,
    NewMessage,
    NewSession,
    Priority,
    Problem,
    Responded,
    Session,
    SessionList,
    SessionStatus,
    TurnEnd,
)

client = AuthenticatedClient(base_url=os.environ["HOST_URL"], token=os.environ["HOST_TOKEN"])


def taken(answer, kind):
    """The answer, which is no problem."""
    assert isinstance(answer, kind), answer
    return answer


agent = taken(
    create_agent.sync(client=client, body=NewAgent(definition="puppet", name="Judy")), Agent
)
assert agent.kind == AgentKind.AGENT
assert agent.created_at.tzinfo is not None
agents = taken(list_agents.sync(client=client, limit=200), AgentList)
assert agent.id in [it.id for it in agents.agents]

path = str(agent.id)
session = taken(
    create_session.sync(path, client=client, body=NewSession(session_type="chat", name="generated")),
    Session,
)
assert session.status == SessionStatus.ACTIVE
sessions = taken(list_sessions.sync(path, client=client), SessionList)
assert [it.session_id for it in sessions.sessions] == [session.session_id]


def say(steps, kind, **options):
    body = NewMessage(content=json.dumps({"steps": steps}), priority=Priority.HIGH)
    answer = send_message.sync(path, session.session_id, client=client, body=body, **options)
    return taken(answer, kind)


said = say([{"reply": "Hello, client."}], AcceptedEnded, wait_s=60, idempotency_key="one")
assert said.outcome == TurnEnd.REPLIED
assert said.reply.text == "Hello, client."

say([{"start": [{"key": "q", "client": "confirmation"}]}, {"reply": "Thanks."}], AcceptedAccepted)
for _ in range(3_000):
    seen = taken(get_session.sync(path, session.session_id, client=client), Session)
    asked = seen.pending_action
    if asked:
        break
    time.sleep(0.01)
assert isinstance(asked, ConfirmationPendingAction), asked
body = ClientActionAnswer(
    tool_call_id=asked.tool_call_id, response=ConfirmationAnswer(confirmed=True)
)
taken(answer_client_action.sync(path, client=client, body=body), Responded)

page = taken(list_events.sync(client=client, limit=1_000), EventList)
opened = [it for it in page.events if isinstance(it, EventSessionOpenedV1)]
assert opened[-1].data.session_id == session.session_id

refused = get_agent.sync("/nobody/agent/none", client=client)
assert isinstance(refused, Problem) and refused.code == "AGENT_NOT_FOUND", refused

print(f"python: {said.reply.text}")
