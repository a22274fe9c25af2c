/* Tests of plugin.c on this machine. They play the host: what it offers is written here. */

#undef NDEBUG
#include "bindings/agent_plugin.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void agent_plugin_string_dup_n(agent_plugin_string_t *ret, const char *s, size_t len) {
  ret->len = len;
  ret->ptr = malloc(len + 1);
  memcpy(ret->ptr, s, len);
}

void agent_plugin_string_dup(agent_plugin_string_t *ret, const char *s) {
  agent_plugin_string_dup_n(ret, s, strlen(s));
}

/* The thread: the user's message, and perhaps the model's with this one part. */
static agent_host_plugin_types_part_t said;
static uint64_t messages;
static int lent;

bool agent_host_plugin_turn_method_view_head(agent_host_plugin_turn_borrow_view_t self,
                                             uint64_t *ret) {
  (void)self;
  *ret = messages;
  return true;
}

void agent_host_plugin_turn_method_view_settings(agent_host_plugin_turn_borrow_view_t self,
                                                 agent_plugin_string_t *ret) {
  (void)self;
  agent_plugin_string_dup(ret, "{\"settings\": {}, \"prompt\": \"Prefer \\\"short\\\" words.\"}");
}

bool agent_host_plugin_turn_method_view_message(agent_host_plugin_turn_borrow_view_t self,
                                                uint64_t id,
                                                agent_host_plugin_types_message_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
  ret->id = id;
  ret->parts.ptr = &said;
  ret->parts.len = 1;
  return id == messages;
}

void agent_host_plugin_turn_view_drop_borrow(agent_host_plugin_turn_borrow_view_t handle) {
  (void)handle;
  lent--;
}

static exports_agent_host_plugin_agent_decision_t step(
    exports_agent_host_plugin_agent_news_t *news) {
  exports_agent_host_plugin_agent_list_news_t list = {news, 1};
  agent_host_plugin_turn_borrow_view_t turn = {1};
  exports_agent_host_plugin_agent_step_result_t result;
  lent = 1;
  exports_agent_host_plugin_agent_step(turn, &list, &result);
  assert(lent == 0);
  return result.decision;
}

static exports_agent_host_plugin_agent_decision_t after_model(
    exports_agent_host_plugin_agent_outcome_t outcome) {
  exports_agent_host_plugin_agent_news_t news = {0};
  news.tag = EXPORTS_AGENT_HOST_PLUGIN_AGENT_NEWS_SETTLED;
  agent_plugin_string_dup(&news.val.settled.key, "model-1");
  news.val.settled.outcome = outcome;
  return step(&news);
}

static exports_agent_host_plugin_agent_decision_t after_answer(void) {
  exports_agent_host_plugin_agent_outcome_t outcome = {0};
  messages = 2;
  outcome.tag = EXPORTS_AGENT_HOST_PLUGIN_AGENT_OUTCOME_MESSAGE;
  outcome.val.message = messages;
  return after_model(outcome);
}

static bool is(agent_plugin_string_t text, const char *expected) {
  return text.len == strlen(expected) && memcmp(text.ptr, expected, text.len) == 0;
}

static void the_model_is_asked_for_one_sentence_and_told_what_the_operator_says(void) {
  exports_agent_host_plugin_agent_news_t news = {0};
  messages = 1;
  news.tag = EXPORTS_AGENT_HOST_PLUGIN_AGENT_NEWS_SAID;
  exports_agent_host_plugin_agent_decision_t decision = step(&news);
  assert(decision.tag == EXPORTS_AGENT_HOST_PLUGIN_AGENT_DECISION_WAIT);
  assert(decision.val.wait.start.len == 1);
  exports_agent_host_plugin_agent_operation_t *operation = decision.val.wait.start.ptr;
  assert(is(operation->key, "model-1"));
  agent_plugin_list_string_t system = operation->work.val.model.system;
  assert(system.len == 2);
  assert(is(system.ptr[0], "You answer in one sentence."));
  assert(is(system.ptr[1], "Prefer \"short\" words."));
}

static void an_answer_ends_the_turn(void) {
  said.tag = AGENT_HOST_PLUGIN_TYPES_PART_TEXT;
  exports_agent_host_plugin_agent_decision_t decision = after_answer();
  assert(decision.tag == EXPORTS_AGENT_HOST_PLUGIN_AGENT_DECISION_REPLY);
  assert(decision.val.reply.len == 0);
}

static void calls_of_the_model_are_carried_out(void) {
  said.tag = AGENT_HOST_PLUGIN_TYPES_PART_CALL;
  said.val.call.index = 0;
  exports_agent_host_plugin_agent_decision_t decision = after_answer();
  assert(decision.tag == EXPORTS_AGENT_HOST_PLUGIN_AGENT_DECISION_WAIT);
  assert(is(decision.val.wait.start.ptr[0].key, "call-2-0"));
}

static void a_model_that_cannot_be_asked_fails_the_turn_with_the_reason(void) {
  exports_agent_host_plugin_agent_outcome_t outcome = {0};
  outcome.tag = EXPORTS_AGENT_HOST_PLUGIN_AGENT_OUTCOME_FAILED;
  agent_plugin_string_dup(&outcome.val.failed.message, "no answer");
  exports_agent_host_plugin_agent_decision_t decision = after_model(outcome);
  assert(decision.tag == EXPORTS_AGENT_HOST_PLUGIN_AGENT_DECISION_FAIL);
  assert(is(decision.val.fail, "the model could not be asked: no answer"));
}

int main(void) {
  the_model_is_asked_for_one_sentence_and_told_what_the_operator_says();
  an_answer_ends_the_turn();
  calls_of_the_model_are_carried_out();
  a_model_that_cannot_be_asked_fails_the_turn_with_the_reason();
  puts("4 tests passed");
  return 0;
}
