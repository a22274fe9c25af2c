// A chat of a visitor with an agent: sends what the visitor says, and shows what is said to them.

import { render } from "./markdown.js";
import { Outbox, fate } from "./outbox.js";
import { wordsOf } from "./words.js";

const main = document.querySelector("main");
const said = document.querySelector("#said");
const unsent = document.querySelector("#unsent");
const working = document.querySelector("#working");
const state = document.querySelector("#state");
const form = document.querySelector("form");
const base = `${main.dataset.host}/chat/${encodeURIComponent(main.dataset.connector)}`;
const TOKEN = `token of ${base}`;
const OUTBOX = `outbox of ${base}`;
/** Characters of a reply in the making that are shown as Markdown; more of it is plain until then. */
const GROWING_CHARS_MAX = 20000;
/** Milliseconds after which the page sends what another tab of it has not sent. */
const OTHERS_MS = 3000;

const { language, words } = wordsOf(navigator.languages ?? [navigator.language ?? "en"]);
document.documentElement.lang = language;
for (const shown of main.querySelectorAll("[data-word]")) shown.textContent = words[shown.dataset.word];
for (const shown of main.querySelectorAll("[data-hint]")) shown.placeholder = words[shown.dataset.hint];

/** Keeps things for the page as it is, where the browser keeps nothing. */
const forNow = new Map();
function kept(key) {
  try {
    return localStorage.getItem(key) ?? forNow.get(key) ?? null;
  } catch {
    return forNow.get(key) ?? null;
  }
}
function keep(key, value) {
  forNow.set(key, value);
  try {
    localStorage.setItem(key, value);
  } catch {
    // It is there until the page is left.
  }
}
function drop(key) {
  forNow.delete(key);
  try {
    localStorage.removeItem(key);
  } catch {
    // It was not there.
  }
}
/** The storage of the browser, also where reading its name throws. */
const storage = {
  getItem: (key) => localStorage.getItem(key),
  setItem: (key, value) => localStorage.setItem(key, value),
};

/** Milliseconds until the page comes back after a stream ended. */
let pause = 2000;
/** Ends the stream that is read now. */
let stream = new AbortController();
/** Ends the pause before the next try. */
let wake = () => {};

const sleep = (ms) =>
  new Promise((done) => {
    const end = setTimeout(done, ms);
    wake = () => {
      clearTimeout(end);
      done();
    };
  });

/** Sends a request; refusals of the host become errors with its status. */
async function ask(path, options = {}) {
  const response = await fetch(base + path, options);
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  const after = Number(response.headers.get("retry-after"));
  throw Object.assign(new Error(problem.detail ?? response.statusText), {
    status: response.status,
    code: problem.code,
    retryMs: after > 0 ? after * 1000 : undefined,
  });
}

/** The visitor's token: the one that is kept, or that of a new visitor. One comes at a time. */
let coming;
async function token() {
  const known = kept(TOKEN);
  if (known) return known;
  coming ??= (async () => {
    const visitor = await (await ask("/visitors", { method: "POST" })).json();
    // Another tab came first: both show the chat of one visitor.
    const first = kept(TOKEN);
    if (!first) keep(TOKEN, visitor.token);
    return first ?? visitor.token;
  })().finally(() => (coming = undefined));
  return coming;
}

const headers = (visitor) => ({
  authorization: `Bearer ${visitor}`,
  "content-type": "application/json",
});

/** Messages of the visitor that the stream has shown, and those that this page shows until then. */
const told = new Set();
const waiting = new Map();

const outbox = new Outbox(
  storage,
  OUTBOX,
  async ({ id, path, content }) => {
    const body = JSON.stringify({ id, ...content });
    const visitor = await token();
    try {
      return await (await ask(path, { method: "POST", headers: headers(visitor), body })).json();
    } catch (error) {
      throw Object.assign(error, { visitor });
    }
  },
  {
    changed: showUnsent,
    taken({ id, path, content, at }, { message_id }) {
      state.textContent = "";
      if (path !== "/messages" || told.has(message_id)) return;
      waiting.set(message_id, id);
      show(id, content.text, { kind: "own", time: at });
    },
    failed(error, { id, path }) {
      complain(error);
      // A question that takes no answer any more is closed by the stream.
      if (path === "/answers" && fate(error.status) === "refused") outbox.drop(id);
    },
    unknown({ visitor }) {
      if (kept(TOKEN) === visitor) anew(words.anew);
    },
    wait: sleep,
    unkept: () => (state.textContent = words.full),
  },
);

