#pragma once
#include <sqlite3.h>
// With this, sqlite3ext.h declares the host's table of functions and redefines no function.
#ifndef SQLITE_CORE
#define SQLITE_CORE 1
#endif
#include <sqlite3ext.h>
#include <dlfcn.h>
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

// Returns a setting of a connection, 0 or 1; sqlite3_db_config has any number of arguments, which
// Swift does not import.
static inline int ferry_setting(sqlite3 *connection, int setting) {
  int value = 0;
  return sqlite3_db_config(connection, setting, -1, &value) == SQLITE_OK ? value : 0;
}
// Whether a host's table of functions (https://sqlite.org/loadext.html) has the functions that this
// code calls: two copies of SQLite in one process do not understand each other's connections.
static inline int ferry_is_own_sqlite(const void *routines) {
  const sqlite3_api_routines *host = (const sqlite3_api_routines *)routines;
  return host->prepare_v2 == sqlite3_prepare_v2 && host->step == sqlite3_step;
}
// Returns a copy of a text that the host frees.
static inline char *ferry_host_text(const void *routines, const char *text) {
  return ((const sqlite3_api_routines *)routines)->mprintf("%s", text);
}

// The hook that sees each row before it changes (https://sqlite.org/c3ref/preupdate_blobwrite.html).
// Only some builds of SQLite have it, and the header declares it only if it is asked to. Apple's has
// no declaration of it at all.
#if defined(__ELF__)
extern void *sqlite3_preupdate_hook(
    sqlite3 *, void (*)(void *, sqlite3 *, int, const char *, const char *, sqlite3_int64, sqlite3_int64),
    void *) __attribute__((weak));
extern int sqlite3_preupdate_old(sqlite3 *, int, sqlite3_value **) __attribute__((weak));
extern int sqlite3_preupdate_new(sqlite3 *, int, sqlite3_value **) __attribute__((weak));
extern int sqlite3_preupdate_count(sqlite3 *) __attribute__((weak));
#endif

// Sets the hook. Returns 0 if this SQLite has none.
static inline int ferry_row_hook(
    sqlite3 *connection,
    void (*hook)(void *, sqlite3 *, int, const char *, const char *, sqlite3_int64, sqlite3_int64),
    void *object) {
#if defined(__ELF__)
  if (sqlite3_preupdate_hook && sqlite3_preupdate_old && sqlite3_preupdate_new
      && sqlite3_preupdate_count) {
    sqlite3_preupdate_hook(connection, hook, object);
    return 1;
  }
#endif
  return 0;
}
// Within the hook: returns the number of the row's columns.
static inline int ferry_row_count(sqlite3 *connection) {
#if defined(__ELF__)
  return sqlite3_preupdate_count(connection);
#else
  return 0;
#endif
}
// Within the hook: returns a value of the row before (0) or after the change; NULL if SQLite fails.
static inline sqlite3_value *ferry_row_value(sqlite3 *connection, int column, int after) {
  sqlite3_value *value = 0;
#if defined(__ELF__)
  int code = after ? sqlite3_preupdate_new(connection, column, &value)
                   : sqlite3_preupdate_old(connection, column, &value);
  if (code != SQLITE_OK) return 0;
#endif
  return value;
}

#if defined(__linux__)
// dladdr(3), which the system's header declares only for GNU sources.
struct ferry_library {
  const char *path;
  void *start;
  const char *symbol;
  void *address;
};
extern int ferry_library_of(const void *address, struct ferry_library *library) __asm__("dladdr");
#endif
// Keeps the library that contains this code loaded until the process ends.
static inline void ferry_keep_in_memory(void) {
#if defined(__linux__)
  struct ferry_library library;
  if (ferry_library_of((const void *)ferry_keep_in_memory, &library) == 0) return;
  dlopen(library.path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
#else
  Dl_info library;
  if (dladdr((const void *)ferry_keep_in_memory, &library) == 0) return;
  dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
#endif
}

// A virtual table written in Swift: SQLite's part, then the object behind it.
typedef struct ferry_virtual_table {
  sqlite3_vtab base;
  void *object;
} ferry_virtual_table;

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
