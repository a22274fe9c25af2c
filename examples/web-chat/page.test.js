// Tests of the parts of the page: what is drawn of a text, and what is kept of what was said.

import assert from "node:assert/strict";
import { test } from "node:test";
import { render } from "./markdown.js";
import { Outbox, fate, newId } from "./outbox.js";
import { languages, wordsOf } from "./words.js";

/** As much of a document as the page makes nodes with. It knows no way to read HTML. */
class Made {
  constructor(name) {
    this.name = name;
    this.children = [];
  }
  append(...nodes) {
    for (const node of nodes) {
      if (node.name === "") this.children.push(...node.children);
      else this.children.push(node);
    }
  }
  get textContent() {
    return this.children.map((child) => child.textContent ?? child).join("");
  }
  toString() {
    const inner = this.children.join("");
    if (!this.name) return inner;
    const given = this.href ? ` ${this.href}` : this.className ? ` ${this.className}` : "";
    return `<${this.name}${given}>${inner}</${this.name}>`;
  }
}
globalThis.document = {
  createElement: (name) => new Made(name),
  createDocumentFragment: () => new Made(""),
  createTextNode: (text) => text,
};
const drawn = (text) => String(render(text));

test("markdown becomes nodes of the page", () => {
  for (const [text, expected] of [
    ["Hello", "<p>Hello</p>"],
    ["one\ntwo\n\nthree", "<p>one<br></br>two</p><p>three</p>"],
    ["# On tides", "<h3>On tides</h3>"],
    ["**bold** and *it* and __b__ and _i_ and ~~no~~", "<p><strong>bold</strong> and <em>it</em> and <strong>b</strong> and <em>i</em> and <del>no</del></p>"],
    ["a_b_c 2 * 3 * 4", "<p>a_b_c 2 * 3 * 4</p>"],
    ["`a <b>` and ``x ` y``", "<p><code>a <b></code> and <code>x ` y</code></p>"],
    ["\\*no\\*", "<p>*no*</p>"],
    ["```json\n{ \"a\": 1 }\n```\nafter", "<pre><code>{ \"a\": 1 }</code></pre><p>after</p>"],
    ["```\nopen", "<pre><code>open</code></pre>"],
    ["- one\n- two\n  - deep\n- three", "<ul><li>one</li><li><p>two</p><ul><li>deep</li></ul></li><li>three</li></ul>"],
    ["1. one\n2. two", "<ol><li>one</li><li>two</li></ol>"],
    ["> said\n> so", "<blockquote><p>said<br></br>so</p></blockquote>"],
    ["---", "<hr></hr>"],
    ["| a | b |\n|---|:-:|\n| 1 | 2 |", "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>"],
    ["https://a.example/b.", "<p><a https://a.example/b>https://a.example/b</a>.</p>"],
    ["***both*** *it **b***", "<p><strong><em>both</em></strong> <em>it <strong>b</strong></em></p>"],
    ["On tides\n===\ntext\n***\nmore", "<h3>On tides</h3><p>text</p><hr></hr><p>more</p>"],
    ["Here:\n|a|b|\n|-|-|\n|1\\|2|`x`|", "<p>Here:</p><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1|2</td><td><code>x</code></td></tr></tbody></table>"],
    ["so:\n\n    one\n\n      two\n\nafter", "<p>so:</p><pre><code>one\n\n  two</code></pre><p>after</p>"],
    ["1 &lt; 2 &amp;&nbsp;`&lt;` &nope;", "<p>1 < 2 &\u00a0<code>&lt;</code> &nope;</p>"],
    ["(https://a.example/b_(c)).", "<p>(<a https://a.example/b_(c)>https://a.example/b_(c)</a>).</p>"],
    ["<https://a.example/b>", "<p><a https://a.example/b>https://a.example/b</a></p>"],
  ]) {
    assert.equal(drawn(text), expected, text);
  }
});

