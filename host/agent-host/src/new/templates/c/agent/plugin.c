/* An agent: answers in one sentence.
 *
 * A step is a pure function: what happened since the last step goes in, a decision comes out.
 * Nothing survives from one step to the next but the thread, so every key of an operation follows
 * from it. Each step has a fresh instance, which is gone after it: what is allocated need not be
 * freed. */

#include "bindings/agent_plugin.h"
#include "json.h"

#include <inttypes.h>
#include <stdio.h>

typedef agent_host_plugin_turn_borrow_view_t turn_t;
typedef agent_host_plugin_types_message_t message_t;
typedef exports_agent_host_plugin_agent_decision_t decision_t;
typedef exports_agent_host_plugin_agent_operation_t operation_t;
typedef exports_agent_host_plugin_agent_outcome_t outcome_t;

static const char PROMPT[] = "You answer in one sentence.";

static void *new_array(size_t len, size_t size) {
  void *array = calloc(len, size);
  if (array == NULL) abort();
  return array;
}

void exports_agent_host_plugin_agent_describe(exports_agent_host_plugin_agent_description_t *ret) {
  memset(ret, 0, sizeof *ret);
  agent_plugin_string_dup(&ret->id, "{{name}}");
  agent_plugin_string_dup(&ret->display_name, "{{title}}");
  agent_plugin_string_dup(&ret->summary, "Answers in one sentence.");
}

static void start(operation_t *operations, size_t len, decision_t *decision) {
  decision->tag = EXPORTS_AGENT_HOST_PLUGIN_AGENT_DECISION_WAIT;
  decision->val.wait.start.ptr = operations;
  decision->val.wait.start.len = len;
  decision->val.wait.until = EXPORTS_AGENT_HOST_PLUGIN_AGENT_UNTIL_ALL;
}

static void fail(const char *why, agent_plugin_string_t more, decision_t *decision) {
  char reason[1024];
  snprintf(reason, sizeof reason, "%s%.*s", why, (int)(more.len < 512 ? more.len : 512),
           more.len > 0 ? (const char *)more.ptr : "");
  decision->tag = EXPORTS_AGENT_HOST_PLUGIN_AGENT_DECISION_FAIL;
  agent_plugin_string_dup(&decision->val.fail, reason);
}

static void ask_model(turn_t turn, decision_t *decision) {
  operation_t *operation = new_array(1, sizeof *operation);
  uint64_t head = 0;
  agent_host_plugin_turn_method_view_head(turn, &head);
  char key[64];
  snprintf(key, sizeof key, "model-%" PRIu64, head);
  agent_plugin_string_dup(&operation->key, key);

  /* All that is not set here is zero: the whole thread, all tools, the model of the configuration,
   * and the user sees the reply. */
  operation->work.tag = EXPORTS_AGENT_HOST_PLUGIN_AGENT_WORK_MODEL;
  agent_plugin_list_string_t *system = &operation->work.val.model.system;
  system->ptr = new_array(2, sizeof *system->ptr);
  agent_plugin_string_dup(&system->ptr[system->len++], PROMPT);
  agent_plugin_string_t settings;
  agent_host_plugin_turn_method_view_settings(turn, &settings);
  json_text_t prompt;
  if (json_string((const char *)settings.ptr, settings.len, "prompt", &prompt) && prompt.len > 0) {
    agent_plugin_string_dup_n(&system->ptr[system->len++], prompt.ptr, prompt.len);
  }
  start(operation, 1, decision);
}

/* Carries out the calls that the model made; without one, its answer ends the turn. */
static void after_model(turn_t turn, const outcome_t *outcome, decision_t *decision) {
  agent_plugin_string_t none = {0};
  message_t message;
  if (outcome->tag == EXPORTS_AGENT_HOST_PLUGIN_AGENT_OUTCOME_FAILED) {
    fail("the model could not be asked: ", outcome->val.failed.message, decision);
    return;
  }
  if (outcome->tag != EXPORTS_AGENT_HOST_PLUGIN_AGENT_OUTCOME_MESSAGE ||
      !agent_host_plugin_turn_method_view_message(turn, outcome->val.message, &message)) {
    fail("the model could not be asked", none, decision);
    return;
  }
  operation_t *operations = new_array(message.parts.len + 1, sizeof *operations);
  size_t len = 0;
  for (size_t i = 0; i < message.parts.len; i++) {
    if (message.parts.ptr[i].tag != AGENT_HOST_PLUGIN_TYPES_PART_CALL) continue;
    uint32_t index = message.parts.ptr[i].val.call.index;
    char key[64];
    snprintf(key, sizeof key, "call-%" PRIu64 "-%" PRIu32, message.id, index);
    operation_t *operation = &operations[len++];
    agent_plugin_string_dup(&operation->key, key);
    operation->work.tag = EXPORTS_AGENT_HOST_PLUGIN_AGENT_WORK_TOOL;
    operation->work.val.tool.tag = EXPORTS_AGENT_HOST_PLUGIN_AGENT_CALL_OF_MODEL;
    operation->work.val.tool.val.of_model.message = message.id;
    operation->work.val.tool.val.of_model.index = index;
  }
  if (len > 0) {
    start(operations, len, decision);
  } else {
    /* The answer is in the thread already. */
    decision->tag = EXPORTS_AGENT_HOST_PLUGIN_AGENT_DECISION_REPLY;
  }
}

void exports_agent_host_plugin_agent_step(exports_agent_host_plugin_agent_borrow_view_t turn,
                                          exports_agent_host_plugin_agent_list_news_t *news,
                                          exports_agent_host_plugin_agent_step_result_t *ret) {
  memset(ret, 0, sizeof *ret);
  const outcome_t *of_model = NULL;
  for (size_t i = 0; i < news->len; i++) {
    const exports_agent_host_plugin_agent_settlement_t *settled = &news->ptr[i].val.settled;
    if (news->ptr[i].tag == EXPORTS_AGENT_HOST_PLUGIN_AGENT_NEWS_SETTLED &&
        settled->key.len > 6 && memcmp(settled->key.ptr, "model-", 6) == 0) {
      of_model = &settled->outcome;
    }
  }
  if (of_model != NULL) {
    after_model(turn, of_model, &ret->decision);
  } else {
    /* The user spoke, or the tools that the model called have ended. */
    ask_model(turn, &ret->decision);
  }
  /* The turn is lent for the length of the step. */
  agent_host_plugin_turn_view_drop_borrow(turn);
}
