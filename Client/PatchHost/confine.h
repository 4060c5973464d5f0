// The walls around a patch: what this process gives up before it reads a script.
#ifndef FERRY_PATCH_CONFINE_H
#define FERRY_PATCH_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

// Exit codes, as the app reads them (SPEC.md §34).
enum {
  exit_done = 0,
  exit_usage = 2,
  exit_memory = 3,
  exit_time = 4,
  exit_not_confined = 5,
  exit_protocol = 6,
  // Only of a trial: an app counts what a script writes by itself.
  exit_output = 7,
};

// Whether an author tries a script, and reads the reason of an end where errors go. An app reads the
// exit code.
extern bool is_trial;

// Ends this process; in a trial, with a line that states the reason.
_Noreturn void finish(int code, const char *reason);

// Closes all descriptors but 0 and 1, empties the environment, and limits what the kernel counts. A
// trial keeps the place of errors as descriptor 3. Opens what the watcher reads later. Returns false,
// with a reason, when a wall is missing.
bool limit_resources(uint64_t time_milliseconds, const char **reason);

// Starts the thread that ends this process when its memory or its time is used up.
bool start_watcher(uint64_t memory_bytes, uint64_t time_milliseconds, const char **reason);

// Gives up every system call that opens, connects, starts or looks at anything. There is no way
// back, and threads that start later are confined, too.
bool confine(const char **reason);

// Tries what a script with a hole in the engine would try. Prints one JSON object whose members are
// true where the attempt failed, and returns whether all of them did.
bool probe_walls(bool are_descriptors_closed);

// Returns whether no inherited descriptor is left. The engine opens some of its own later.
bool are_descriptors_closed(void);

#endif
