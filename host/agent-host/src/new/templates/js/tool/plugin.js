/** A tool: counts the words of a text. */

const DEFINITION = {
  name: "{{snake}}",
  description: "Counts the words of a text.",
  arguments: JSON.stringify({
    type: "object",
    properties: { text: { type: "string", description: "The text." } },
    required: ["text"],
    additionalProperties: false,
  }),
  // The host checks every result against this.
  results: JSON.stringify({
    type: "object",
    properties: { words: { type: "integer", minimum: 0 } },
    required: ["words"],
  }),
  capabilities: [],
  // It changes nothing, so the host may run it again after a crash.
  effect: "read-only",
  destructive: false,
  timeLimitMs: undefined,
};

export const tools = {
  describe: () => [DEFINITION],

  call(context, name, args) {
    // A host checks the arguments first and calls by names that `describe` returned. `plugin test`
    // does neither: what does not fit is refused here, and any other name.
    if (name !== DEFINITION.name) {
      throw { tag: "not-found", val: `there is no tool \`${name}\`` };
    }
    const { text } = JSON.parse(args);
    const words = typeof text === "string" ? text.split(/\s+/).filter(Boolean).length : 0;
    if (words === 0) {
      throw { tag: "invalid-arguments", val: "`text` must have a word in it" };
    }
    return { tag: "done", val: [{ tag: "text", val: JSON.stringify({ words }) }] };
  },
};
