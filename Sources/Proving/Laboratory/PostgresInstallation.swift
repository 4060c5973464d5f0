import Foundation

/// PostgreSQL's programs on this machine, and the user for them.
struct PostgresInstallation: Sendable {
  /// The directory of all ``programs``: those of different versions do not work together.
  let directory: String
  private static let programs = [
    "initdb", "pg_ctl", "postgres", "pg_basebackup", "pg_dump", "pg_restore",
  ]

  /// Set if this process is root: PostgreSQL does not run as root.
  let user: (name: String, id: uid_t, group: gid_t)?

  /// Finds the newest version under /usr/lib/postgresql, or else on PATH.
  static func find() throws -> PostgresInstallation {
    let debian = "/usr/lib/postgresql"
    let versions = (try? FileManager.default.contentsOfDirectory(atPath: debian)) ?? []
    let newestFirst = versions.compactMap(Int.init).sorted(by: >).map { "\(debian)/\($0)/bin" }
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    let directories = newestFirst + path.split(separator: ":").map(String.init)
    let isComplete = { (directory: String) in
      programs.allSatisfy { access("\(directory)/\($0)", X_OK) == 0 }
    }
    guard let directory = directories.first(where: isComplete) else {
      throw TestSupportError(
        """
        no folder has all of PostgreSQL's programs \(programs.joined(separator: ", ")): run \
        `apt-get install postgresql`, or name a server in FERRY_TEST_POSTGRES \
        (postgres://user:password@host/database)
        """)
    }
    guard geteuid() == 0 else { return PostgresInstallation(directory: directory, user: nil) }
    guard let entry = getpwnam("postgres") else {
      throw TestSupportError(
        "there is no user postgres to run PostgreSQL as: run `apt-get install postgresql`")
    }
    let (id, group) = (entry.pointee.pw_uid, entry.pointee.pw_gid)
    return PostgresInstallation(directory: directory, user: ("postgres", id, group))
  }

  /// Returns the command line to run one of the programs as the right user.
  func commandLine(_ program: String, _ arguments: [String]) -> [String] {
    let command = ["\(directory)/\(program)"] + arguments
    guard let user else { return command }
    let ids = ["--reuid", user.name, "--regid", "\(user.group)", "--init-groups"]
    return ["/usr/bin/setpriv"] + ids + ["--"] + command
  }
}
