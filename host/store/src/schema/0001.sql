-- Layout 1.
-- Baseline 1: the number is raised with the format of events while the baseline may be overwritten (CONTRIBUTING.md).

-- What is stored: never changed once it is there, except that a payload may be erased together with its salt.

CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- That whoever worked on the store last ended as it was told to. Taken away before work begins, so that it is missing after a crash.
INSERT INTO meta (name, value) VALUES ('ended', 'as told');

-- The last event's position and hash: tells a missing tail from a short history.
CREATE TABLE head (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    position INTEGER NOT NULL,
    hash     BLOB    NOT NULL
) STRICT;
INSERT INTO head (id, position, hash) VALUES (1, 0, zeroblob(32));

-- Streams by number. An event names its stream by it, and its agent, its session and its run by the numbers of theirs.
CREATE TABLE streams (
    number      INTEGER PRIMARY KEY,
    stream_kind TEXT    NOT NULL,
    stream_id   BLOB    NOT NULL,
    UNIQUE (stream_kind, stream_id)
) STRICT;

-- `brought_with` is the number of the API key that an event, a blob or a request came with (`key_storage`); none for what came with no key.
-- - `about` is what an event says that it is about, where it is looked for by that: a part of its payload, which goes with that.
-- - `payload` has its long texts in `texts`; `bytes` counts both, as JSON. `payload_digest` is what is left of one that was erased.
CREATE TABLE events (
    position       INTEGER PRIMARY KEY,
    stream         INTEGER NOT NULL,
    version        INTEGER NOT NULL,
    id             BLOB    NOT NULL,
    kind           TEXT    NOT NULL,
    agent          INTEGER,
    session        INTEGER,
    run            INTEGER,
    actor          TEXT    NOT NULL,
    causation      BLOB,
    correlation    BLOB,
    time           INTEGER NOT NULL,
    salt           BLOB,
    payload        BLOB,
    payload_digest BLOB,
    hash           BLOB    NOT NULL,
    brought_with   INTEGER,
    about          TEXT,
    bytes          INTEGER NOT NULL,
    UNIQUE (stream, version)
) STRICT;
-- The long texts of payloads and messages, each once: `uses` counts the payloads. One goes with the last payload and message that has it. A text is
-- in parts from `first` to `last`, which fill their pages.
CREATE TABLE texts (
    number INTEGER PRIMARY KEY,
    text   BLOB    NOT NULL
) STRICT;
CREATE TABLE text_uses (
    digest BLOB    NOT NULL PRIMARY KEY,
    first  INTEGER NOT NULL,
    last   INTEGER NOT NULL,
    uses   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX events_by_agent ON events (agent, position) WHERE agent IS NOT NULL;
-- What stands in a session's own stream is found by the index of streams, and in no other one.
CREATE INDEX events_by_session ON events (session, position) WHERE session IS NOT NULL AND stream <> session;
-- The ledger: the decisions of the boundary and what the operator read of what users say, without the events around them.
CREATE INDEX events_of_ledger ON events (position) WHERE kind IN ('boundary.decided.v1', 'component.admitted.v1', 'operator.read.v1', 'run.started.v1', 'run.stepped.v1');
-- A start looks up each component as it was admitted last, and passes over no other line of the ledger.
CREATE INDEX events_of_admissions ON events (about) WHERE kind = 'component.admitted.v1';
-- A purge finds what an agent's stream tells of a session without an inspection of everything.
CREATE INDEX events_of_agents_about ON events (stream, about) WHERE payload IS NOT NULL AND kind IN ('agent.session.started.v1', 'agent.session.completed.v1', 'agent.session.terminated.v1', 'agent.session.imported.v1', 'agent.execution.suspended.v1', 'agent.execution.resumed.v1', 'agent.client.action.requested.v1', 'agent.client.response.received.v1', 'agent.client.action.withdrawn.v1', 'agent.note.remembered.v1');

-- `brought_by` is the user who brought the content first; none for what is not a user's.
CREATE TABLE blobs (
    digest       BLOB NOT NULL PRIMARY KEY,
    bytes        BLOB NOT NULL,
    brought_by   TEXT,
    brought_with INTEGER
) STRICT;

-- Blobs that may be named by nobody: what was erased had named them, or nothing did when they came. The next purge looks, and deletes.
CREATE TABLE blobs_to_inspect (
    digest BLOB NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Requests that are remembered under a key. A purge forgets those about what is purged; `about` is empty for those that are about nothing.
CREATE TABLE idempotency (
    source       TEXT    NOT NULL,
    key          TEXT    NOT NULL,
    request      BLOB    NOT NULL,
    reply        BLOB    NOT NULL,
    time         INTEGER NOT NULL,
    about        TEXT    NOT NULL,
    brought_with INTEGER,
    PRIMARY KEY (source, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_time ON idempotency (time);
CREATE INDEX idempotency_by_about ON idempotency (about);

CREATE TABLE snapshots (
    stream  INTEGER NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    format  INTEGER NOT NULL,
    state   BLOB    NOT NULL
) STRICT;

-- The bytes that each user has brought: payloads of their events, content that came with them first, and replies remembered under their keys.
-- No projection: they are counted in the transactions that store and erase them, so that a limit on them is an inspection of one row.
CREATE TABLE user_storage (
    user_id TEXT    NOT NULL PRIMARY KEY,
    bytes   INTEGER NOT NULL
) STRICT;

-- The same of each API key, with a number by which what is stored names it. No projection either.
CREATE TABLE key_storage (
    number INTEGER PRIMARY KEY,
    key_id TEXT    NOT NULL UNIQUE,
    bytes  INTEGER NOT NULL
) STRICT;

-- Projections: everything below follows from the events and can be dropped and folded again. Columns that are generated are what statements ask of the
-- JSON in others, so that no statement looks into it. No column is called `user`: that is a keyword of
-- PostgreSQL, where it means the role of the database.

-- Which streams name which blobs. Rows of one stream lie together, so that a step writes in one place. By digest a purge asks whether anybody
-- still names a blob that something erased had named.
CREATE TABLE blob_references (
    stream INTEGER NOT NULL,
    digest BLOB    NOT NULL,
    shown  INTEGER NOT NULL,
    PRIMARY KEY (stream, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_references_by_digest ON blob_references (digest, shown);

-- Agents as the folds of their streams, without their users. `kind` is the sort of address, as it was when the agent was made; `root` the topmost
-- agent above it. Of one that was purged nothing is left but that it was there.
CREATE TABLE agents (
    id         BLOB    NOT NULL PRIMARY KEY,
    agent      TEXT    NOT NULL,
    agent_type TEXT    NOT NULL,
    path       TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    parent     BLOB,
    root       BLOB    NOT NULL,
    slot       BLOB,
    version    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    active     INTEGER NOT NULL,
    sub_count  INTEGER NOT NULL,
    purged     INTEGER NOT NULL DEFAULT 0,
    definition TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(agent) THEN json_extract(agent, '$.definition') END) VIRTUAL,
    slot_phase TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(agent) THEN json_extract(agent, '$.active_session.phase.status') END) VIRTUAL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX agents_by_path ON agents (path) WHERE active = 1;
CREATE INDEX agents_by_root ON agents (root);
CREATE INDEX agents_by_parent ON agents (parent) WHERE parent IS NOT NULL;

-- The users of an agent, and what it remembers of each: one row for each user, in the order of their assignment, so that the agent's own row,
-- which every message reads and every event of the agent writes, does not grow with them.
CREATE TABLE agent_users (
    agent      BLOB    NOT NULL,
    user_id    TEXT    NOT NULL,
    place      INTEGER NOT NULL,
    assignment TEXT    NOT NULL,
    PRIMARY KEY (agent, user_id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX agent_users_in_order ON agent_users (agent, place);

CREATE TABLE agent_preferences (
    agent       BLOB NOT NULL,
    user_id     TEXT NOT NULL,
    preferences TEXT NOT NULL,
    PRIMARY KEY (agent, user_id)
) STRICT, WITHOUT ROWID;

-- Who may do what with an agent: one row for each user and agent, the agents that it spawned included, because whoever is assigned to an agent is
-- to those below it what they are to it.
CREATE TABLE access (
    user_id TEXT NOT NULL,
    agent   BLOB NOT NULL,
    role    TEXT NOT NULL,
    PRIMARY KEY (user_id, agent)
) STRICT, WITHOUT ROWID;
CREATE INDEX access_by_agent ON access (agent);

-- API keys: of the secret only its hash.
CREATE TABLE api_keys (
    id          TEXT    NOT NULL PRIMARY KEY,
    user_id     TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    scopes      TEXT    NOT NULL,
    hash        BLOB    NOT NULL,
    issued_by   TEXT    NOT NULL,
    issued_with TEXT,
    issued_at   INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    revoked_by  TEXT,
    revoked_at  INTEGER,
    reason      TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX api_keys_by_user ON api_keys (user_id, id);

-- What services call the users.
CREATE TABLE connector_keys (
    key      TEXT    NOT NULL PRIMARY KEY,
    user_id  TEXT    NOT NULL,
    bound_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX connector_keys_by_user ON connector_keys (user_id, key);

-- The definitions that users made, each with what its user said of it, as JSON.
CREATE TABLE made_definitions (
    id       TEXT    NOT NULL PRIMARY KEY,
    user_id  TEXT    NOT NULL,
    template TEXT    NOT NULL,
    own      TEXT    NOT NULL,
    made_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX made_definitions_by_user ON made_definitions (user_id, id);

-- Sessions: labels on threads, and how structured ones went. One that was deleted has the status `deleted`; of one that was purged nothing is left
-- but that it was there.
--
-- - `number` is the position of the event that the row begins with: what waits is found by that, in an index a tenth as large as one by the id.
-- - `opened_at` is when it was opened here, of which there is a limit; an imported one may say that it was created long ago.
-- - `base` is the turn that it was forked from.
-- - `hears` says whether the open run takes in words at the boundary that it waits at: what is accepted for one that does not wakes nobody.
-- - `queue` is what it says of its queue, `overflow` what was dropped from it that no turn has told of.
-- - `first_input` says for whom an agent opened it, without an inspection of all inputs.
CREATE TABLE sessions (
    id            BLOB    NOT NULL UNIQUE,
    number        INTEGER PRIMARY KEY,
    agent         BLOB    NOT NULL,
    user_id       TEXT    NOT NULL,
    conversation  BLOB    NOT NULL,
    session_type  TEXT    NOT NULL,
    started_by    TEXT    NOT NULL,
    name          TEXT,
    model         TEXT,
    persona       TEXT,
    config        BLOB,
    status        TEXT    NOT NULL,
    base          BLOB,
    head          BLOB,
    head_message  INTEGER NOT NULL,
    revision      INTEGER NOT NULL,
    state         BLOB    NOT NULL,
    open_run      BLOB,
    hears         INTEGER NOT NULL DEFAULT 0,
    queue         TEXT,
    overflow      TEXT,
    first_input   BLOB,
    pinned_at     INTEGER,
    attributes    TEXT,
    partial_state TEXT,
    items         INTEGER NOT NULL DEFAULT 0,
    interactions  INTEGER NOT NULL DEFAULT 0,
    last_snippet  TEXT,
    opened_at     INTEGER NOT NULL DEFAULT 0,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    expires_at    INTEGER,
    ended_at      INTEGER,
    ended_reason  TEXT,
    summary       TEXT,
    purged        INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX sessions_by_agent ON sessions (agent, updated_at);
CREATE INDEX sessions_by_user ON sessions (user_id, created_at);
CREATE INDEX sessions_by_persona ON sessions (persona, user_id) WHERE persona IS NOT NULL;
CREATE INDEX sessions_by_head ON sessions (head) WHERE head IS NOT NULL;
CREATE INDEX sessions_opened ON sessions (user_id, opened_at);
CREATE INDEX sessions_running ON sessions (id) WHERE open_run IS NOT NULL;
CREATE INDEX sessions_ended ON sessions (agent, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX sessions_of_user_ended ON sessions (agent, user_id, ended_at) WHERE ended_at IS NOT NULL;

-- Which session began another, by handing its agent work.
CREATE TABLE spawned (
    session    BLOB NOT NULL PRIMARY KEY,
    by_session BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX spawned_by_session ON spawned (by_session);

-- What an item of a structured session says stands in the event at its position.
CREATE TABLE items (
    session  BLOB    NOT NULL,
    sequence INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (session, sequence)
) STRICT, WITHOUT ROWID;

-- Files that clients handed over: their bytes are blobs. Numbered, so that a step can say through which one it sees them.
CREATE TABLE files (
    session    BLOB    NOT NULL,
    sequence   INTEGER NOT NULL,
    digest     BLOB    NOT NULL,
    name       TEXT    NOT NULL,
    media_type TEXT    NOT NULL,
    bytes      INTEGER NOT NULL,
    user_id    TEXT    NOT NULL,
    time       INTEGER NOT NULL,
    PRIMARY KEY (session, sequence)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX files_by_content ON files (session, digest, name);

-- Inputs, in the order of their acceptance, so that one that is accepted changes few pages. What an input says stands in the event at its position.
-- What several users say never shares a turn. One that was cancelled or dropped has a state that says so.
--
-- - `begun_run` is the last run before the present one that took it in and left a turn: what that did may be done again. It stays when the input is
--   requeued.
-- - Work that one agent handed to another counts against the run (`by_run`) and the tree of agents that handed it over until it has ended. A tree is
--   named by its topmost agent.
-- - `blocked` says how urgent it is while it waits until the limits on dispatches leave room for it; 0 for all others.
-- - The trigger and trigger event that it comes of, and the chat that it came from.
CREATE TABLE inputs (
    position       INTEGER PRIMARY KEY,
    id             BLOB    NOT NULL UNIQUE,
    session        BLOB    NOT NULL,
    session_number INTEGER,
    user_id        TEXT    NOT NULL,
    state          TEXT    NOT NULL,
    words          INTEGER NOT NULL,
    waits_for      TEXT    NOT NULL,
    priority       TEXT    NOT NULL,
    arrived        INTEGER NOT NULL,
    due            INTEGER,
    died           INTEGER,
    run            BLOB,
    begun_run      BLOB,
    by_run         BLOB,
    tree           BLOB,
    blocked        INTEGER NOT NULL DEFAULT 0,
    trigger_name   TEXT,
    trigger_event  BLOB,
    connector      TEXT,
    chat           TEXT,
    wait_kind      TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(waits_for) THEN json_extract(waits_for, '$.kind') END) VIRTUAL,
    debounce_ms    INTEGER GENERATED ALWAYS AS (CASE WHEN json_valid(waits_for) THEN json_extract(waits_for, '$.debounce_ms') END) VIRTUAL
) STRICT;
CREATE INDEX inputs_waiting ON inputs (session_number, position, due) WHERE state = 'waiting';
CREATE INDEX inputs_claimed ON inputs (run) WHERE state = 'claimed';
CREATE INDEX inputs_dead ON inputs (died) WHERE state = 'dead';
CREATE INDEX inputs_interrupting ON inputs (session) WHERE state = 'waiting' AND wait_kind = 'interrupt';
-- Whatever a run handed over can be found, also when it has been dealt with.
CREATE INDEX inputs_handed_over_by_run ON inputs (by_run, state) WHERE by_run IS NOT NULL;
CREATE INDEX inputs_handed_over_in_tree ON inputs (tree) WHERE tree IS NOT NULL AND state IN ('waiting', 'claimed');
CREATE INDEX inputs_blocked ON inputs (tree) WHERE tree IS NOT NULL AND state = 'waiting' AND blocked > 0;
CREATE INDEX inputs_of_triggers ON inputs (trigger_name, arrived) WHERE trigger_name IS NOT NULL;
CREATE INDEX inputs_of_triggers_open ON inputs (arrived) WHERE trigger_name IS NOT NULL AND state IN ('waiting', 'claimed');
CREATE INDEX inputs_of_trigger_events ON inputs (session, trigger_event) WHERE trigger_event IS NOT NULL;
CREATE INDEX inputs_from_chats ON inputs (session) WHERE connector IS NOT NULL;

-- Runs, each with the user for whom it works, what it draws on with all that came of the same message (`accounts`: the address of its account below
-- those above it; none where a message began it), and what it has drawn: tokens and money used or reserved for open calls of models, and calls.
CREATE TABLE runs (
    id          BLOB    NOT NULL PRIMARY KEY,
    session     BLOB    NOT NULL,
    agent       BLOB    NOT NULL,
    user_id     TEXT    NOT NULL,
    turn        BLOB,
    outcome     TEXT,
    started_at  INTEGER NOT NULL,
    ended_at    INTEGER,
    accounts    TEXT,
    tokens      INTEGER NOT NULL DEFAULT 0,
    calls       INTEGER NOT NULL DEFAULT 0,
    cost_micros INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_by_session ON runs (session);
CREATE INDEX runs_by_account ON runs (accounts) WHERE accounts IS NOT NULL;

-- The outbox: what was started and has not settled, with what is reserved for it, what it counts as when it settles (`counts`, `model`), and whether
-- it waits for a person (`asks`). `waits_for` is the session for whose turn it waits: who waits for whom must never come round in a circle.
CREATE TABLE operations (
    id              BLOB    NOT NULL PRIMARY KEY,
    run             BLOB    NOT NULL,
    session         BLOB    NOT NULL,
    waits_for       BLOB,
    reserved_tokens INTEGER NOT NULL DEFAULT 0,
    reserved_micros INTEGER NOT NULL DEFAULT 0,
    model           TEXT,
    counts          TEXT    NOT NULL DEFAULT 'time',
    asks            INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX operations_by_run ON operations (run);
CREATE INDEX operations_waiting ON operations (session, waits_for) WHERE waits_for IS NOT NULL;

-- Work that agents handed to each other, from the commit that hands it over until its run is purged. What became of its input and of the turn that
-- took that up stands with these.
CREATE TABLE tasks (
    id          BLOB    NOT NULL PRIMARY KEY,
    run         BLOB    NOT NULL,
    session     BLOB    NOT NULL,
    agent       BLOB    NOT NULL,
    user_id     TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    target      TEXT,
    operation   TEXT,
    parameters  TEXT,
    to_agent    BLOB    NOT NULL,
    to_session  BLOB    NOT NULL,
    input       BLOB    NOT NULL,
    detached    INTEGER NOT NULL,
    blocked     INTEGER NOT NULL,
    deadline    INTEGER,
    created_at  INTEGER NOT NULL,
    state       TEXT,
    ended_at    INTEGER,
    tokens      INTEGER,
    calls       INTEGER,
    cost_micros INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_by_time ON tasks (created_at, id);
CREATE INDEX tasks_by_session ON tasks (session, created_at, id);
CREATE INDEX tasks_by_agent ON tasks (agent, created_at, id);
CREATE INDEX tasks_by_doer ON tasks (to_agent, created_at, id);
CREATE INDEX tasks_by_run ON tasks (run);
CREATE INDEX tasks_by_input ON tasks (input);
CREATE INDEX tasks_under_way ON tasks (id) WHERE state IS NULL AND kind = 'delegate';

-- What settled work has used, by the UTC day on which it settled, the session, the user for whom it was done, and the model (empty for tools and
-- where no model is known). Where session, user and agent are empty, the sums are of what was purged. What was reserved for attempts at models of
-- which no usage was reported stands apart from what was delivered.
CREATE TABLE usage (
    day                  INTEGER NOT NULL,
    session              BLOB    NOT NULL,
    user_id              TEXT    NOT NULL,
    model                TEXT    NOT NULL,
    agent                BLOB    NOT NULL,
    model_calls          INTEGER NOT NULL,
    attempts             INTEGER NOT NULL,
    unpriced_attempts    INTEGER NOT NULL,
    input_tokens         INTEGER NOT NULL,
    output_tokens        INTEGER NOT NULL,
    cached_tokens        INTEGER NOT NULL,
    cost_micros          INTEGER NOT NULL,
    tool_calls           INTEGER NOT NULL,
    active_ms            INTEGER NOT NULL,
    reserved_tokens      INTEGER NOT NULL DEFAULT 0,
    reserved_cost_micros INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, session, user_id, model)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_by_user ON usage (user_id, day);

-- Turns. `messages` are the digests of its messages, one after the other. `root` names the tree that a turn belongs to by its first turn, once its place there is known; `session` is where it was committed or
-- imported; `untrusted` says whether anything that its thread shows rests on content from outside, so that the next turn of it knows.
CREATE TABLE turns (
    id            BLOB    NOT NULL PRIMARY KEY,
    parent        BLOB,
    root          BLOB,
    jump          BLOB,
    jump_message  INTEGER,
    depth         INTEGER NOT NULL,
    run           BLOB    NOT NULL,
    session       BLOB    NOT NULL,
    first_message INTEGER NOT NULL,
    last_message  INTEGER NOT NULL,
    session_state BLOB    NOT NULL,
    messages      BLOB    NOT NULL,
    outcome       TEXT    NOT NULL,
    used          TEXT    NOT NULL,
    models        TEXT    NOT NULL,
    untrusted     INTEGER NOT NULL,
    time          INTEGER NOT NULL
) STRICT;
CREATE INDEX turns_by_parent ON turns (parent) WHERE parent IS NOT NULL;
CREATE INDEX turns_by_root ON turns (root, depth, id);
CREATE INDEX turns_by_session ON turns (session);

CREATE TABLE messages (
    run     BLOB    NOT NULL,
    id      INTEGER NOT NULL,
    role    TEXT    NOT NULL,
    origin  TEXT    NOT NULL,
    message BLOB    NOT NULL,
    bytes   INTEGER NOT NULL,
    PRIMARY KEY (run, id)
) STRICT, WITHOUT ROWID;

-- The messages that have a long text, which is in `texts` as those of payloads are.
CREATE TABLE message_texts (
    digest  BLOB    NOT NULL,
    run     BLOB    NOT NULL,
    message INTEGER NOT NULL,
    PRIMARY KEY (digest, run, message)
) STRICT, WITHOUT ROWID;

CREATE TABLE wakes (
    subject BLOB    NOT NULL,
    kind    TEXT    NOT NULL,
    session BLOB    NOT NULL,
    due     INTEGER NOT NULL,
    PRIMARY KEY (subject, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX wakes_by_due ON wakes (due, session);

-- What tools keep in buckets: one row for each bucket in each scope, and one for each of its keys.
CREATE TABLE buckets (
    id        INTEGER NOT NULL PRIMARY KEY,
    component TEXT    NOT NULL,
    bucket    TEXT    NOT NULL,
    scope     TEXT    NOT NULL,
    of        TEXT    NOT NULL,
    keys      INTEGER NOT NULL DEFAULT 0,
    bytes     INTEGER NOT NULL DEFAULT 0,
    UNIQUE (component, bucket, scope, of)
) STRICT;
CREATE INDEX buckets_by_owner ON buckets (scope, of);

CREATE TABLE bucket_entries (
    bucket INTEGER NOT NULL,
    key    TEXT    NOT NULL,
    value  BLOB    NOT NULL,
    PRIMARY KEY (bucket, key)
) STRICT;

-- One row for each message of a committed turn and each note that recall can find; the index holds their words only. They are indexed later, when
-- the session may not be there any more, so `agent` says whose words a row has. Of a note: the id under which it is forgotten, where it comes from
-- as JSON, and the user of its session, by whom notes are counted; all three are null for messages.
CREATE TABLE recall (
    id        INTEGER PRIMARY KEY,
    session   BLOB    NOT NULL,
    agent     BLOB    NOT NULL,
    turn      BLOB,
    run       BLOB,
    message   INTEGER,
    note      TEXT,
    note_id   BLOB,
    details   TEXT,
    user_id   TEXT,
    untrusted INTEGER NOT NULL,
    time      INTEGER NOT NULL
) STRICT;
CREATE INDEX recall_by_note ON recall (note_id) WHERE note_id IS NOT NULL;
CREATE INDEX recall_notes ON recall (agent) WHERE note_id IS NOT NULL;
CREATE INDEX recall_notes_of_user ON recall (agent, user_id) WHERE note_id IS NOT NULL;
CREATE VIRTUAL TABLE recall_index USING fts5 (body, agent, content = '', tokenize = 'unicode61 remove_diacritics 2');

-- The words of notes once more, on their own: who looks for notes reads no word of a message, however often it was said.
CREATE VIRTUAL TABLE notes_index USING fts5 (body, agent, content = '', tokenize = 'unicode61 remove_diacritics 2');

-- How far the memory agent of a session's agent has read it, and the session in which that agent reads. What is due is in wakes.
CREATE TABLE readings (
    session         BLOB    NOT NULL PRIMARY KEY,
    reader          BLOB    NOT NULL,
    agent           BLOB    NOT NULL,
    through         BLOB    NOT NULL,
    through_message INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX readings_by_reader ON readings (reader);

-- The chunks that were handed over, by the input that carries each, so that a note names the end of the chunk that it was taken from.
CREATE TABLE reading_chunks (
    input   BLOB NOT NULL PRIMARY KEY,
    session BLOB NOT NULL,
    through BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX reading_chunks_by_session ON reading_chunks (session);

-- Triggers, with what follows from their trigger events.
CREATE TABLE triggers (
    id              BLOB    NOT NULL PRIMARY KEY,
    name            TEXT    NOT NULL UNIQUE,
    kind            TEXT    NOT NULL,
    spec            TEXT    NOT NULL,
    origin          TEXT    NOT NULL,
    user_id         TEXT,
    agent           BLOB,
    enabled         INTEGER NOT NULL,
    paused          TEXT,
    next_due        INTEGER,
    due_position    INTEGER NOT NULL,
    state_format    INTEGER,
    state           BLOB,
    state_position  INTEGER,
    failures        INTEGER NOT NULL DEFAULT 0,
    schedule_errors INTEGER NOT NULL DEFAULT 0,
    open_until      INTEGER,
    defined_at      INTEGER NOT NULL,
    removed_at      INTEGER,
    paused_kind     TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(paused) THEN json_extract(paused, '$.kind') END) VIRTUAL
) STRICT;
CREATE INDEX triggers_due ON triggers (next_due, name) WHERE next_due IS NOT NULL AND enabled = 1 AND paused IS NULL;
CREATE INDEX triggers_by_name ON triggers (name) WHERE removed_at IS NULL;
CREATE INDEX triggers_by_kind ON triggers (kind, name) WHERE removed_at IS NULL;
CREATE INDEX triggers_by_user ON triggers (user_id, name) WHERE user_id IS NOT NULL AND removed_at IS NULL;
CREATE INDEX triggers_by_agent ON triggers (agent, name) WHERE agent IS NOT NULL AND removed_at IS NULL;
CREATE INDEX triggers_resting ON triggers (open_until) WHERE open_until IS NOT NULL;

-- The agents that made triggers, also of those that are gone: the purge of an agent takes them along.
CREATE TABLE trigger_makers (
    agent BLOB NOT NULL,
    id    BLOB NOT NULL,
    name  TEXT NOT NULL,
    PRIMARY KEY (agent, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX trigger_makers_by_trigger ON trigger_makers (id);

-- Events of triggers, and those that were passed over, which have no id. What they say stands in the events at the positions that a row names.
-- Of each trigger the oldest one that is open is the first: the others wait for it.
CREATE TABLE trigger_events (
    position     INTEGER PRIMARY KEY,
    id           BLOB    UNIQUE,
    trigger_name TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    is_first     INTEGER NOT NULL DEFAULT 0,
    attempts     INTEGER NOT NULL DEFAULT 0,
    next_try     INTEGER NOT NULL,
    fired        INTEGER,
    fired_at     INTEGER,
    messages     INTEGER NOT NULL DEFAULT 0,
    posted       INTEGER,
    failed       INTEGER,
    stuck        INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX trigger_events_by_trigger ON trigger_events (trigger_name);
CREATE INDEX trigger_events_open ON trigger_events (trigger_name) WHERE state IN ('waiting', 'fired');
CREATE INDEX trigger_events_due ON trigger_events (next_try) WHERE is_first = 1;
CREATE INDEX trigger_events_fired ON trigger_events (trigger_name, fired_at) WHERE fired_at IS NOT NULL;

-- The sessions that took a message of a trigger event.
CREATE TABLE trigger_event_sessions (
    session       BLOB NOT NULL,
    trigger_event BLOB NOT NULL,
    PRIMARY KEY (session, trigger_event)
) STRICT, WITHOUT ROWID;
CREATE INDEX trigger_event_sessions_by_trigger_event ON trigger_event_sessions (trigger_event);

-- How far connectors have come.
CREATE TABLE connectors (
    id              BLOB    NOT NULL PRIMARY KEY,
    name            TEXT    NOT NULL,
    cursor          TEXT,
    cursor_position INTEGER,
    trouble         TEXT,
    troubled_at     INTEGER
) STRICT, WITHOUT ROWID;

-- What arrived from people outside: each by the event that has it, and its place there. Rows stay as long as the events say it: only the inspection
-- for what has arrived before stops after some days. Of each chat the oldest one that is open is the first.
CREATE TABLE inbound_messages (
    position   INTEGER NOT NULL,
    place      INTEGER NOT NULL,
    id         BLOB    NOT NULL UNIQUE,
    connector  TEXT    NOT NULL,
    chat       TEXT    NOT NULL,
    message    TEXT    NOT NULL,
    received   INTEGER NOT NULL,
    is_first   INTEGER NOT NULL DEFAULT 0,
    outcome    TEXT,
    settled_at INTEGER,
    session    BLOB,
    PRIMARY KEY (position, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX inbound_messages_open ON inbound_messages (connector, received, position, place) WHERE outcome IS NULL;
CREATE INDEX inbound_messages_open_in_chats ON inbound_messages (connector, chat, received, position, place) WHERE outcome IS NULL;
CREATE INDEX inbound_messages_first ON inbound_messages (received) WHERE is_first = 1;
CREATE INDEX inbound_messages_first_in_chats ON inbound_messages (connector, chat) WHERE is_first = 1;
CREATE INDEX inbound_messages_by_message ON inbound_messages (connector, message, received);
CREATE INDEX inbound_messages_by_time ON inbound_messages (connector, received);
CREATE INDEX inbound_messages_by_session ON inbound_messages (session) WHERE session IS NOT NULL;

-- The outbox to people outside, in the order in which things were said. What they say stands in the event at the position. Of each chat the oldest
-- one that is open is the first: the others wait for it.
CREATE TABLE outbound_messages (
    position    INTEGER PRIMARY KEY,
    id          BLOB    NOT NULL UNIQUE,
    connector   TEXT    NOT NULL,
    chat        TEXT    NOT NULL,
    session     BLOB,
    run         BLOB,
    operation   BLOB,
    state       TEXT    NOT NULL,
    is_first    INTEGER NOT NULL DEFAULT 0,
    attempts    INTEGER NOT NULL DEFAULT 0,
    chunk       INTEGER NOT NULL DEFAULT 0,
    next_try    INTEGER NOT NULL,
    service_ids TEXT    NOT NULL,
    reason      TEXT,
    queued_at   INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    last        INTEGER NOT NULL
) STRICT;
CREATE INDEX outbound_messages_by_connector ON outbound_messages (connector);
CREATE INDEX outbound_messages_by_state ON outbound_messages (connector, state);
CREATE INDEX outbound_messages_by_chat ON outbound_messages (connector, chat);
CREATE INDEX outbound_messages_open ON outbound_messages (connector, chat) WHERE state IN ('queued', 'started', 'failed');
CREATE INDEX outbound_messages_due ON outbound_messages (next_try) WHERE is_first = 1 AND state IN ('queued', 'failed');
CREATE INDEX outbound_messages_started ON outbound_messages (connector, chat) WHERE state = 'started';
CREATE INDEX outbound_messages_in_flight ON outbound_messages (state) WHERE state = 'started';
CREATE INDEX outbound_messages_by_session ON outbound_messages (session) WHERE session IS NOT NULL;
CREATE INDEX outbound_messages_by_run ON outbound_messages (run) WHERE run IS NOT NULL;
CREATE INDEX outbound_messages_of_questions ON outbound_messages (connector, chat) WHERE operation IS NOT NULL;
CREATE INDEX outbound_messages_by_operation ON outbound_messages (operation) WHERE operation IS NOT NULL;

-- Pairing codes that were offered and are not settled.
CREATE TABLE pairings (
    key        TEXT    NOT NULL PRIMARY KEY,
    connector  TEXT    NOT NULL,
    name       TEXT,
    chat       TEXT    NOT NULL,
    code       TEXT    NOT NULL,
    offered_at INTEGER NOT NULL,
    expires    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX pairings_by_code ON pairings (code);
CREATE INDEX pairings_by_connector ON pairings (connector, expires);
CREATE INDEX pairings_by_time ON pairings (expires);

-- Providers of models that are in trouble, while that lasts.
CREATE TABLE provider_troubles (
    provider    TEXT    NOT NULL PRIMARY KEY,
    trouble     TEXT    NOT NULL,
    troubled_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
