// ferry-patch: runs one call of one patch, confined, and ends (SPEC.md §34).
//
//   ferry-patch run MEMORY-BYTES TIME-MILLISECONDS
//   ferry-patch try SCRIPT-FILE [INPUT]
//   ferry-patch probe
//
// `run` reads lines of JSON from descriptor 0 and writes lines of JSON to descriptor 1:
//
//   in   "the script"                       once
//   in   the input                          once
//   out  {"call":1,"service":"…","arguments":…}   any number of times
//   in   [1,true,the answer]  or  [1,false,"why not"]
//   out  {"result":…}  or  {"thrown":"…"}   once, and the end
//
// `try` does the same with a script from a file, for its author, who types the answers. It states the
// reason on descriptor 2 if it ends without a result.
//
// The script decides nothing about a line but its value: this file writes the members.
#include <JavaScriptCore/JavaScript.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "confine.h"

static const char no_memory[] = "there is no memory for the script";

// MARK: Lines

typedef struct {
  char *bytes;
  size_t count, capacity;
} buffer;

static void append(buffer *target, const char *bytes, size_t count) {
  if (target->capacity - target->count < count) {
    target->capacity = (target->capacity + count) * 2;
    target->bytes = realloc(target->bytes, target->capacity);
    if (!target->bytes) finish(exit_memory, no_memory);
  }
  memcpy(target->bytes + target->count, bytes, count);
  target->count += count;
}

static void append_text(buffer *target, const char *text) { append(target, text, strlen(text)); }

static void append_string(buffer *target, JSStringRef text) {
  size_t room = JSStringGetMaximumUTF8CStringSize(text);
  char *bytes = malloc(room);
  if (!bytes) finish(exit_memory, no_memory);
  size_t count = JSStringGetUTF8CString(text, bytes, room);
  append(target, bytes, count ? count - 1 : 0);
  free(bytes);
}

// The bytes that a script may write in a trial, as in an app by default.
static const size_t output_max = (size_t)1 << 20;
static size_t written;

static void send_line(buffer *line) {
  append_text(line, "\n");
  written += line->count;
  if (is_trial && written > output_max) {
    finish(exit_output, "the script wrote more than 1 MiB: its result and all arguments of calls");
  }
  size_t sent = 0;
  while (sent < line->count) {
    ssize_t count = write(1, line->bytes + sent, line->count - sent);
    if (count < 0 && errno == EINTR) continue;
    // Without the app there is nobody to work for.
    if (count <= 0) finish(exit_protocol, "the output was closed before the script returned");
    sent += (size_t)count;
  }
  free(line->bytes);
}

static buffer received;
static size_t consumed;

// Returns the next line without its end; the app's end ends this process.
static JSStringRef receive_line(void) {
  size_t searched = consumed;
  for (;;) {
    char *end = received.count > searched
      ? memchr(received.bytes + searched, '\n', received.count - searched) : NULL;
    if (end) {
      *end = 0;
      JSStringRef line = JSStringCreateWithUTF8CString(received.bytes + consumed);
      consumed = (size_t)(end - received.bytes) + 1;
      return line;
    }
    searched = received.count;
    char bytes[65536];
    ssize_t count = read(0, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) finish(exit_protocol, "the input ended while the script waited for an answer");
    append(&received, bytes, (size_t)count);
  }
}

static JSValueRef receive_value(JSContextRef context) {
  JSStringRef line = receive_line();
  JSValueRef value = JSValueMakeFromJSONString(context, line);
  JSStringRelease(line);
  if (!value) finish(exit_protocol, "a line of the input is not JSON");
  return value;
}

// MARK: Answers

// The script has settled; nothing that it does later counts.
static bool is_settled;
static bool has_thrown;

