import FerryCommandLine
import FerryLaboratory
import Foundation

/// The resources used by a program, as counted by the kernel.
struct MeasuredProcess: Sendable {
  /// The most resident memory at once, in bytes (getrusage(2), `ru_maxrss`).
  let peakResident: Int
  let seconds: Double
  let output: String

  /// Runs a program to the end.
  ///
  /// A small process starts it: Linux counts the memory of the starting process towards `ru_maxrss`
  /// of its child, and a benchmark uses much memory.
  static func run(
    _ program: URL, _ arguments: [String], within limit: Duration = .seconds(1_800)
  ) async throws -> MeasuredProcess {
    let finished = try await ChildProcess.run(
      try Executables.ferryBench(), ["measured", "--", program.path] + arguments, within: limit)
    let report = finished.error.split(separator: "\n").last?.split(separator: " ") ?? []
    guard finished.status == .exited(0), report.count == 2, let peak = Int(report[0]),
      let seconds = Double(report[1])
    else {
      throw BenchError(
        "\(program.lastPathComponent) \(arguments.joined(separator: " ")) failed: "
          + "\(finished.error.suffix(2_000)) \(finished.output.suffix(2_000))")
    }
    return MeasuredProcess(peakResident: peak, seconds: seconds, output: finished.output)
  }

  /// The starting process: prints the peak in bytes and the seconds on standard error.
  static let command = CommandSpec(
    "measured", summary: "Run a program and print its time and memory.",
    arguments: [ArgumentSpec("word", help: "The program and its arguments.", arity: .oneOrMore)],
    hidden: true
  ) { arguments in
    let watch = Stopwatch()
    let words = arguments.strings("word")
    var copies = words.map { strdup($0) } + [nil]
    defer { for copy in copies { free(copy) } }
    var process: pid_t = 0
    let code = posix_spawn(&process, words[0], nil, nil, &copies, environ)
    guard code == 0 else { throw BenchError("\(words[0]): \(String(cString: strerror(code)))") }
    var (status, usage) = (Int32(0), rusage())
    while wait4(process, &status, 0, &usage) < 0 && errno == EINTR {}
    try TextOutput.standardError.line("\(usage.ru_maxrss * 1_024) \(watch.seconds)")
    return status == 0 ? .done : .failed
  }
}
