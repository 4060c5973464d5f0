#pragma once
#include <sqlite3.h>
#if defined(__linux__)
#include <malloc.h>
#endif

// SQLITE_TRANSIENT and SQLITE_STATIC are casts that Swift does not import.
static inline int ferry_bind_text(sqlite3_stmt *s, int i, const char *t, sqlite3_uint64 n) {
  return sqlite3_bind_text64(s, i, t, n, SQLITE_TRANSIENT, SQLITE_UTF8);
}
static inline int ferry_bind_blob(sqlite3_stmt *s, int i, const void *b, sqlite3_uint64 n) {
  return n == 0 ? sqlite3_bind_zeroblob(s, i, 0)
                : sqlite3_bind_blob64(s, i, b, n, SQLITE_TRANSIENT);
}
// The bytes must live until the statement is reset.
static inline int ferry_bind_text_static(sqlite3_stmt *s, int i, const char *t, sqlite3_uint64 n) {
  return sqlite3_bind_text64(s, i, t, n, SQLITE_STATIC, SQLITE_UTF8);
}
// A nil pointer would return NULL instead of an empty text or blob.
static inline void ferry_result_text(sqlite3_context *c, const char *t, sqlite3_uint64 n) {
  sqlite3_result_text64(c, n == 0 ? "" : t, n, SQLITE_TRANSIENT, SQLITE_UTF8);
}
static inline void ferry_result_blob(sqlite3_context *c, const void *b, sqlite3_uint64 n) {
  if (n == 0) sqlite3_result_zeroblob(c, 0);
  else sqlite3_result_blob64(c, b, n, SQLITE_TRANSIENT);
}

// An open file of a VFS written in Swift: SQLite's part, then the object behind it.
typedef struct ferry_vfs_file {
  sqlite3_file base;
  void *object;
} ferry_vfs_file;
// Loads memory into the processor's cache that is about to be written.
static inline void ferry_prefetch(const void *start) { __builtin_prefetch(start, 1); }
static inline void ferry_zero(void *start, long n) { __builtin_memset(start, 0, (unsigned long)n); }
// Settings of the whole process, to be made before any other use of SQLite: no locks of
// its own (https://sqlite.org/threadsafe.html), no statistics of memory, and memory from elsewhere.
// Freed memory stays with the process, which needs as much again.
static inline int ferry_dedicate_process(const sqlite3_mem_methods *memory) {
#if defined(M_TRIM_THRESHOLD) && defined(M_MMAP_THRESHOLD)
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 1 << 25);
#endif
  int code = sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
  if (code == SQLITE_OK) code = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  return code != SQLITE_OK ? code : sqlite3_config(SQLITE_CONFIG_MALLOC, memory);
}
