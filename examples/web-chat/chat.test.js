// The page as a visitor sees it, in as much of a browser as it needs and with a host that is made up.

import assert from "node:assert/strict";
import { test } from "node:test";

class Made {
  constructor(name, given = {}) {
    Object.assign(this, { name, children: [], dataset: {}, className: "", value: "", parent: null }, given);
  }
  append(...nodes) {
    for (const node of nodes) {
      if (node.name === "") this.append(...[...node.children]);
      else {
        node.remove?.();
        if (node instanceof Made) node.parent = this;
        this.children.push(node);
      }
    }
  }
  replaceChildren(...nodes) {
    for (const child of this.children) if (child instanceof Made) child.parent = null;
    this.children = [];
    this.append(...nodes);
  }
  remove() {
    if (this.parent) this.parent.children = this.parent.children.filter((child) => child !== this);
    this.parent = null;
  }
  get textContent() {
    return this.children.map((child) => child.textContent ?? child).join("");
  }
  set textContent(text) {
    this.replaceChildren(text);
  }
  get lastElementChild() {
    return this.children.findLast((child) => child instanceof Made);
  }
  scrollIntoView() {}
  all(fits) {
    const made = this.children.filter((child) => child instanceof Made);
    return made.flatMap((child) => [...(fits(child) ? [child] : []), ...child.all(fits)]);
  }
  querySelectorAll(selector) {
    const fits = {
      button: (it) => it.name === "button",
      ".growing": (it) => it.className.includes("growing"),
      "[id^=question-]": (it) => it.id?.startsWith("question-"),
      "[data-word]": (it) => it.dataset.word,
      "[data-hint]": (it) => it.dataset.hint,
    };
    return this.all(fits[selector]);
  }
  querySelector() {
    return this.all((it) => it.className === "words")[0];
  }
  requestSubmit() {
    this.onsubmit({ preventDefault() {} });
  }
}

const part = (id) => new Made("div", { id });
const [said, unsent, working, state, form, over] = ["said", "unsent", "working", "state", "form", "over"].map(part);
over.dataset.word = "over";
working.hidden = true;
working.append(new Made("span", { className: "words" }));
form.elements = { text: new Made("textarea") };
const main = new Made("main", { dataset: { host: "http://host", connector: "site" } });
main.append(over, said, unsent, working, state, form);
const parts = { main, form, "#said": said, "#unsent": unsent, "#working": working, "#state": state, "#over": over };
const kept = new Map();
let visitors = 0;
let status = 202;
let push;
const posted = [];
const listeners = {};
let meanwhile = () => {};
const answer = (body, status) => new Response(JSON.stringify(body), { status });

