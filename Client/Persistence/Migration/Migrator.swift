/// The ordered steps from any earlier version of a file's tables to the present one.
///
/// Each step runs once for each file, in a separate transaction. In a later version of your
/// application, add steps at the end, and never change, remove or reorder steps that users may have
/// run. A new file runs all of them.
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
    /// The step's name in files: 1 to 255 bytes.
    public let name: String
    /// True if a replica records the step's writes as edits of the user.
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
  /// recorded, it runs with foreign keys off, so it can create a table again; they are checked
  /// before the commit.
  ///
  /// - Parameters:
  ///   - name: 1 to 255 bytes, unlike the names of all other steps.
  ///   - recorded: true to record the writes in a replica as edits of the user, at the time of the
  ///     step. By default they are none: the next sync compares the tables written by the step with
  ///     the server. It sends a value only if nobody else has written the column since, and an
  ///     absent row comes back (SPEC.md §25). To delete synced rows, record the step. A tracked
  ///     table dropped by the step is no longer tracked.
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
  /// The steps run now.
  public var ran: [String] = []
  /// The failed step, if the fallback accepted the last good version.
  public var failed: String?

  /// Creates a report.
  public init(ran: [String] = [], failed: String? = nil) { (self.ran, self.failed) = (ran, failed) }
}

/// A failed step. Nothing of it is in the file, and all steps before it are.
public struct MigrationFailure: Error, Sendable, CustomStringConvertible {
  /// The step's name.
  public let step: String
  /// The last step in the file; `nil` if there is none.
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

/// The decision of an application about a failed step.
public enum MigrationFallback: Sendable {
  /// The migration ends, and the application continues with the last good version.
  case keepVersion
  /// The step runs again, after the application has repaired the cause. It runs at most
  /// ``attemptsMax`` times in one migration.
  case retry
  /// The most runs of one step in one migration.
  public static let attemptsMax = 10
}
