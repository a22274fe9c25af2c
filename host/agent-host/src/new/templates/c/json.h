/* A member of a JSON object as text. What the host hands over is well-formed: it has parsed it. */

#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A text with its length: JSON can have NUL in it. */
typedef struct {
  char *ptr;
  size_t len;
} json_text_t;

static inline const char *json_after_string(const char *at, const char *end) {
  for (at++; at < end && *at != '"'; at++) {
    if (*at == '\\') at++;
  }
  return at < end ? at + 1 : end;
}

static inline const char *json_after_space(const char *at, const char *end) {
  while (at < end && strchr(" \t\r\n", *at) != NULL && *at != '\0') at++;
  return at;
}

/* The four hexadecimal digits of an escape. */
static inline uint32_t json_unit(const char *at, const char *end) {
  char digits[5] = {0};
  for (size_t i = 0; i < 4 && at + i < end; i++) digits[i] = at[i];
  return (uint32_t)strtoul(digits, NULL, 16);
}

/* Writes a character as UTF-8, and returns how many bytes that took. */
static inline size_t json_utf8(uint32_t c, char *to) {
  if (c < 0x80) return to[0] = (char)c, 1;
  size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
  to[0] = (char)(first[more] | c >> 6 * more);
  for (size_t i = 1; i <= more; i++) to[i] = (char)(0x80 | (c >> 6 * (more - i) & 0x3f));
  return more + 1;
}

/* The text of a string that begins with its quotation mark. The caller frees it. */
static inline json_text_t json_decoded(const char *at, const char *end) {
  const char *close = json_after_string(at, end);
  json_text_t text = {malloc((size_t)(close - at)), 0};
  if (text.ptr == NULL) abort();
  for (at++; at < close && *at != '"'; at++) {
    if (*at != '\\') {
      text.ptr[text.len++] = *at;
      continue;
    }
    at++;
    if (*at != 'u') {
      const char *escape = strchr("b\bf\fn\nr\rt\t", *at);
      text.ptr[text.len++] = escape != NULL ? escape[1] : *at;
      continue;
    }
    uint32_t c = json_unit(at + 1, end);
    at += 4;
    if (c >= 0xd800 && c < 0xdc00 && at + 2 < end && at[1] == '\\' && at[2] == 'u') {
      c = 0x10000 + ((c - 0xd800) << 10) + (json_unit(at + 3, end) - 0xdc00);
      at += 6;
    }
    text.len += json_utf8(c, text.ptr + text.len);
  }
  return text;
}

/* Finds a member of an object by its name, and returns whether it is there and a string. */
static inline bool json_string(const char *json, size_t len, const char *name, json_text_t *text) {
  const char *end = json + len;
  int depth = 0;
  for (const char *at = json; at < end;) {
    if (*at != '"') {
      depth += *at == '{' || *at == '[' ? 1 : *at == '}' || *at == ']' ? -1 : 0;
      at++;
      continue;
    }
    const char *key = at + 1;
    at = json_after_string(at, end);
    size_t key_len = (size_t)(at - 1 - key);
    const char *colon = json_after_space(at, end);
    bool is_name = depth == 1 && colon < end && *colon == ':' && key_len == strlen(name) &&
                   memcmp(key, name, key_len) == 0;
    if (!is_name) continue;
    const char *value = json_after_space(colon + 1, end);
    if (value >= end || *value != '"') return false;
    *text = json_decoded(value, end);
    return true;
  }
  return false;
}

#endif
