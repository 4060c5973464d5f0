import FerryCommandLine
import FerrySyncServer
import Foundation

/// The options of the log: `--log-level` and `--quiet`, and `--log-level-file` of a server.
enum LogOptions {
  static let options = [
    OptionSpec(
      "log-level", value: "LEVEL",
      help: "The level of the log on standard error, in JSON lines; info logs each request.",
      kind: .choice(LogLevel.allCases.map(\.rawValue)), default: LogLevel.info.rawValue,
      environment: "FERRY_LOG_LEVEL")
  ]

  static let flags = [
    FlagSpec("quiet", short: "q", help: "Log errors only.", environment: "FERRY_QUIET")
  ]

  /// The options of a process with a reloadable level.
  static let reloadable = [
    OptionSpec(
      "log-level-file", value: "FILE",
      help: """
        A file with the level of the log as its only word; it overrides --log-level and --quiet, \
        and is read again at SIGHUP.
        """, kind: .file, environment: "FERRY_LOG_LEVEL_FILE")
  ]

  static func log(_ arguments: ParsedArguments) throws(UsageError) -> ServiceLog {
    let named = LogLevel(rawValue: try arguments.string("log-level")) ?? .info
    return ServiceLog(
      level: arguments.flag("quiet") ? .error : named, sink: standardError, clock: .system)
  }

  /// The log on standard error. The last lines leave the process before it exits.
  private static let standardError: DescriptorLogSink = {
    atexit { LogOptions.standardError.flush() }
    return DescriptorLogSink(descriptor: 2)
  }()

  /// Returns the file of `--log-level-file`, and sets the log's level.
  ///
  /// - Throws: A failure if there is no level in the file.
  static func openLevelFile(
    _ arguments: ParsedArguments, _ log: ServiceLog
  ) throws(CommandFailure) -> LogLevelFile? {
    guard let path = arguments.stringIfPresent("log-level-file") else { return nil }
    let file = LogLevelFile(path: path)
    do {
      log.setLevel(try file.read())
    } catch {
      throw CommandFailure(
        "the level of the log cannot be read", why: error.description,
        next: "write one of \(LogLevelFile.levels) into the file of --log-level-file",
        code: "no_log_level")
    }
    return file
  }
}
