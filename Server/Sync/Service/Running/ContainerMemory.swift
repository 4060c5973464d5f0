import FerryPlatform
import Glibc

/// The memory limit of this process: from the control group, else from the machine.
package enum ContainerMemory {
  /// The least budget by default: one record of the largest size needs it.
  private static let budgetMin = 64 << 20

  /// The default of the budget of memory: a quarter of the limit, in bytes.
  package static func standardBudget(
    read: (String) -> String? = Self.content, machine: Int = Self.machine
  ) -> Int {
    max(limit(read: read, machine: machine) / 4, budgetMin)
  }

  /// Returns the lowest limit of the process's control groups and of the machine, in bytes.
  ///
  /// - Parameters:
  ///   - read: Returns the content of a file; `nil` if it cannot be read.
  ///   - machine: The memory of the machine.
  package static func limit(
    read: (String) -> String? = Self.content, machine: Int = Self.machine
  ) -> Int {
    var limit = machine
    for line in (read("/proc/self/cgroup") ?? "").words(at: "\n") {
      let parts = line.parts(at: ":", most: 3)
      guard parts.count == 3 else { continue }
      let isMemory = parts[1].words(at: ",").contains(where: { $0 == "memory" })
      guard parts[1].isEmpty || isMemory else { continue }
      // Version 2 has one hierarchy; version 1 has one for each controller.
      let (roots, name) =
        isMemory
        ? (["/sys/fs/cgroup/memory"], "memory.limit_in_bytes")
        : (["/sys/fs/cgroup", "/sys/fs/cgroup/unified"], "memory.max")
      for root in roots {
        for directory in ancestors(of: parts[2]) {
          // `max`, or a missing file in a container, is no limit.
          let text = read(root + directory + "/" + name)?.until("\n")
          if let found = text.flatMap({ Int($0) }), found > 0 { limit = min(limit, found) }
        }
      }
    }
    return limit
  }

  /// Returns `/a/b`, `/a` and the empty path for `/a/b`.
  private static func ancestors(of path: Substring) -> [String] {
    let names = path.words(at: "/")
    return (0...names.count).reversed().map { count in
      names.prefix(count).map { "/" + $0 }.joined()
    }
  }

  /// The memory of this machine, in bytes.
  package static var machine: Int { sysconf(Int32(_SC_PHYS_PAGES)) * sysconf(Int32(_SC_PAGESIZE)) }

  /// Returns the beginning of a small file; `nil` if it cannot be read.
  package static func content(of path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 16 << 10)
    let count = read(descriptor, &bytes, bytes.count)
    return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
  }
}
