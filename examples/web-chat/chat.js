// A chat of a visitor with an agent: sends what the visitor says, and shows what is said to them.

const main = document.querySelector("main");
const said = document.querySelector("#said");
const state = document.querySelector("#state");
const form = document.querySelector("form");
const base = `${main.dataset.host}/chat/${encodeURIComponent(main.dataset.connector)}`;
const TOKEN = `token of ${base}`;
/** Milliseconds until the page comes back after a stream ended. */
let pause = 2000;

/** Sends a request; problems of the host become errors with its words. */
async function ask(path, options = {}) {
  const response = await fetch(base + path, options);
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  throw Object.assign(new Error(problem.detail ?? response.statusText), {
    status: response.status,
  });
}

/** The visitor's token: the one that is kept, or that of a new visitor. */
async function token() {
  const kept = localStorage.getItem(TOKEN);
  if (kept) return kept;
  const visitor = await (await ask("/visitors", { method: "POST" })).json();
  localStorage.setItem(TOKEN, visitor.token);
  return visitor.token;
}

async function headers() {
  return { authorization: `Bearer ${await token()}`, "content-type": "application/json" };
}

/** Sends something until the host has it. The same id is taken once, so trying again is safe. */
async function send(path, content) {
  const body = JSON.stringify({ id: crypto.randomUUID(), ...content });
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await ask(path, { method: "POST", headers: await headers(), body });
    } catch (error) {
      const passes = error.status === undefined || error.status === 429 || error.status >= 500;
      if (!passes || attempt === 5) throw error;
      await new Promise((done) => setTimeout(done, attempt * 1000));
    }
  }
}

/** Shows a text, and never HTML: an agent may say anything. */
function show(id, text, kind = "") {
  let shown = document.getElementById(id);
  if (!shown) {
    shown = document.createElement("div");
    shown.id = id;
    said.append(shown);
  }
  shown.className = kind;
  shown.textContent = text;
  shown.scrollIntoView({ block: "end" });
  return shown;
}

function showQuestion({ question_id, text, choices, is_open }) {
  const shown = show(`question-${question_id}`, text);
  for (const { label, value } of choices) {
    const button = document.createElement("button");
    button.textContent = label;
    button.disabled = !is_open;
    button.onclick = () => send("/answers", { value }).catch(complain);
    shown.append(button);
  }
}

function closeQuestion(id) {
  const buttons = document.getElementById(`question-${id}`)?.querySelectorAll("button");
  buttons?.forEach((button) => (button.disabled = true));
}

/** Messages of the visitor that the stream has shown, and those that this page shows until then. */
const told = new Set();
const waiting = new Map();

const complain = (error) => (state.textContent = error.message);
const forget = () => said.querySelectorAll(".growing").forEach((piece) => piece.remove());

/** What each frame of the stream means. */
const frames = {
  connected({ open_question_ids, typing }) {
    const open = new Set(open_question_ids.map((id) => `question-${id}`));
    for (const shown of said.querySelectorAll("[id^=question-]")) {
      if (!open.has(shown.id)) closeQuestion(shown.id.slice("question-".length));
    }
    frames.typing({ typing });
  },
  said({ input_id, message_ids, text }) {
    show(input_id, text, "own");
    for (const id of message_ids) {
      told.add(id);
      document.getElementById(waiting.get(id))?.remove();
    }
  },
  message({ delivery_id, text }) {
    forget();
    show(delivery_id, text);
  },
  question(asked) {
    forget();
    showQuestion(asked);
  },
  question_closed: ({ question_id }) => closeQuestion(question_id),
  typing: ({ typing }) => (state.textContent = typing ? "…" : ""),
  delta({ reply_id, attempt, text }) {
    const id = `${reply_id}-${attempt}`;
    show(id, (document.getElementById(id)?.textContent ?? "") + text, "growing");
  },
  delta_so_far: ({ reply_id, attempt, text }) => show(`${reply_id}-${attempt}`, text, "growing"),
  delta_discarded: forget,
  reset: () => said.replaceChildren(),
};

/** Reads one stream to its end, frame by frame. Returns the last id that was seen. */
async function follow(last) {
  const options = { headers: await headers(), cache: "no-store" };
  if (last) options.headers["last-event-id"] = last;
  const response = await ask("/events", options);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { done, value } = await reader.read().catch(() => ({ done: true }));
    if (done) return last;
    waiting += value;
    const complete = waiting.split("\n\n");
    waiting = complete.pop();
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
  let last;
  for (;;) {
    try {
      last = await follow(last);
    } catch (error) {
      complain(error);
      if (error.status === 401) {
        // There is no such visitor any more: the next one begins a chat of their own.
        localStorage.removeItem(TOKEN);
        said.replaceChildren();
        last = undefined;
      }
    }
    await new Promise((done) => setTimeout(done, pause));
  }
}

form.onsubmit = async (event) => {
  event.preventDefault();
  const { text } = form.elements;
  const words = text.value;
  text.value = "";
  const shown = crypto.randomUUID();
  show(shown, words, "own");
  try {
    const { message_id } = await (await send("/messages", { text: words })).json();
    if (told.has(message_id)) document.getElementById(shown)?.remove();
    else waiting.set(message_id, shown);
  } catch (error) {
    complain(error);
  }
};

stay();
