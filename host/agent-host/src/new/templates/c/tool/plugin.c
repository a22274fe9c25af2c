/* A tool: counts the words of a text. */

#include "bindings/tool_plugin.h"
#include "json.h"

#include <ctype.h>
#include <stdio.h>

typedef exports_agent_host_plugin_tools_tool_definition_t definition_t;
typedef exports_agent_host_plugin_tools_part_t part_t;

static const char NAME[] = "{{snake}}";

/* Each call has a fresh instance, which is gone after it: what is allocated need not be freed. */
static void *new_array(size_t len, size_t size) {
  void *array = calloc(len, size);
  if (array == NULL) abort();
  return array;
}

void exports_agent_host_plugin_tools_describe(
    exports_agent_host_plugin_tools_list_tool_definition_t *ret) {
  definition_t *tool = new_array(1, sizeof *tool);
  tool_plugin_string_dup(&tool->name, NAME);
  tool_plugin_string_dup(&tool->description, "Counts the words of a text.");
  tool_plugin_string_dup(
      &tool->arguments,
      "{\"type\": \"object\","
      " \"properties\": {\"text\": {\"type\": \"string\", \"description\": \"The text.\"}},"
      " \"required\": [\"text\"], \"additionalProperties\": false}");
  /* The host checks every result against this. */
  tool->results.is_some = true;
  tool_plugin_string_dup(
      &tool->results.val,
      "{\"type\": \"object\","
      " \"properties\": {\"words\": {\"type\": \"integer\", \"minimum\": 0}},"
      " \"required\": [\"words\"]}");
  /* It changes nothing, so the host may run it again after a crash. */
  tool->effect = AGENT_HOST_PLUGIN_TYPES_EFFECT_CLASS_READ_ONLY;
  ret->ptr = tool;
  ret->len = 1;
}

static size_t words_of(const char *text, size_t len) {
  size_t words = 0;
  bool in_word = false;
  for (size_t i = 0; i < len; i++) {
    bool is_space = isspace((unsigned char)text[i]);
    words += !is_space && !in_word;
    in_word = !is_space;
  }
  return words;
}

/* Returns whether the call has succeeded. A host checks the arguments first and calls by names that
   `describe` returned. `plugin test` does neither: what does not fit is refused here, and any other
   name. */
bool exports_agent_host_plugin_tools_call(exports_agent_host_plugin_tools_call_context_t *context,
                                          tool_plugin_string_t *name,
                                          exports_agent_host_plugin_tools_json_t *arguments,
                                          exports_agent_host_plugin_tools_progress_t *ret,
                                          exports_agent_host_plugin_tools_tool_error_t *err) {
  (void)context;
  if (name->len != strlen(NAME) || memcmp(name->ptr, NAME, name->len) != 0) {
    err->tag = EXPORTS_AGENT_HOST_PLUGIN_TOOLS_TOOL_ERROR_NOT_FOUND;
    tool_plugin_string_dup(&err->val.not_found, "there is no tool of that name");
    return false;
  }
  json_text_t text;
  size_t words = 0;
  if (json_string((const char *)arguments->ptr, arguments->len, "text", &text)) {
    words = words_of(text.ptr, text.len);
  }
  if (words == 0) {
    err->tag = EXPORTS_AGENT_HOST_PLUGIN_TOOLS_TOOL_ERROR_INVALID_ARGUMENTS;
    tool_plugin_string_dup(&err->val.invalid_arguments, "`text` must have a word in it");
    return false;
  }
  char result[64];
  snprintf(result, sizeof result, "{\"words\":%zu}", words);
  part_t *part = new_array(1, sizeof *part);
  part->tag = AGENT_HOST_PLUGIN_TYPES_PART_TEXT;
  tool_plugin_string_dup(&part->val.text, result);
  ret->tag = EXPORTS_AGENT_HOST_PLUGIN_TOOLS_PROGRESS_DONE;
  ret->val.done.ptr = part;
  ret->val.done.len = 1;
  return true;
}
