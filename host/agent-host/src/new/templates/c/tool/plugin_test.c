/* Tests of plugin.c on this machine. They play the host: what it offers is written here. */

#undef NDEBUG
#include "bindings/tool_plugin.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tool_plugin_string_dup(tool_plugin_string_t *ret, const char *s) {
  ret->len = strlen(s);
  ret->ptr = malloc(ret->len + 1);
  memcpy(ret->ptr, s, ret->len + 1);
}

static exports_agent_host_plugin_tools_progress_t progress;
static exports_agent_host_plugin_tools_tool_error_t error;

static bool call_of(const char *tool, const char *json) {
  exports_agent_host_plugin_tools_call_context_t context = {0};
  tool_plugin_string_t name;
  tool_plugin_string_t arguments;
  tool_plugin_string_dup(&name, tool);
  tool_plugin_string_dup(&arguments, json);
  return exports_agent_host_plugin_tools_call(&context, &name, &arguments, &progress, &error);
}

static bool call(const char *json) {
  return call_of("{{snake}}", json);
}

static bool is(tool_plugin_string_t text, const char *expected) {
  return text.len == strlen(expected) && memcmp(text.ptr, expected, text.len) == 0;
}

static void words_are_counted(void) {
  assert(call("{\"other\": {\"text\": 1}, \"text\": \"two  w\\u00f6rds\\n\"}"));
  assert(progress.val.done.len == 1);
  assert(is(progress.val.done.ptr[0].val.text, "{\"words\":2}"));
  assert(call("{\"text\":\"\\\"quoted\\\" \\\\ \\ud83d\\udc0c\"}"));
  assert(is(progress.val.done.ptr[0].val.text, "{\"words\":3}"));
}

static void a_text_without_words_is_refused_with_the_field_and_the_fix(void) {
  const char *misfits[] = {"{\"text\": \" \"}", "{\"text\": 1}", "{}"};
  for (size_t i = 0; i < sizeof misfits / sizeof *misfits; i++) {
    assert(!call(misfits[i]));
    assert(error.tag == EXPORTS_AGENT_HOST_PLUGIN_TOOLS_TOOL_ERROR_INVALID_ARGUMENTS);
    assert(is(error.val.invalid_arguments, "`text` must have a word in it"));
  }
}

static void another_tool_is_not_found(void) {
  assert(!call_of("no_such_tool", "{\"text\": \"words\"}"));
  assert(error.tag == EXPORTS_AGENT_HOST_PLUGIN_TOOLS_TOOL_ERROR_NOT_FOUND);
  assert(is(error.val.not_found, "there is no tool of that name"));
}

static void the_tool_describes_itself(void) {
  exports_agent_host_plugin_tools_list_tool_definition_t tools;
  exports_agent_host_plugin_tools_describe(&tools);
  assert(tools.len == 1);
  assert(is(tools.ptr[0].name, "{{snake}}"));
}

int main(void) {
  words_are_counted();
  a_text_without_words_is_refused_with_the_field_and_the_fix();
  another_tool_is_not_found();
  the_tool_describes_itself();
  puts("4 tests passed");
  return 0;
}