function events(signal) {
  return new ReadableStream({
    start(stream) {
      push = (event, data) =>
        stream.enqueue(new TextEncoder().encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`));
      signal.addEventListener("abort", () => stream.error(signal.reason));
    },
  });
}

Object.assign(globalThis, {
  document: {
    querySelector: (selector) => parts[selector],
    createElement: (name) => new Made(name),
    createDocumentFragment: () => new Made(""),
    createTextNode: (text) => text,
    documentElement: {},
    getElementById: (id) => main.all((it) => it.id === id)[0],
  },
  localStorage: {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => kept.set(key, value),
    removeItem: (key) => kept.delete(key),
  },
  window: { addEventListener: (name, does) => (listeners[name] = does) },
  confirm: () => true,
  requestAnimationFrame: (draw) => setTimeout(draw, 1),
  async fetch(url, options) {
    const path = url.replace("http://host/chat/site", "");
    if (path === "/visitors") meanwhile();
    if (path === "/visitors") return answer({ token: `visitor-${(visitors += 1)}` }, 201);
    if (path === "/events") return new Response(events(options.signal));
    posted.push({ path, by: options.headers.authorization, ...JSON.parse(options.body) });
    if (status !== 202) return answer({ code: status === 503 ? "STARTING" : "NO" }, status);
    return answer({ message_id: `message-${posted.length}` }, 202);
  },
});
Object.defineProperty(globalThis, "navigator", { value: { languages: ["de-DE"] } });

/** Waits until something is so. */
async function until(what, is) {
  for (let look = 0; look < 1000; look += 1) {
    if (is()) return;
    await new Promise((done) => setTimeout(done, 10));
  }
  assert.fail(`${what}: ${main.textContent}`);
}

function say(text) {
  form.elements.text.value = text;
  form.requestSubmit();
}

test("a visitor talks, loses nothing, and comes again as another", async () => {
  await import("./chat.js");
  await until("a stream", () => push);
  assert.equal(over.textContent, "Neu beginnen", "in the visitor's language");
  push("connected", { open_question_ids: [], typing: true });
  await until("work", () => !working.hidden && working.textContent.includes("In Arbeit"));

  say("hello");
  await until("the answer", () => unsent.children.length === 0 && said.textContent.startsWith("hello"));
  push("said", { input_id: "i", message_ids: ["message-1"], text: "hello", time: "2026-11-29T10:00:00.000Z" });
  await until("one message", () => document.getElementById("i"));
  assert.equal(said.children.length, 1, "it is shown once");
  push("delta", { reply_id: "r", attempt: 0, text: "**wel" });
  push("delta", { reply_id: "r", attempt: 0, text: "come**" });
  await until("a reply that grows", () => said.textContent.endsWith("welcome"));
  push("message", { outbound_message_id: "d", text: "**welcome**", time: "2026-11-29T10:00:00.000Z" });
  await until("the reply", () => document.getElementById("d"));
  assert.equal(said.children.length, 2);
  assert.ok(!said.textContent.includes("*") && !said.textContent.includes("Z"), said.textContent);

  push("question", {
    question_id: "q", is_open: true, time: "2026-11-29T10:00:00.000Z",
    text: "May it?\n\nIt is done, if you approve it before 2026-11-29 10:15 UTC.",
    choices: [{ label: "Approve", value: "yes" }],
  });
  await until("a question", () => document.getElementById("question-q"));
  assert.ok(!said.textContent.includes("UTC"), said.textContent);
  const [approve] = said.querySelectorAll("button");
  assert.equal(approve.textContent, "Erlauben");
  approve.onclick();
  await until("the choice", () => posted.at(-1).value === "yes");
  assert.ok(approve.disabled);

  status = 503;
  say("later");
  await until("a start", () => state.textContent.includes("startet"));
  assert.ok(unsent.textContent.startsWith("later"));
  assert.ok([...kept.values()].some((value) => value.includes("later")), "it is kept");
  status = 202;
  await until("the rest", () => unsent.children.length === 0 && said.textContent.includes("later"));

  status = 413;
  say("long");
  await until("a refusal", () => unsent.textContent.includes("wurde nicht"));
  const [, back] = unsent.querySelectorAll("button");
  form.elements.text.value = "begun";
  back.onclick();
  assert.equal(form.elements.text.value, "begun\nlong");
  form.elements.text.value = "";
  assert.equal(unsent.children.length, 0);

  status = 401;
  say("who");
  await until("another visitor", () => said.textContent.includes("beendet"));
  status = 202;
  await until("the same words", () => posted.at(-1).by === "Bearer visitor-2" && posted.at(-1).text === "who");

  over.onclick();
  await until("a new chat", () => visitors === 3);
  assert.equal(said.textContent, "");

  // Another tab leaves something behind.
  const left = [{ id: "left", path: "/messages", content: { text: "from a tab" }, at: "2026-11-29T10:00:00.000Z" }];
  kept.set("outbox of http://host/chat/site", JSON.stringify(left));
  listeners.storage({ key: "outbox of http://host/chat/site" });
  assert.ok(unsent.textContent.startsWith("from a tab"));
  await until("what was left behind", () => posted.at(-1).id === "left" && unsent.children.length === 0);

  // Another tab becomes a visitor at the same time, and first.
  meanwhile = () => kept.set("token of http://host/chat/site", "visitor-first");
  over.onclick();
  await until("the other visitor", () => visitors === 4);
  say("as one");
  await until("one visitor", () => posted.at(-1).text === "as one");
  assert.equal(posted.at(-1).by, "Bearer visitor-first");
});
