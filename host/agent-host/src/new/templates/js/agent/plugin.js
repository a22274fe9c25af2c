/**
 * An agent: answers in one sentence.
 *
 * A step is a pure function: what happened since the last step goes in, a decision comes out.
 * Nothing survives from one step to the next but the thread, so every key of an operation follows
 * from it.
 */

export const PROMPT = "You answer in one sentence.";

export const agent = {
  describe: () => ({
    id: "{{name}}",
    displayName: "{{title}}",
    summary: "Answers in one sentence.",
    sessionTypes: [],
    wants: [],
    memoFormats: [],
  }),

  step(turn, news) {
    const ended = news.filter(({ tag }) => tag === "settled").map(({ val }) => val);
    const model = ended.find(({ key }) => key.startsWith("model-"));
    // Otherwise the user spoke, or the tools that the model called have ended.
    return model ? afterModel(turn, model.outcome) : askModel(turn);
  },
};

function askModel(turn) {
  const operator = JSON.parse(turn.settings()).prompt;
  const request = {
    system: [PROMPT, operator].filter(Boolean),
    context: { tag: "whole" },
    also: [],
    tools: { tag: "all" },
    model: undefined,
    maxTokens: undefined,
    replySchema: undefined,
    audience: "user",
  };
  return start([{ key: `model-${turn.head() ?? 0}`, work: { tag: "model", val: request } }]);
}

/** Carries out the calls that the model made; without one, its answer ends the turn. */
function afterModel(turn, outcome) {
  if (outcome.tag !== "message") {
    const why = outcome.tag === "failed" ? outcome.val.message : outcome.tag;
    return decide({ tag: "fail", val: `the model could not be asked: ${why}` });
  }
  const message = turn.message(outcome.val);
  const calls = message.parts.filter(({ tag }) => tag === "call").map(({ val }) => val);
  if (calls.length === 0) {
    // The answer is in the thread already.
    return decide({ tag: "reply", val: [] });
  }
  return start(
    calls.map(({ index }) => ({
      key: `call-${message.id}-${index}`,
      work: { tag: "tool", val: { tag: "of-model", val: { message: message.id, index } } },
    })),
  );
}

function start(operations) {
  return decide({ tag: "wait", val: { start: operations, cancel: [], until: "all", hear: false } });
}

function decide(decision) {
  return { decision, effects: [], memo: undefined };
}