static void send_result(JSContextRef context, JSValueRef value, JSValueRef *exception) {
  JSStringRef json = JSValueCreateJSONString(context, value, 0, exception);
  if (*exception) return;
  buffer line = {0};
  append_text(&line, "{\"result\":");
  if (json) {
    append_string(&line, json);
    JSStringRelease(json);
  } else {
    append_text(&line, "null");
  }
  append_text(&line, "}");
  send_line(&line);
  is_settled = true;
}

static void append_quoted(buffer *line, JSContextRef context, JSStringRef text) {
  JSValueRef exception = NULL;
  JSStringRef json = JSValueCreateJSONString(context, JSValueMakeString(context, text), 0, &exception);
  if (json) {
    append_string(line, json);
    JSStringRelease(json);
  } else {
    append_text(line, "\"\"");
  }
}

static void send_thrown(JSContextRef context, JSValueRef error) {
  JSValueRef exception = NULL;
  JSStringRef text = JSValueToStringCopy(context, error, &exception);
  if (!text) text = JSStringCreateWithUTF8CString("an error without a text");
  // A longer text is of no use to a reader.
  if (JSStringGetLength(text) > 2000) {
    JSStringRef start = JSStringCreateWithCharacters(JSStringGetCharactersPtr(text), 2000);
    JSStringRelease(text);
    text = start;
  }
  buffer line = {0};
  append_text(&line, "{\"thrown\":");
  append_quoted(&line, context, text);
  append_text(&line, "}");
  send_line(&line);
  JSStringRelease(text);
  is_settled = has_thrown = true;
}

// MARK: Services

typedef struct call {
  struct call *next;
  unsigned number;
  JSObjectRef resolve, reject;
} call;

static call *waiting;
static unsigned last_number;

static JSValueRef error_value(JSContextRef context, const char *text) {
  JSStringRef string = JSStringCreateWithUTF8CString(text);
  JSValueRef argument = JSValueMakeString(context, string);
  JSStringRelease(string);
  return JSObjectMakeError(context, 1, &argument, NULL);
}

// `call(name, arguments)` of a script: a promise of the service's answer.
static JSValueRef call_service(JSContextRef context, JSObjectRef function, JSObjectRef this,
                               size_t count, const JSValueRef values[], JSValueRef *exception) {
  (void)function;
  (void)this;
  if (count == 0 || !JSValueIsString(context, values[0])) {
    *exception = error_value(context, "call(name, arguments) needs the name of a service");
    return NULL;
  }
  JSStringRef arguments = NULL;
  if (count > 1) {
    arguments = JSValueCreateJSONString(context, values[1], 0, exception);
    if (*exception) return NULL;
  }
  JSStringRef name = JSValueToStringCopy(context, values[0], exception);
  if (!name) return NULL;
  call *made = calloc(1, sizeof *made);
  if (!made) finish(exit_memory, no_memory);
  JSObjectRef promise =
    JSObjectMakeDeferredPromise(context, &made->resolve, &made->reject, exception);
  if (!promise) return NULL;
  JSValueProtect(context, made->resolve);
  JSValueProtect(context, made->reject);
  made->number = ++last_number;
  made->next = waiting;
  waiting = made;
  buffer line = {0};
  char head[48];
  snprintf(head, sizeof head, "{\"call\":%u,\"service\":", made->number);
  append_text(&line, head);
  append_quoted(&line, context, name);
  append_text(&line, ",\"arguments\":");
  if (arguments) append_string(&line, arguments);
  else append_text(&line, "null");
  append_text(&line, "}");
  send_line(&line);
  JSStringRelease(name);
  if (arguments) JSStringRelease(arguments);
  return promise;
}

static const char no_answer[] =
  "an answer is [NUMBER, true, VALUE] or [NUMBER, false, \"REASON\"], with the number of a call that waits";

