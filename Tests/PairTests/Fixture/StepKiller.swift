import FerryTestSupport
import Foundation

/// Kills programs at an observed step: before their n-th system call that writes, names, removes or
/// synchronises a file. A library loaded before the C library counts the calls.
final class StepKiller: Sendable {
  private let directory: TemporaryDirectory

  /// Builds the library.
  init() async throws {
    // LD_PRELOAD is a list, in which blanks and colons separate the libraries (ld.so(8)).
    let isPlain = !NSTemporaryDirectory().contains { " :".contains($0) }
    directory = try TemporaryDirectory(
      prefix: "ferry-steps", in: isPlain ? nil : URL(filePath: "/tmp"))
    try Data(Self.source.utf8).write(to: directory.file("steps.c"))
    let built = try await ChildProcess.run(
      URL(filePath: "/usr/bin/env"),
      [
        "cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", "steps.so", "steps.c",
        "-ldl",
      ], directory: directory.url)
    guard built.status == .exited(0) else {
      throw TestSupportError("the library was not built: \(built.error)")
    }
  }

  /// Runs a program to the end, or kills it before the step with this number, counted from 1.
  func run(
    _ program: URL, _ arguments: [String], directory folder: URL? = nil, killedAt step: Int
  ) async throws -> ChildProcess.Finished {
    try await ChildProcess.run(
      program, arguments,
      environment: [
        "LD_PRELOAD": directory.file("steps.so").path,
        "FERRY_TEST_KILL": program.lastPathComponent, "FERRY_TEST_KILL_AT": "\(step)",
      ], directory: folder)
  }

  private static let source = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <errno.h>
    #include <fcntl.h>
    #include <signal.h>
    #include <stdatomic.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/stat.h>
    #include <unistd.h>

    static int limit;
    static atomic_int steps;

    // Programs that only start the wanted one are not counted.
    __attribute__((constructor)) static void begin(void) {
      const char *number = getenv("FERRY_TEST_KILL_AT"), *program = getenv("FERRY_TEST_KILL");
      if (number && program && !strcmp(program_invocation_short_name, program)) {
        limit = atoi(number);
      }
    }

    static void step(void) {
      if (limit == 0 || atomic_fetch_add(&steps, 1) + 1 != limit) return;
      kill(getpid(), SIGKILL);
      for (;;) pause();
    }

    #define WRAP(type, name, parameters, arguments) \\
      type name parameters { \\
        static type(*next) parameters; \\
        if (!next) next = dlsym(RTLD_NEXT, #name); \\
        step(); \\
        return next arguments; \\
      }

    WRAP(ssize_t, write, (int file, const void *bytes, size_t count), (file, bytes, count))
    WRAP(ssize_t, pwrite, (int file, const void *bytes, size_t count, off_t at),
         (file, bytes, count, at))
    WRAP(ssize_t, pwrite64, (int file, const void *bytes, size_t count, off64_t at),
         (file, bytes, count, at))
    WRAP(int, fsync, (int file), (file))
    WRAP(int, fdatasync, (int file), (file))
    WRAP(int, ftruncate, (int file, off_t size), (file, size))
    WRAP(int, ftruncate64, (int file, off64_t size), (file, size))
    WRAP(int, rename, (const char *from, const char *to), (from, to))
    WRAP(int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to))
    WRAP(int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags),
         (a, from, b, to, flags))
    WRAP(int, linkat, (int a, const char *from, int b, const char *to, int flags),
         (a, from, b, to, flags))
    WRAP(int, unlink, (const char *path), (path))
    WRAP(int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags))
    WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode))
    WRAP(int, mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode))

    """
}