/** What is said of an error, in the visitor's language. */
function complain(error) {
  if (error.name === "AbortError") return;
  if (error.code === "STARTING") state.textContent = words.starting;
  else if (error.status === 409) state.textContent = words.closed;
  else if (error.status === 429) state.textContent = words.crowded;
  else if (error.status === undefined || error.status >= 500) state.textContent = words.away;
}

/** Forgets the visitor: the next one begins a chat of their own. */
function anew(reason) {
  drop(TOKEN);
  for (const entry of outbox.entries()) if (entry.path === "/answers") outbox.drop(entry.id);
  clear();
  if (reason) {
    const note = document.createElement("p");
    note.className = "note";
    note.textContent = reason;
    said.append(note);
  }
  stream.abort();
}

function clear() {
  said.replaceChildren();
  told.clear();
  waiting.clear();
  isWorking(false);
}

/** The place of something on the page, at the end where it is new. */
function place(id, into = said) {
  let shown = document.getElementById(id);
  if (!shown) {
    shown = document.createElement("div");
    shown.id = id;
    shown.dir = "auto";
    into.append(shown);
  }
  return shown;
}

/** Shows what was said. The visitor's words are text, the agent's are Markdown; nothing is HTML. */
function show(id, text, { kind = "", time, plain = kind === "own" } = {}) {
  const shown = place(id);
  shown.className = `said ${kind}${plain ? " plain" : ""}`;
  shown.replaceChildren(plain ? text : render(text));
  if (time) shown.append(clock(time));
  shown.scrollIntoView({ block: "end" });
  return shown;
}

const localTime = (time, style) => new Intl.DateTimeFormat(language, style).format(time);

/** A time as the visitor's clock shows it. */
function clock(text) {
  const time = new Date(text);
  const shown = document.createElement("time");
  if (Number.isNaN(time.getTime())) return shown;
  const isToday = time.toDateString() === new Date().toDateString();
  shown.dateTime = text;
  shown.textContent = localTime(time, { timeStyle: "short", dateStyle: isToday ? undefined : "medium" });
  return shown;
}

/** The time at the end of a question of the host's, as the visitor's clock shows it. */
function withLocalTime(text) {
  return text.replace(/(\d{4}-\d\d-\d\d) (\d\d:\d\d) UTC\.$/, (whole, day, minute) => {
    const time = new Date(`${day}T${minute}:00Z`);
    return `${localTime(time, { dateStyle: "medium", timeStyle: "short" })}.`;
  });
}

function button(label, does) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = label;
  made.onclick = does;
  return made;
}

function showQuestion({ question_id, text, choices, is_open, time }) {
  const shown = show(`question-${question_id}`, withLocalTime(text), { time });
  const offered = document.createElement("div");
  offered.className = "choices";
  for (const { label, value } of choices) {
    const made = button(words.labels[label] ?? label, () => {
      closeQuestion(question_id);
      outbox.add("/answers", { value });
    });
    made.disabled = !is_open;
    offered.append(made);
  }
  shown.append(offered);
}

function closeQuestion(id) {
  const buttons = document.getElementById(`question-${id}`)?.querySelectorAll("button");
  buttons?.forEach((button) => (button.disabled = true));
}

/** Shows what the host has not taken yet, and what it refused. */
function showUnsent() {
  const entries = outbox.entries().filter((entry) => entry.path === "/messages");
  unsent.replaceChildren(
    ...entries.map(({ id, content, refused }) => {
      const shown = document.createElement("div");
      shown.dir = "auto";
      shown.className = `said own plain ${refused === undefined ? "unsent" : "refused"}`;
      const note = document.createElement("span");
      note.className = "note";
      note.append(refused === undefined ? words.waiting : words.refused);
      if (refused !== undefined) {
        const back = () => {
          const { text } = form.elements;
          text.value = [text.value, outbox.drop(id).content.text].filter(Boolean).join("\n");
        };
        note.append(" ", button(words.again, () => outbox.again(id)), button(words.back, back));
      }
      shown.append(content.text, note);
      return shown;
    }),
  );
}

/** Shows for how long a reply has been in the making. */
let clockwork;
function isWorking(is) {
  if (is === !working.hidden) return;
  working.hidden = !is;
  clearInterval(clockwork);
  if (!is) return;
  const begin = Date.now();
  const tick = () => {
    const seconds = Math.floor((Date.now() - begin) / 1000);
    working.querySelector(".words").textContent = words.working(seconds);
  };
  tick();
  clockwork = setInterval(tick, 1000);
}