// Gives one answer of the app to the call that waits for it.
static void deliver_answer(JSContextRef context) {
  JSValueRef answer = receive_value(context);
  if (!JSValueIsObject(context, answer)) finish(exit_protocol, no_answer);
  JSObjectRef parts = (JSObjectRef)answer;
  JSValueProtect(context, parts);
  unsigned number =
    (unsigned)JSValueToNumber(context, JSObjectGetPropertyAtIndex(context, parts, 0, NULL), NULL);
  bool succeeded = JSValueToBoolean(context, JSObjectGetPropertyAtIndex(context, parts, 1, NULL));
  JSValueRef value = JSObjectGetPropertyAtIndex(context, parts, 2, NULL);
  call **place = &waiting;
  while (*place && (*place)->number != number) place = &(*place)->next;
  call *found = *place;
  if (!found) finish(exit_protocol, no_answer);
  *place = found->next;
  JSValueRef exception = NULL;
  if (!succeeded) {
    JSValueRef reason = value;
    value = JSObjectMakeError(context, 1, &reason, NULL);
  }
  // The script's continuations run before this returns.
  JSObjectCallAsFunction(
    context, succeeded ? found->resolve : found->reject, NULL, 1, &value, &exception);
  JSValueUnprotect(context, found->resolve);
  JSValueUnprotect(context, found->reject);
  JSValueUnprotect(context, parts);
  free(found);
}

// MARK: One call

static JSValueRef script_done(JSContextRef context, JSObjectRef function, JSObjectRef this,
                              size_t count, const JSValueRef values[], JSValueRef *exception) {
  (void)function;
  (void)this;
  if (!is_settled) {
    send_result(context, count ? values[0] : JSValueMakeUndefined(context), exception);
  }
  return JSValueMakeUndefined(context);
}

static JSValueRef script_failed(JSContextRef context, JSObjectRef function, JSObjectRef this,
                                size_t count, const JSValueRef values[], JSValueRef *exception) {
  (void)function;
  (void)this;
  (void)exception;
  if (!is_settled) send_thrown(context, count ? values[0] : JSValueMakeUndefined(context));
  return JSValueMakeUndefined(context);
}

static JSValueRef evaluate(JSContextRef context, const char *text, JSValueRef *exception) {
  JSStringRef script = JSStringCreateWithUTF8CString(text);
  JSValueRef value = JSEvaluateScript(context, script, NULL, NULL, 1, exception);
  JSStringRelease(script);
  return value;
}

static JSObjectRef native(JSContextRef context, JSObjectCallAsFunctionCallback body) {
  return JSObjectMakeFunctionWithCallback(context, NULL, body);
}

// The script and its input: both from the app, or from an author's command line.
// The engine starts only after all limits, so these are not its strings yet.
static const char *given_script;
static const char *given_input;

static void run_script(JSGlobalContextRef context) {
  JSValueRef exception = NULL;
  // Made before the script runs: it cannot replace a part of it.
  JSValueRef runner = evaluate(
    context,
    "(async (patch, input, call, done, failed) => {"
    " try { done(await patch(input, call)) } catch (error) { failed(error) } })", &exception);
  if (!runner || !JSValueIsObject(context, runner)) {
    finish(exit_protocol, "the engine does not work");
  }
  JSValueProtect(context, runner);
  JSStringRef text = given_script
    ? JSStringCreateWithUTF8CString(given_script)
    : JSValueToStringCopy(context, receive_value(context), &exception);
  if (!text) finish(exit_protocol, "the script is no text");
  JSValueRef input = given_input
    ? JSValueMakeFromJSONString(context, JSStringCreateWithUTF8CString(given_input))
    : receive_value(context);
  if (!input) return send_thrown(context, error_value(context, "the input is not JSON"));
  JSValueProtect(context, input);
  JSStringRef name = JSStringCreateWithUTF8CString("patch.js");
  JSEvaluateScript(context, text, NULL, name, 1, &exception);
  if (exception) return send_thrown(context, exception);
  JSValueRef patch = evaluate(context, "patch", &exception);
  if (exception) return send_thrown(context, exception);
  if (!JSValueIsObject(context, patch) || !JSObjectIsFunction(context, (JSObjectRef)patch)) {
    return send_thrown(context, error_value(context, "the script has no function `patch`"));
  }
  JSValueRef arguments[] = {
    patch, input, native(context, call_service), native(context, script_done),
    native(context, script_failed),
  };
  JSObjectCallAsFunction(context, (JSObjectRef)runner, NULL, 5, arguments, &exception);
  if (exception && !is_settled) return send_thrown(context, exception);
  while (!is_settled && waiting) deliver_answer(context);
  if (!is_settled) {
    send_thrown(context, error_value(context, "the patch waits for nothing and never returns"));
  }
}

