import Ferry
import FerryCommandLine
import Foundation

/// The presentation of missions.
enum MissionPresentation {
  /// Prints missions as a table, or as JSON lines.
  ///
  /// - Parameter none: the text if there are none.
  static func print(_ missions: [MissionStatus], none: String, asJSON: Bool) throws {
    let output = TextOutput.standardOutput
    if asJSON { return try output.lines(missions.map { json($0).text }) }
    guard !missions.isEmpty else { return try output.line(none) }
    var table = TextTable(
      [
        "mission", "state", "here", "published", "items", "size", "title",
      ], whole: ["mission"])
    for mission in missions {
      table.append([
        mission.id.value, stateCell(mission), mission.activeVersion.map { "\($0)" } ?? "",
        mission.publishedVersion.map { "\($0)" } ?? "retracted", mission.items.grouped,
        ByteSize(bytes: Int(mission.bytesTotal)).text, mission.title,
      ])
    }
    let width = Terminal.current().tableWidth
    try output.lines(table.lines(width: width) + reasons(of: missions, width: width))
  }

  /// Returns why missions wait, are paused or failed. Each reason is a line below the table,
  /// because a column would be too narrow.
  private static func reasons(of missions: [MissionStatus], width: Int?) -> [String] {
    let lines = missions.compactMap { mission in
      (mission.reason?.description ?? mission.interruption).map {
        "\(mission.id): \($0)".escapedForTerminal
      }
    }
    let fitted = lines.map { line in width.map { line.truncated(toWidth: $0) } ?? line }
    return fitted.isEmpty ? [] : [""] + fitted
  }

  /// Prints one mission, with the items if it is on this device.
  static func print(_ mission: MissionStatus, _ items: [MissionFileRow], asJSON: Bool) throws {
    let output = TextOutput.standardOutput
    if asJSON {
      guard case .object(let members) = json(mission) else { return }
      return try output.line(
        JSONText.object(members + [("files", .array(items.map { json($0) }))]).text)
    }
    var lines = ["\(mission.id): \(mission.title)"]
    if !mission.summary.isEmpty { lines.append(mission.summary) }
    lines.append("state: \(stateCell(mission).isEmpty ? "not requested" : stateCell(mission))")
    if let reason = mission.reason?.description ?? mission.interruption {
      lines.append("why: \(reason)")
    }
    lines.append("published: \(mission.publishedVersion.map { "version \($0)" } ?? "retracted")")
    if let version = mission.activeVersion { lines.append("here: version \(version)") }
    if items.isEmpty, mission.items > 0 {
      lines.append(
        "size: \(ByteSize(bytes: Int(mission.bytesTotal)).text) in \(Int(mission.items).counted("item"))"
      )
    }
    try output.lines(lines.map(\.escapedForTerminal))
    guard !items.isEmpty else { return }
    var table = TextTable(["item", "kind", "type", "size", "address"])
    for item in items {
      table.append([
        item.path, item.kind.rawValue, item.mediaType,
        ByteSize(bytes: Int(item.content.size)).text, item.url ?? "",
      ])
    }
    try output.lines(table.lines(width: Terminal.current().tableWidth))
  }

  static func json(_ mission: MissionStatus) -> JSONText {
    .object([
      ("mission", .string(mission.id.value)), ("title", .string(mission.title)),
      ("summary", .string(mission.summary)), ("state", .string(orNull: mission.state?.rawValue)),
      ("reason", mission.reason.map { json($0) } ?? .null),
      ("interrupted", .bool(mission.isInterrupted)), ("version", .int(mission.version)),
      ("here", mission.activeVersion.map { .int($0) } ?? .null),
      ("published", mission.publishedVersion.map { .int($0) } ?? .null),
      ("items", .int(mission.items)), ("itemsDone", .int(mission.itemsDone)),
      ("bytes", .int(mission.bytesTotal)), ("bytesDone", .int(mission.bytesDone)),
    ])
  }

  static func json(_ error: MissionError) -> JSONText {
    .object([
      ("code", .string(error.kind.rawValue)), ("item", .string(orNull: error.item)),
      ("message", .string(error.message)),
    ])
  }

  static func lines(_ id: MissionID, _ report: MissionVerification) -> [String] {
    let size = ByteSize(bytes: Int(report.bytes)).text
    if report.isIntact { return ["mission \(id), version \(report.version): \(size) are intact"] }
    let word =
      report.isRepaired
      ? "was missing or damaged, and is repaired"
      : "is missing, or differs from the downloaded file"
    return
      (report.damaged.map { "\($0) \(word)" }
      + (report.fault.map { ["\($0) (\(report.isRepaired ? "repaired" : "not repaired"))"] } ?? []))
      .map(\.escapedForTerminal)
  }

  static func json(_ id: MissionID, _ report: MissionVerification) -> JSONText {
    .object([
      ("mission", .string(id.value)), ("version", .int(report.version)),
      ("intact", .bool(report.isIntact)), ("bytes", .int(report.bytes)),
      ("damaged", .array(report.damaged.map { .string($0) })),
      ("fault", report.fault.map { json($0) } ?? .null), ("repaired", .bool(report.isRepaired)),
    ])
  }

  private static func json(_ item: MissionFileRow) -> JSONText {
    .object([
      ("path", .string(item.path)), ("kind", .string(item.kind.rawValue)),
      ("mediaType", .string(item.mediaType)), ("bytes", .int(item.content.size)),
      ("sha256", .string("\(item.content.hash)")), ("url", .string(orNull: item.url)),
      (
        "file",
        .string(orNull: item.localPath.map { URL(filePath: $0).absoluteURL.standardized.path })
      ),
    ])
  }

  private static func stateCell(_ mission: MissionStatus) -> String {
    guard mission.isUnderWay, mission.bytesTotal > 0 else { return mission.stateName }
    let percent = Int(Double(mission.bytesDone) / Double(mission.bytesTotal) * 100)
    return "\(mission.stateName) \(percent)%"
  }
}

extension MissionStatus {
  /// The state in a word; empty if nobody requested the mission.
  var stateName: String { isInterrupted ? "interrupted" : state?.rawValue ?? "" }

  /// A remedy for a mission after its process has ended.
  fileprivate var interruption: String? {
    isInterrupted
      ? "no process fetches it any more: `ferry mission resume \(id)` continues it" : nil
  }
}