/** The texts of replies in the making, and those that are drawn when the browser shows the page. */
const growing = new Map();
const drawn = new Set();

function hear(id, text) {
  growing.set(id, text);
  if (drawn.has(id)) return;
  drawn.add(id);
  requestAnimationFrame(() => {
    drawn.delete(id);
    const all = growing.get(id);
    if (all !== undefined) show(id, all, { kind: "growing", plain: all.length > GROWING_CHARS_MAX });
  });
}

function forget() {
  growing.clear();
  said.querySelectorAll(".growing").forEach((piece) => piece.remove());
}

/** What each frame of the stream means. */
const frames = {
  connected({ open_question_ids, typing }) {
    state.textContent = "";
    const open = new Set(open_question_ids.map((id) => `question-${id}`));
    for (const shown of said.querySelectorAll("[id^=question-]")) {
      if (!open.has(shown.id)) closeQuestion(shown.id.slice("question-".length));
    }
    isWorking(typing);
    wake();
    outbox.work();
  },
  said({ input_id, message_ids, text, time }) {
    show(input_id, text, { kind: "own", time });
    for (const id of message_ids) {
      told.add(id);
      document.getElementById(waiting.get(id))?.remove();
      waiting.delete(id);
    }
  },
  message({ outbound_message_id, text, time }) {
    forget();
    show(outbound_message_id, text, { time });
  },
  question(asked) {
    forget();
    showQuestion(asked);
  },
  question_closed: ({ question_id }) => closeQuestion(question_id),
  typing: ({ typing }) => isWorking(typing),
  delta({ reply_id, attempt, text }) {
    const id = `${reply_id}-${attempt}`;
    hear(id, (growing.get(id) ?? "") + text);
  },
  delta_so_far: ({ reply_id, attempt, text }) => hear(`${reply_id}-${attempt}`, text),
  delta_discarded: forget,
  reset: clear,
};

/** The last id that was seen of the stream. */
let last;
/** True if the next stream is to begin at once. */
let isHurried = false;

/** Reads one stream to its end, frame by frame. */
async function follow(visitor) {
  stream = new AbortController();
  const options = { headers: headers(visitor), cache: "no-store", signal: stream.signal };
  if (last) options.headers["last-event-id"] = last;
  const response = await ask("/events", options);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read().catch(() => ({ done: true }));
    if (done) return;
    rest += value;
    const complete = rest.split("\n\n");
    rest = complete.pop();
    for (const frame of complete) {
      const fields = Object.fromEntries(
        frame.split("\n").map((line) => [line.split(":", 1)[0], line.replace(/^[^:]*: ?/, "")]),
      );
      if (fields.retry) pause = Number(fields.retry);
      if (fields.data) frames[fields.event]?.(JSON.parse(fields.data));
      last = fields.id ?? last;
    }
  }
}

/** Follows the chat for as long as the page is there, and comes back whenever a stream ends. */
async function stay() {
  let before;
  for (;;) {
    try {
      const visitor = await token();
      // The stream of another visitor is read from its beginning.
      if (visitor !== before) last = undefined;
      before = visitor;
      await follow(visitor);
      isWorking(false);
      state.textContent = words.away;
    } catch (error) {
      complain(error);
      // There is no such visitor any more: their place was given to another.
      if (error.status === 401 && kept(TOKEN) === before) anew(words.anew);
    }
    if (!isHurried) await new Promise((done) => setTimeout(done, pause));
    isHurried = false;
  }
}

form.onsubmit = (event) => {
  event.preventDefault();
  const { text } = form.elements;
  if (!text.value.trim()) return;
  // It is kept before the box is emptied.
  outbox.add("/messages", { text: text.value });
  text.value = "";
  unsent.lastElementChild?.scrollIntoView({ block: "end" });
};
form.elements.text.onkeydown = (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    form.requestSubmit();
  }
};
document.querySelector("#over").onclick = () => {
  if (!confirm(words.really)) return;
  outbox.clear();
  isHurried = true;
  anew("");
};
// Other tabs show the same chat. What one of them has not sent may be left behind by it.
let others;
window.addEventListener("storage", ({ key }) => {
  if (key === OUTBOX || key === null) {
    showUnsent();
    clearTimeout(others);
    others = setTimeout(() => outbox.work(), OTHERS_MS);
  }
  if ((key === TOKEN || key === null) && !coming) {
    forNow.delete(TOKEN);
    clear();
    stream.abort();
  }
});
window.addEventListener("online", () => wake());

showUnsent();
outbox.work();
stay();
