#pragma once
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

// Swift cannot call variadic functions, nor name the C library's streams: one wrapper for each use.
// Each function that sets returns 0, or -1 if libedit rejects it (editline(3)).

// Reads and measures characters as UTF-8, also if the user's locale has another encoding.
static inline void ferry_el_use_utf8(void) {
  setlocale(LC_CTYPE, "");
  if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0) setlocale(LC_CTYPE, "C.UTF-8");
}
static inline EditLine *ferry_el_open(const char *program) {
  return el_init(program, stdin, stdout, stderr);
}
static inline int ferry_el_set_client_data(EditLine *editor, void *data) {
  return el_set(editor, EL_CLIENTDATA, data);
}
static inline void *ferry_el_client_data(EditLine *editor) {
  void *data = NULL;
  el_get(editor, EL_CLIENTDATA, &data);
  return data;
}
static inline int ferry_el_set_prompt(EditLine *editor, char *(*prompt)(EditLine *)) {
  return el_set(editor, EL_PROMPT, prompt);
}
static inline int ferry_el_set_reader(EditLine *editor, int (*read)(EditLine *, wchar_t *)) {
  return el_set(editor, EL_GETCFN, read);
}
static inline int ferry_el_set_history(EditLine *editor, History *history_of_lines) {
  return el_set(editor, EL_HIST, history, history_of_lines);
}
static inline int ferry_el_set_editor(EditLine *editor, const char *name) {
  return el_set(editor, EL_EDITOR, name);
}
static inline int ferry_el_add_function(EditLine *editor, const char *name, const char *help,
                                        unsigned char (*function)(EditLine *, int)) {
  return el_set(editor, EL_ADDFN, name, help, function);
}
static inline int ferry_el_bind(EditLine *editor, const char *key, const char *function) {
  return el_set(editor, EL_BIND, key, function, NULL);
}
// While a line is edited, the terminal makes characters and no signals of its keys.
static inline int ferry_el_disable_signals(EditLine *editor) {
  return el_set(editor, EL_SETTY, "-d", "-isig", NULL);
}
// Ends the line that the user has cancelled.
static inline void ferry_el_end_cancelled_line(void) {
  fputs("^C\n", stdout);
  fflush(stdout);
}
static inline int ferry_history_set_size(History *history_of_lines, int entries) {
  HistEvent event;
  return history(history_of_lines, &event, H_SETSIZE, entries);
}
static inline int ferry_history_enter(History *history_of_lines, const char *line) {
  HistEvent event;
  return history(history_of_lines, &event, H_ENTER, line);
}
