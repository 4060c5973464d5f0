import Foundation

/// The resources of a running process, as /proc reports them (proc(5)).
struct ProcessFigures: Sendable {
  /// Resident memory in bytes.
  let resident: Int
  /// The most of it at once, in bytes.
  let peakResident: Int
  /// Seconds of processor time so far, user and system.
  let processorTime: Double

  static func read(_ processID: Int32) throws -> ProcessFigures {
    let status = try String(contentsOfFile: "/proc/\(processID)/status", encoding: .utf8)
    func size(_ name: String) -> Int? {
      let line = status.split(separator: "\n").first { $0.hasPrefix(name) }
      return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }
        .map { $0 * 1_024 }
    }
    let stat = try String(contentsOfFile: "/proc/\(processID)/stat", encoding: .utf8)
    // The name, in brackets, may hold spaces; the fields after it are counted from the third.
    let fields = stat.split(separator: ")").last?.split(separator: " ") ?? []
    guard let resident = size("VmRSS:"), let peak = size("VmHWM:"), fields.count > 12,
      let user = Int(fields[11]), let system = Int(fields[12])
    else { throw BenchError("/proc has no data on process \(processID)") }
    return ProcessFigures(
      resident: resident, peakResident: peak,
      processorTime: Double(user + system) / Double(sysconf(Int32(_SC_CLK_TCK))))
  }
}