// No compiler of machine code and no WebAssembly: fewer ways out, and a quicker start. The engine
// reads these options when it starts.
static JSGlobalContextRef make_context(void) {
  static const char *options[][2] = {
    {"JSC_useJIT", "0"}, {"JSC_useWasm", "0"}, {"JSC_useWebAssembly", "0"},
    {"JSC_useConcurrentGC", "0"}, {"JSC_numberOfGCMarkers", "1"},
  };
  const size_t count = sizeof options / sizeof options[0];
  for (size_t index = 0; index < count; index++) setenv(options[index][0], options[index][1], 1);
  JSGlobalContextRef context = JSGlobalContextCreate(NULL);
  for (size_t index = 0; index < count; index++) unsetenv(options[index][0]);
  return context;
}

static int usage(void) {
  static const char text[] =
    "ferry-patch runs a patch for an app that Ferry's library started it for.\n"
    "  ferry-patch run MEMORY-BYTES TIME-MILLISECONDS   one call, as lines of JSON\n"
    "  ferry-patch try SCRIPT-FILE [INPUT]   one call, for the script's author; INPUT is JSON\n"
    "  ferry-patch probe   tries to break out, and prints which walls hold\n";
  return write(2, text, sizeof text - 1) < 0 ? exit_protocol : exit_usage;
}

// Reads an author's script before this process gives up files.
static bool read_script(const char *path) {
  FILE *file = fopen(path, "r");
  buffer text = {0};
  char part[4096];
  size_t count;
  while (file && (count = fread(part, 1, sizeof part, file)) > 0) append(&text, part, count);
  if (!file || ferror(file)) {
    perror(path);
    return false;
  }
  fclose(file);
  append(&text, "", 1);
  given_script = text.bytes;
  return true;
}

static int not_confined(const char *reason) {
  buffer line = {0};
  append_text(&line, "{\"refused\":\"");
  append_text(&line, reason);
  append_text(&line, "\"}");
  send_line(&line);
  return exit_not_confined;
}

int main(int count, char **arguments) {
  uint64_t memory = (uint64_t)256 << 20, time = 10000;
  bool is_probe = count == 2 && strcmp(arguments[1], "probe") == 0;
  if (count == 4 && strcmp(arguments[1], "run") == 0) {
    memory = strtoull(arguments[2], NULL, 10);
    time = strtoull(arguments[3], NULL, 10);
    if (memory == 0 || time == 0) return usage();
  } else if ((count == 3 || count == 4) && strcmp(arguments[1], "try") == 0) {
    // Time to type answers of services; the memory of an app's patches by default.
    memory = (uint64_t)96 << 20;
    time = 60000;
    is_trial = true;
    if (!read_script(arguments[2])) return exit_usage;
    given_input = count == 4 ? arguments[3] : "null";
  } else if (!is_probe) {
    return usage();
  }
  const char *reason = "";
  if (!limit_resources(time, &reason)) return not_confined(reason);
  bool is_alone = is_probe && are_descriptors_closed();
  JSGlobalContextRef context = make_context();
  if (!start_watcher(memory, time, &reason) || !confine(&reason)) return not_confined(reason);
  if (is_probe) return probe_walls(is_alone) ? exit_done : exit_not_confined;
  run_script(context);
  if (is_trial) _exit(has_thrown ? 1 : exit_done);
  // The context is not released: the process ends faster than its memory could be freed.
  _exit(exit_done);
}
