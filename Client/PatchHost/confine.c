// What a process can give up differs between systems; everything else is in host.c.
#define _GNU_SOURCE
#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static bool set_limit(int resource, rlim_t value) {
  struct rlimit limit = {value, value};
  return setrlimit(resource, &limit) == 0;
}

// MARK: Ends

bool is_trial;
// The author's standard error. Descriptor 2 is none: the engine writes there, too.
static int errors = -1;

_Noreturn void finish(int code, const char *reason) {
  if (is_trial) {
    char line[256];
    int count = snprintf(line, sizeof line, "ferry-patch: %s\n", reason);
    // Without a reader, the exit code alone has to do.
    if (count > 0 && write(errors, line, (size_t)count) < 0) _exit(code);
  }
  _exit(code);
}

// MARK: The watcher

typedef struct {
  uint64_t memory_bytes;
  uint64_t end_nanoseconds;
} bounds;

static uint64_t now_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t resident_bytes(void);

static void *watch(void *context) {
  const bounds *limits = context;
  const struct timespec pause = {0, 2000000};
  for (;;) {
    if (resident_bytes() > limits->memory_bytes) {
      finish(exit_memory, "the script used more memory than a patch may have");
    }
    if (now_nanoseconds() > limits->end_nanoseconds) {
      finish(exit_time, "the script did not end in time");
    }
    nanosleep(&pause, NULL);
  }
  return NULL;
}

bool start_watcher(uint64_t memory_bytes, uint64_t time_milliseconds, const char **reason) {
  static bounds limits;
  limits.memory_bytes = memory_bytes;
  limits.end_nanoseconds = now_nanoseconds() + time_milliseconds * 1000000u;
  pthread_t thread;
  if (pthread_create(&thread, NULL, watch, &limits) == 0) return true;
  *reason = "no thread can be started";
  return false;
}

// MARK: Systems

// What the watcher reads, on systems with such a file.
static int memory_file = -1;

static void keep_errors(void) {
  if (is_trial) errors = dup2(2, 3);
}

// Descriptor 2 stays taken, so that no later one gets its number.
static bool take_errors(const char **reason) {
  if (open("/dev/null", O_RDWR) == 2) return true;
  *reason = "/dev/null cannot be opened";
  return false;
}

#ifdef __linux__

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static uint64_t resident_bytes(void) {
  char text[128];
  ssize_t count = pread(memory_file, text, sizeof text - 1, 0);
  if (count <= 0) _exit(exit_not_confined);
  text[count] = 0;
  char *rest = text;
  strtoull(rest, &rest, 10);
  return strtoull(rest, NULL, 10) * 4096u;
}

static bool close_descriptors(void) {
  keep_errors();
  if (errors < 0) return syscall(SYS_close_range, 2u, ~0u, 0u) == 0;
  return syscall(SYS_close_range, 4u, ~0u, 0u) == 0 && close(2) == 0;
}

bool limit_resources(uint64_t time_milliseconds, const char **reason) {
  clearenv();
  if (!close_descriptors()) {
    *reason = "inherited descriptors cannot be closed";
    return false;
  }
  if (!take_errors(reason)) return false;
  memory_file = open("/proc/self/statm", O_RDONLY);
  if (memory_file < 0) {
    *reason = "/proc/self/statm cannot be read";
    return false;
  }
  // The parent's end ends this process, too.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_DUMPABLE, 0);
  rlim_t seconds = (rlim_t)(time_milliseconds / 1000 + 2);
  // Memory has no limit here: the engine reserves far more of it than it uses.
  if (!set_limit(RLIMIT_CORE, 0) || !set_limit(RLIMIT_CPU, seconds)) {
    *reason = "resources cannot be limited";
    return false;
  }
  return true;
}

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the filter knows x86-64 and AArch64"
#endif

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, (value))
#define DENIED (SECCOMP_RET_ERRNO | EACCES)
// Permits a call by its number.
#define PERMIT(name) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (name), 0, 1), ANSWER(SECCOMP_RET_ALLOW)
// Permits a call whose argument has this value (low word; the high one is not used by the kernel
// for these arguments, which are ints).
#define PERMIT_WITH(name, index, value)                                                         \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (name), 0, 4), LOAD(args[index]),                        \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, 1), ANSWER(SECCOMP_RET_ALLOW), ANSWER(DENIED)

// Permits a call unless its argument has one of these bits.
#define PERMIT_WITHOUT(name, index, bits)                                                       \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (name), 0, 5), LOAD(args[index]),                        \
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (bits)),                                               \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1), ANSWER(SECCOMP_RET_ALLOW), ANSWER(DENIED)

