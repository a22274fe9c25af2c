import assert from "node:assert/strict";
import { test } from "node:test";

import { PROMPT, agent } from "./plugin.js";

/** A turn with a thread of messages, each a list of parts. Numbers of 64 bits are BigInts. */
const turn = (...messages) => ({
  settings: () => JSON.stringify({ prompt: "Prefer short words.", settings: {} }),
  head: () => BigInt(messages.length),
  message: (id) => ({ id, role: "assistant", parts: messages[Number(id) - 1] }),
});

const afterModel = (outcome, ...messages) => {
  const settled = { tag: "settled", val: { key: "model-1", outcome } };
  return agent.step(turn(...messages), [settled]).decision;
};

test("the model is asked for one sentence and told what the operator says", () => {
  const said = [{ tag: "text", val: "Hello" }];
  const { decision } = agent.step(turn(said), [{ tag: "said", val: [1n] }]);
  const [{ key, work }] = decision.val.start;
  assert.equal(key, "model-1");
  assert.deepEqual(work.val.system, [PROMPT, "Prefer short words."]);
});

test("an answer ends the turn", () => {
  const answer = [{ tag: "text", val: "Hello." }];
  const decision = afterModel({ tag: "message", val: 2n }, [], answer);
  assert.deepEqual(decision, { tag: "reply", val: [] });
});

test("calls of the model are carried out", () => {
  const call = { tag: "call", val: { index: 0, name: "read_file", arguments: "{}" } };
  const [operation] = afterModel({ tag: "message", val: 2n }, [], [call]).val.start;
  assert.equal(operation.key, "call-2-0");
});

test("a model that cannot be asked fails the turn with the reason", () => {
  const failure = { code: "model-unavailable", message: "no answer", retryable: true };
  assert.match(afterModel({ tag: "failed", val: failure }).val, /no answer/);
});
