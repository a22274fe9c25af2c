import assert from "node:assert/strict";
import { test } from "node:test";

import { tools } from "./plugin.js";

const [definition] = tools.describe();
const call = (given, name = definition.name) => tools.call({}, name, JSON.stringify(given));

test("words are counted", () => {
  const counted = call({ text: "two  words\n" });
  assert.deepEqual(counted, { tag: "done", val: [{ tag: "text", val: '{"words":2}' }] });
});

test("a text without words is refused with the field and the fix", () => {
  const told = { tag: "invalid-arguments", val: "`text` must have a word in it" };
  for (const given of [{ text: " " }, { text: 1 }, {}]) {
    assert.throws(() => call(given), told);
  }
});

test("another tool is not found", () => {
  const told = { tag: "not-found", val: "there is no tool `no_such_tool`" };
  assert.throws(() => call({ text: "words" }, "no_such_tool"), told);
});
