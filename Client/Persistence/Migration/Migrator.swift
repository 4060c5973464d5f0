/// The ordered steps that bring a file's tables from any earlier version to the present one.
///
/// Each step runs once for each file, in a transaction of its own. A later version of the
/// application adds steps at the end, and never changes, removes or reorders those that users may
/// have run. A file that is new runs all of them.
///
/// ```swift
/// var migrator = Migrator()
/// migrator.add("create tasks") {
///   try $0.execute("CREATE TABLE tasks(id TEXT PRIMARY KEY, title TEXT)")
/// }
/// migrator.add("titles are names") { try $0.renameColumn("title", of: "tasks", to: "name") }
/// try await replica.migrate(migrator)
/// ```
public struct Migrator: Sendable {
  /// One change of the tables.
  public struct Step: Sendable {
    /// The name by which files remember the step: 1 to 255 bytes.
    public let name: String
    /// Whether a replica records the step's writes as edits of its user.
    public let isRecorded: Bool
    let body: @Sendable (Database) throws -> Void
  }

  /// The steps in their order.
  public private(set) var steps: [Step] = []

  /// Creates a migrator without steps.
  public init() {}

  /// Adds a step at the end.
  ///
  /// A step must do the same on every device: it reads no clock and no network. Unless it is
  /// recorded, it runs with foreign keys off, so that it can create a table again; they are checked
  /// before its commit.
  ///
  /// - Parameters:
  ///   - name: 1 to 255 bytes, unlike the names of all other steps.
  ///   - recorded: whether a replica records the writes as edits of its user, at the time of the
  ///     step. By default they are none: the next sync compares the tables that the step wrote to
  ///     with the server. It sends a value only if nobody else has written the column since, and a
  ///     row that is absent comes back (SPEC.md §25). To delete synced rows, record the step.
  ///     A tracked table that the step drops is no longer tracked.
  public mutating func add(
    _ name: String, recorded: Bool = false, _ body: @escaping @Sendable (Database) throws -> Void
  ) {
    add(Step(name: name, isRecorded: recorded, body: body))
  }

  /// Adds a step of another migrator at the end.
  public mutating func add(_ step: Step) { steps.append(step) }
}

/// The result of a migration.
public struct MigrationReport: Sendable, Equatable {
  /// The steps that ran now.
  public var ran: [String] = []
  /// The step that failed, if the fallback accepted the last good version.
  public var failed: String?

  /// Creates a report from its parts.
  public init(ran: [String] = [], failed: String? = nil) { (self.ran, self.failed) = (ran, failed) }
}

/// A step that failed. Nothing of it is in the file, and all steps before it are.
public struct MigrationFailure: Error, Sendable, CustomStringConvertible {
  /// The step's name.
  public let step: String
  /// The last step that is in the file; `nil` if none is.
  public let version: String?
  /// How often the step has failed in this migration, from 1.
  public let attempt: Int
  /// The error of the step.
  public let reason: any Error

  /// The failure as a sentence.
  public var description: String {
    let version = version.map { "the file is at the version of step '\($0)'" } ?? "no step has run"
    return "step '\(step)' of the migration failed: \(reason); \(version)"
  }
}

/// The decision of an application about a step that failed.
public enum MigrationFallback: Sendable {
  /// The migration ends, and the application goes on with the last good version.
  case keepVersion
  /// The step runs again, after the application has repaired the cause. It runs at most
  /// ``attemptsMax`` times in one migration.
  case retry
  /// The most runs of one step in one migration.
  public static let attemptsMax = 10
}
