import FerrySimulation

/// A small made-up run: two devices and a server, with one thing of most kinds.
enum ReportSample {
  static let violation = "monotonic-reads: device-2 went back from head 2 to head 1"

  static func content(violations: [String] = [violation]) -> ReportContent {
    ReportContent(
      seed: 42, replayCommand: "ferry-sim replay 42 --devices 2 --profile hostile",
      options: [("devices", "2"), ("profile", "hostile"), ("drop", "1/20")],
      actors: ["device-1", "device-2", "server"],
      events: violations.isEmpty ? events.filter { $0.kind != .violation } : events,
      violations: violations, figures: [("operations", 1234), ("packets", 4)],
      faults: [("drop", 1), ("lostPower", 0), ("tornWrite", 2)], traceHash: "00ff00ff00ff00ff")
  }

  static let events: [TraceEvent] = [
    TraceEvent(at: 0, actor: "world", kind: .phase, detail: "safety"),
    TraceEvent(at: 100_000, actor: "device-1", kind: .wrote, detail: "insert tasks 7"),
    TraceEvent(
      at: 200_000, actor: "device-1", kind: .sent, peer: "server", message: 11,
      detail: "push 1 operation"),
    TraceEvent(
      at: 300_000, actor: "server", kind: .delivered, peer: "device-1", message: 11),
    TraceEvent(
      at: 310_000, actor: "server", kind: .buffered, peer: "device-1", message: 11,
      detail: "waits for its predecessor"),
    TraceEvent(
      at: 320_000, actor: "server", kind: .sent, peer: "device-1", message: 11,
      detail: "200 buffered"),
    TraceEvent(
      at: 500_000, actor: "device-1", kind: .delivered, peer: "server", message: 11),
    TraceEvent(
      at: 600_000, actor: "device-2", kind: .sent, peer: "server", message: 12,
      detail: "pull from 0"),
    TraceEvent(
      at: 700_000, actor: "device-2", kind: .dropped, peer: "server", message: 12, detail: "lost"),
    TraceEvent(
      at: 900_000, actor: "device-2", kind: .partitioned, peer: "server", detail: "both ways"),
    TraceEvent(at: 1_000_000, actor: "device-1", kind: .crashed, detail: "while applying"),
    TraceEvent(at: 1_100_000, actor: "device-1", kind: .tornWrite, detail: "page 3"),
    TraceEvent(at: 1_500_000, actor: "device-2", kind: .healed, peer: "server"),
    TraceEvent(at: 1_800_000, actor: "device-1", kind: .restarted),
    TraceEvent(at: 2_000_000, actor: "world", kind: .phase, detail: "liveness"),
    TraceEvent(at: 2_100_000, actor: "server", kind: .released, peer: "device-1", message: 11),
    conflict,
    TraceEvent(at: 2_500_000, actor: "device-2", kind: .violation, detail: violation),
    TraceEvent(at: 3_000_000, actor: "device-2", kind: .synced, detail: "head 2"),
  ]

  private static let conflict: TraceEvent = {
    var event = TraceEvent(
      at: 2_200_000, actor: "device-2", kind: .conflict, detail: "2 values lost")
    event.lost = [
      LostValue(
        place: "tasks/7.title", lost: .init(value: "\"Buy milk\"", author: "device-2"),
        won: .init(value: "\"Buy oat milk\"", author: "device-1")),
      LostValue(
        place: "tasks/7.done", lost: .init(value: "1", author: "device-2"),
        won: .init(value: "the delete", author: "device-1"), isQuestion: true),
    ]
    return event
  }()

  /// Returns a run as large as the page has to carry, the same each time.
  static func crowd(devices: Int, events count: Int) -> ReportContent {
    let names = (1...devices).map { "device-\($0)" }
    var content = content(violations: [])
    content.actors = names + ["server"]
    content.events = (0..<count).map { place in
      let message = place / 3
      let device = names[(message * 7) % devices]
      let at = Int64(place) * 1500
      return switch place % 3 {
      case 0: TraceEvent(at: at, actor: device, kind: .wrote, detail: "update tasks \(place % 977)")
      case 1:
        TraceEvent(
          at: at, actor: device, kind: .sent, peer: "server", message: message, detail: "push")
      default:
        TraceEvent(
          at: at + 40_000, actor: "server", kind: .delivered, peer: device, message: message)
      }
    }
    return content
  }
}