test("a link shows where it leads, and leads to the web or to mail alone", () => {
  const to = (text, url) => `<p><a ${url}>${text}</a><span target> (${url})</span></p>`;
  assert.equal(drawn("[here](https://a.example/)"), to("here", "https://a.example/"));
  const bank = "[https://bank.example](https://evil.example/x)";
  assert.equal(drawn(bank), to("https://bank.example", "https://evil.example/x"));
  assert.equal(drawn("[mail](mailto:a@b.example)"), to("mail", "mailto:a@b.example"));
  assert.match(drawn("[a](https://ex\u0430mple.org/)"), /xn--/, "letters that look like others");
  const long = `https://bank.example.${"a".repeat(60)}.${"b".repeat(60)}.evil.example/`;
  assert.ok(drawn(`[here](${long}${"c".repeat(200)})`).includes(`(${long.slice(0, -1)}…)`), "the whole host");
  for (const target of ["javascript:alert(1)", "data:text/html,x", "//a.example", "/a", "file:///a", "https://user@a.example/"]) {
    const text = `[x](${target})`;
    assert.equal(drawn(text).includes("<a "), false, text);
    assert.ok(drawn(text).includes("[x]("), "it is shown as it was written");
  }
});

test("nothing is read as html, and nothing is loaded", () => {
  const html = "<img src=x onerror=alert(1)> <script>alert(1)</script>";
  assert.ok(!render("&lt;img src=x&gt;").children[0].children.some((child) => child.name));
  assert.equal(drawn(html), `<p>${html}</p>`);
  assert.ok(!render(html).children[0].children.some((child) => child.name), "it is one text");
  const image = drawn("![cat](https://a.example/cat.png)");
  assert.equal(image, "<p><a https://a.example/cat.png>cat</a><span target> (https://a.example/cat.png)</span></p>");
});

test("a long text of any marks is drawn in a moment", () => {
  for (const piece of ["*a ", "[", "[a](", "`", "`a``", "> ", "- ", "|-|\n", "_a", "<http:", "![", "~~a", "  - a\n", "https://", "http://a)", "&lt;", "***a", "    a\n\n", "a|\n"]) {
    const text = piece.repeat(60000 / piece.length);
    const begin = performance.now();
    render(text);
    const ms = performance.now() - begin;
    assert.ok(ms < 5000, `${JSON.stringify(piece)} took ${ms} ms`);
  }
});

test("a long line of any signs before its end is looked through once", () => {
  const run = (piece) => piece.repeat(100000 / piece.length);
  for (const text of [
    `a|b\n${run("|")}`,
    `a|b\n${run("|-")}x`,
    `a|b\n${run("| - ")}x`,
    `a|b\n${run("-")}x`,
    `a|b\n|${run(" ")}x`,
    `${run("~")}\``,
    `${run("`")}~\``,
    `~~~${run("a")}\``,
    `~~~${run(" ")}\``,
    `- ${run(" ")}x\u2028y`,
    `# ${run(" ")}x\u2028y`,
    `${run("- ")}x`,
    run("|"),
  ]) {
    const begin = performance.now();
    render(text);
    const ms = performance.now() - begin;
    assert.ok(ms < 1000, `${JSON.stringify(text.slice(0, 12))} took ${ms} ms`);
  }
  assert.match(drawn("a|b\n:-:|-\n1|2"), /^<table>/);
  assert.equal(drawn("a|b\n|x|"), "<p>a|b<br></br>|x|</p>");
});

