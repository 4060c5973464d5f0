import FerryCommandLine
import FerryMirror

/// The option `--capture` of commands that make a mirror.
extension MirrorCommands {
  static let captureOption = OptionSpec(
    "capture", value: "WAY",
    help: """
      How PostgreSQL records the writes of programs: by triggers, or in its log. The log costs the \
      programs less. It needs wal_level = logical, a role with REPLICATION, and the tables' owner. \
      auto is the log if PostgreSQL permits it, and otherwise triggers; `ferryd mirror status` shows \
      the reason. The mirrors of a group have one slot.
      """,
    kind: .choice([automatic] + MirrorCapture.allCases.map(\.rawValue)),
    default: MirrorCapture.triggers.rawValue)

  /// The value of ``captureOption`` that leaves the choice to the database.
  private static let automatic = "auto"

  /// Returns `true` if the database decides.
  static func isAutomatic(_ arguments: ParsedArguments) throws -> Bool {
    try arguments.string("capture") == automatic
  }

  /// Returns the settings with the way to capture that the option names, or that suits the database.
  static func choosingCapture(
    _ configuration: MirrorConfiguration, _ folder: MirrorFolder, _ arguments: ParsedArguments
  ) async throws -> MirrorConfiguration {
    let isAutomatic = try isAutomatic(arguments)
    return try await explained(configuration.name) {
      try await configuration.choosingCapture(isAutomatic: isAutomatic, in: folder)
    }
  }
}
