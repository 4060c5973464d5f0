import Foundation

/// The evidence of a failed round, for analysis.
struct Evidence {
  let world: ProcessWorld
  let report: RoundReport

  /// Copies everything to a separate directory below `root`, and returns the path. Blocks.
  func copy(below root: URL) throws -> String {
    let manager = FileManager.default
    let name =
      "ferry-chaos-\(report.plan.label)-\(report.plan.seed)-\(UUID().uuidString.prefix(4))"
    let directory = root.appending(path: name, directoryHint: .isDirectory)
    try manager.createDirectory(at: root, withIntermediateDirectories: true)
    // The devices' files, with their write-ahead logs.
    try manager.copyItem(at: world.directory.url, to: directory)
    try write("report.txt", (report.failureLines + ["", report.json.text]), in: directory)
    try Data(world.chronicle.text.utf8).write(to: directory.appending(path: "chronicle.txt"))
    for supervisor in world.nodes.map(\.supervisor) + world.supervisors {
      let file = directory.appending(path: "\(supervisor.program.name).log")
      try Data(supervisor.log.utf8).write(to: file)
    }
    if let postgres = world.cluster.directory {
      let log = try? String(contentsOfFile: "\(postgres)/log", encoding: .utf8)
      try write("postgres.log", [log ?? "it could not be read"], in: directory)
    }
    try write("server.txt", serverLines(), in: directory)
    return directory.path
  }

  private func write(_ name: String, _ lines: [String], in directory: URL) throws {
    let text = lines.joined(separator: "\n") + "\n"
    try Data(text.utf8).write(to: directory.appending(path: name))
  }

  /// Returns the server's history and records, a line each.
  private func serverLines() -> [String] {
    do {
      let server = try world.serverEvidence()
      let records = server.records.sorted {
        ($0.key.table, $0.key.record) < ($1.key.table, $1.key.record)
      }
      return [
        "head \(server.head), epoch \(server.epoch), \(server.buffered) packets buffered", "",
      ]
        + server.history.map { "\($0)" } + [""] + records.map { "\($0.key) \($0.value)" }
    } catch {
      return ["the server's data could not be read: \(error)"]
    }
  }
}