/** A storage that outlives a page, and a host that answers as it is told to. */
function scene(answers) {
  const kept = new Map();
  const storage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value) };
  const posted = [];
  const heard = { taken: [], unknown: 0, waited: [], unkept: 0 };
  const post = async (entry) => {
    posted.push(entry);
    const answer = answers.shift() ?? { message_id: entry.id };
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const on = {
    changed() {},
    failed() {},
    taken: (entry) => heard.taken.push(entry.content.text),
    unknown: () => (heard.unknown += 1),
    wait: async (ms) => void heard.waited.push(ms),
    unkept: () => (heard.unkept += 1),
  };
  return { storage, posted, heard, page: () => new Outbox(storage, "outbox", post, on) };
}
const refusal = (status, more) => Object.assign(new Error("no"), { status, ...more });
/** Waits until an outbox has nothing to do. */
const rest = async (outbox) => {
  while (outbox.isAtWork) await new Promise((done) => setImmediate(done));
};

test("what was said is kept until the host has it, in its order and under its id", async () => {
  const away = new Error("Failed to fetch");
  const { posted, heard, page } = scene([away, refusal(503, { retryMs: 2000 }), refusal(429), refusal(409)]);
  const outbox = page();
  outbox.add("/messages", { text: "one" });
  outbox.add("/messages", { text: "two" });
  await rest(outbox);
  assert.deepEqual(heard.taken, ["one", "two"]);
  assert.equal(posted.length, 6);
  assert.equal(new Set(posted.slice(0, 5).map((entry) => entry.id)).size, 1, "the same id again");
  assert.deepEqual(heard.waited, [1000, 2000, 4000, 8000], "it waits longer, and as long as it is asked to");
  assert.deepEqual(outbox.entries(), []);
});

test("a page that is loaded again sends what the one before did not", async () => {
  const { storage, heard, page } = scene([]);
  const before = page();
  before.post = () => new Promise(() => {});
  before.add("/messages", { text: "one" });
  assert.ok(storage.getItem("outbox").includes("one"), "it is kept before it is sent");
  const after = page();
  after.work();
  await rest(after);
  assert.deepEqual(heard.taken, ["one"]);
  assert.deepEqual(after.entries(), []);
});

test("what is refused stays, holds nothing back and is sent again or taken back", async () => {
  const { heard, page } = scene([refusal(413), {}, {}]);
  const outbox = page();
  const long = outbox.add("/messages", { text: "long" });
  outbox.add("/messages", { text: "short" });
  await rest(outbox);
  assert.deepEqual(heard.taken, ["short"]);
  assert.deepEqual(outbox.entries().map(({ id, refused }) => [id, refused]), [[long.id, 413]]);
  outbox.again(long.id);
  await rest(outbox);
  assert.deepEqual(heard.taken, ["short", "long"]);
  assert.equal(outbox.drop(long.id), undefined);
});

test("the next visitor says what a stranger could not", async () => {
  const { heard, page } = scene([refusal(401)]);
  const outbox = page();
  outbox.add("/messages", { text: "one" });
  await rest(outbox);
  assert.deepEqual([heard.unknown, heard.taken], [1, ["one"]]);
});

test("a browser that keeps nothing sends all the same and says so", async () => {
  const { storage, heard, page } = scene([]);
  storage.setItem = () => {
    throw new Error("full");
  };
  const outbox = page();
  outbox.add("/messages", { text: "one" });
  await rest(outbox);
  assert.deepEqual(heard.taken, ["one"]);
  assert.ok(heard.unkept > 0);
});

test("an id needs no https, and no two are the same", () => {
  assert.match(newId(), /^[0-9a-f]{32}$/);
  assert.notEqual(newId(), newId());
  assert.deepEqual([undefined, 500, 401, 400, 403].map(fate), ["later", "later", "unknown", "refused", "refused"]);
});

test("every language has every text, and a reader gets the first that is there", () => {
  for (const [name, words] of Object.entries(languages)) {
    assert.deepEqual(Object.keys(words), Object.keys(languages.en), name);
  }
  for (const [asked, expected] of [[["de-AT", "en"], "de"], [["xx", "fr"], "fr"], [["toString"], "en"], [[], "en"]]) {
    assert.equal(wordsOf(asked).language, expected);
  }
});
