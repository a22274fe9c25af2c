// A client that is generated from the description, in use: it opens a session, writes to it,
// answers a question, reads the events, and is refused. `api.ts` is what the generator wrote.

import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

type Agent = components["schemas"]["Agent"];
type Session = components["schemas"]["Session"];
type PendingAction = components["schemas"]["PendingAction"];
type KnownAction =
    | components["schemas"]["ConfirmationPendingAction"]
    | components["schemas"]["MultipleChoicePendingAction"];

const baseUrl = process.env["HOST_URL"] ?? "";
const authorization = `Bearer ${process.env["HOST_TOKEN"] ?? ""}`;
const client = createClient<paths>({ baseUrl, headers: { Authorization: authorization } });

/** The body of an answer that is no problem. */
function taken<T>(answer: { data?: T; error?: unknown }): T {
    assert.equal(answer.error, undefined, JSON.stringify(answer.error));
    assert.notEqual(answer.data, undefined);
    return answer.data as T;
}

/** Whether a question is of a widget of the host, and not of the client's own. */
function isKnown(action: PendingAction): action is KnownAction {
    return ["multiple_choice", "confirmation"].includes(action.widget_type);
}

/** The text of a question; its name where this client does not know the widget. */
function prompt(action: PendingAction): string {
    if (!isKnown(action)) {
        return action.tool_name;
    }
    return action.widget_type === "multiple_choice"
        ? `${action.props.prompt} ${action.props.options.join("/")}`
        : action.props.prompt;
}

const agent: Agent = taken(
    await client.POST("/api/agents", { body: { definition: "puppet", name: "Judy" } }),
);
const kind: components["schemas"]["AgentKind"] = agent.kind;
assert.equal(kind, "agent");
assert.equal(agent.role, "primary");
assert.equal(agent.status, "active");

const path = { id: agent.id };
const session: Session = taken(
    await client.POST("/api/agents/{id}/sessions", {
        params: { path },
        body: { session_type: "chat", name: "generated" },
    }),
);
assert.equal(session.agent_id, agent.id);
assert.equal(session.status, "active");
const sid = { ...path, sid: session.session_id };

const accepted = taken(
    await client.POST("/api/agents/{id}/sessions/{sid}/messages", {
        params: {
            path: sid,
            query: { wait_s: 60 },
            header: { "Idempotency-Key": "one" },
        },
        body: { content: JSON.stringify({ steps: [{ reply: "Hello, client." }] }) },
    }),
);
assert(accepted.state === "ended", accepted.state);
assert.equal(accepted.outcome, "replied");
assert.equal(accepted.reply?.text, "Hello, client.");
assert.equal(accepted.reply?.role, "assistant");

const asks = { start: [{ key: "q", client: "confirmation" }] };
taken(
    await client.POST("/api/agents/{id}/sessions/{sid}/messages", {
        params: { path: sid },
        body: {
            content: [
                { type: "text", text: JSON.stringify({ steps: [asks, { reply: "Thanks." }] }) },
            ],
            priority: "high",
        },
    }),
);
let asked: PendingAction | null | undefined;
for (let tries = 0; !asked && tries < 3_000; tries += 1) {
    const seen: Session = taken(
        await client.GET("/api/agents/{id}/sessions/{sid}", { params: { path: sid } }),
    );
    asked = seen.pending_action;
    await new Promise((done) => setTimeout(done, 10));
}
assert.ok(asked);
assert.notEqual(prompt(asked), "");
taken(
    await client.POST("/api/agents/{id}/respond", {
        params: { path },
        body: { tool_call_id: asked.tool_call_id, response: { confirmed: true } },
    }),
);

const page = taken(await client.GET("/api/events", { params: { query: { limit: 1_000 } } }));
const event = page.events.find((it) => it.type === "session.opened.v1");
assert(event?.type === "session.opened.v1" && "data" in event);
assert.equal(event.data.session_id, session.session_id);

const refused = await client.GET("/api/agents/{id}", {
    params: { path: { id: "/nobody/agent/none" } },
});
assert.equal(refused.response.status, 404);
assert.equal(refused.error?.code, "AGENT_NOT_FOUND");

console.log(`typescript: ${accepted.reply?.text}`);
