import FerryCommandLine
import FerrySyncServer

/// The options of the log: `--log-level` and `--quiet`.
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

  static func log(_ arguments: ParsedArguments) throws(UsageError) -> ServiceLog {
    let named = LogLevel(rawValue: try arguments.string("log-level")) ?? .info
    return ServiceLog(
      level: arguments.flag("quiet") ? .error : named, sink: DescriptorLogSink(descriptor: 2),
      clock: .system)
  }
}