bool confine(const char **reason) {
  const unsigned thread_flags = CLONE_VM | CLONE_THREAD | CLONE_SIGHAND;
  struct sock_filter rules[] = {
    LOAD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
    ANSWER(SECCOMP_RET_KILL_PROCESS),
    LOAD(nr),
    // The one conversation: bytes from the app, bytes to the app.
    PERMIT(SYS_read),
    PERMIT(SYS_write),
    PERMIT_WITH(SYS_pread64, 0, (unsigned)memory_file),
    // Memory, but none for new machine code. A mapping of a file needs a descriptor, and none can
    // be opened.
    PERMIT_WITHOUT(SYS_mmap, 2, PROT_EXEC),
    PERMIT_WITHOUT(SYS_mprotect, 2, PROT_EXEC),
    PERMIT(SYS_munmap),
    PERMIT(SYS_mremap),
    PERMIT(SYS_madvise),
    PERMIT(SYS_brk),
    // Threads of this process: of the garbage collector.
    PERMIT(SYS_futex),
    PERMIT(SYS_set_robust_list),
    PERMIT(SYS_rseq),
    PERMIT(SYS_gettid),
    PERMIT(SYS_getpid),
    PERMIT(SYS_sched_yield),
    PERMIT(SYS_sched_getaffinity),
    PERMIT(SYS_sigaltstack),
    PERMIT(SYS_rt_sigaction),
    PERMIT(SYS_rt_sigprocmask),
    PERMIT(SYS_rt_sigreturn),
    PERMIT(SYS_restart_syscall),
    PERMIT(SYS_getrandom),
    PERMIT(SYS_clock_gettime),
    PERMIT(SYS_clock_nanosleep),
    PERMIT(SYS_nanosleep),
    PERMIT(SYS_exit),
    PERMIT(SYS_exit_group),
    PERMIT_WITH(SYS_prctl, 0, PR_SET_NAME),
    PERMIT_WITH(SYS_tgkill, 0, (unsigned)getpid()),
    // A new process has not all of these flags. The arguments of clone3 are out of sight: without
    // it, the C library starts threads by clone.
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
    ANSWER(SECCOMP_RET_ERRNO | ENOSYS),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 5),
    LOAD(args[0]),
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, thread_flags),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, thread_flags, 0, 1),
    ANSWER(SECCOMP_RET_ALLOW),
    ANSWER(DENIED),
    ANSWER(DENIED),
  };
  struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
      || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
    *reason = "this system has no seccomp filter";
    return false;
  }
  return true;
}

#elif defined(__APPLE__)

#include <mach/mach.h>
#include <sandbox.h>

static uint64_t resident_bytes(void) {
  struct task_vm_info info;
  mach_msg_type_number_t count = TASK_VM_INFO_COUNT;
  if (task_info(mach_task_self(), TASK_VM_INFO, (task_info_t)&info, &count) != KERN_SUCCESS) {
    _exit(exit_not_confined);
  }
  return info.phys_footprint;
}

bool limit_resources(uint64_t time_milliseconds, const char **reason) {
  static char *nothing[] = {NULL};
  environ = nothing;
  keep_errors();
  for (int descriptor = getdtablesize() - 1; descriptor >= 2; descriptor--) {
    if (descriptor != errors) close(descriptor);
  }
  if (!take_errors(reason)) return false;
  rlim_t seconds = (rlim_t)(time_milliseconds / 1000 + 2);
  if (!set_limit(RLIMIT_CORE, 0) || !set_limit(RLIMIT_CPU, seconds)) {
    *reason = "resources cannot be limited";
    return false;
  }
  return true;
}

bool confine(const char **reason) {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
  char *error = NULL;
  // Neither files, network nor processes: only computing with open descriptors.
  if (sandbox_init(kSBXProfilePureComputation, SANDBOX_NAMED, &error) != 0) {
    *reason = "this system has no sandbox";
    return false;
  }
#pragma clang diagnostic pop
  return true;
}

#else
#error "ferry-patch knows Linux and macOS"
#endif

// MARK: The probe

static bool is_file_closed(const char *path, int flags) {
  int descriptor = open(path, flags, 0600);
  if (descriptor < 0) return true;
  close(descriptor);
  return false;
}

static bool is_network_closed(int family) {
  int descriptor = socket(family, SOCK_STREAM, 0);
  if (descriptor < 0) return true;
  close(descriptor);
  return false;
}

static bool is_fork_closed(void) {
  pid_t child = fork();
  if (child == 0) _exit(0);
  if (child < 0) return true;
  waitpid(child, NULL, 0);
  return false;
}

static bool is_machine_code_closed(void) {
#ifdef __APPLE__
  // The sandbox permits it; the engine's compiler is off.
  return true;
#else
  const int protection = PROT_READ | PROT_WRITE | PROT_EXEC;
  void *memory = mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED;
#endif
}

static bool is_program_closed(void) {
  // A call that succeeds does not return: it ends the probe with a failure and without a result.
  char *arguments[] = {"/bin/false", NULL};
  execve(arguments[0], arguments, environ);
  return true;
}

bool are_descriptors_closed(void) {
  for (int descriptor = 3; descriptor < 1024; descriptor++) {
    if (descriptor != memory_file && fcntl(descriptor, F_GETFD) >= 0) return false;
  }
  return true;
}

bool probe_walls(bool are_descriptors_closed) {
  bool walls[] = {
    is_file_closed("/etc/passwd", O_RDONLY), is_file_closed("/tmp/ferry-patch-probe", O_RDWR | O_CREAT),
    is_network_closed(AF_INET), is_network_closed(AF_UNIX), kill(getppid(), 0) != 0,
    is_fork_closed(), are_descriptors_closed, environ == NULL || environ[0] == NULL, is_machine_code_closed(),
    is_program_closed(),
  };
  const char *names[] = {
    "readFile", "writeFile", "internet", "localSocket", "signal", "fork", "descriptors", "environment", "machineCode",
    "program",
  };
  char text[512] = "{";
  bool all = true;
  for (size_t index = 0; index < sizeof walls / sizeof walls[0]; index++) {
    char member[48];
    snprintf(member, sizeof member, "%s\"%s\":%s", index ? "," : "", names[index],
             walls[index] ? "true" : "false");
    strncat(text, member, sizeof text - strlen(text) - 1);
    all = all && walls[index];
  }
  strncat(text, "}\n", sizeof text - strlen(text) - 1);
  return write(1, text, strlen(text)) == (ssize_t)strlen(text) && all;
}
