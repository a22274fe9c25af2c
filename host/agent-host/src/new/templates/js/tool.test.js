import assert from "node:assert/strict";
import { test } from "node:test";

import { tools } from "./plugin.js";

const [definition] = tools.describe();
const call = (text) => tools.call({}, definition.name, JSON.stringify({ text }));

test("words are counted", () => {
  const counted = call("two  words\n");
  assert.deepEqual(counted, { tag: "done", val: [{ tag: "text", val: '{"words":2}' }] });
});

test("a text without words is refused with the field and the fix", () => {
  const told = { tag: "invalid-arguments", val: "`text` must have a word in it" };
  assert.throws(() => call(" "), told);
});
