/// One event of a simulated world, for people to follow.
package struct TraceEvent: Sendable, Equatable {
  /// The kind of an event.
  package enum Kind: String, Sendable, CaseIterable, Codable {
    // On a device.
    case wrote, read, synced, syncFailed, conflict, crashed, lostPower, restarted, copied
    case clockMoved, upgraded, migrated, attached, filled, exchanged
    // On the network: a request or a response leaves, arrives, or does not.
    case sent, delivered, dropped, duplicated, delayed, corrupted, stalled
    case partitioned, healed
    // On the server.
    case applied, buffered, released, refused, pulled, pruned
    // Of missions, on a device or the server.
    case mission
    // Of bundles, on a device or the server.
    case bundle
    // Of a mirror.
    case mirrored
    // In the storage.
    case diskFull, syncFailure, tornWrite, diskFailed
    // Of the run.
    case phase, violation
  }

  /// Microseconds of virtual time since the start.
  package var at: Int64
  /// The actor: `device-3`, `server`, `world`.
  package var actor: String
  package var kind: Kind
  /// The other side of a message or a partition, when there is one.
  package var peer: String?
  /// Connects a message's `sent` with the `delivered`, and a response with the request.
  package var message: Int?
  package var detail: String
  /// Of a conflict: the lost values. They are no part of the trace's hash.
  package var lost: [LostValue] = []

  package init(
    at: Int64, actor: String, kind: Kind, peer: String? = nil, message: Int? = nil,
    detail: String = ""
  ) {
    self.at = at
    self.actor = actor
    self.kind = kind
    self.peer = peer
    self.message = message
    self.detail = detail
  }
}

extension TraceEvent {
  /// The event on one line, for a person.
  package var line: String {
    let milliseconds = String(at / 1_000)
    var line = String(repeating: " ", count: max(0, 8 - milliseconds.count)) + milliseconds
    line += " ms  \(actor)  \(kind.rawValue)"
    if let peer { line += " ⇄ \(peer)" }
    if let message { line += " #\(message)" }
    if !detail.isEmpty { line += "  " + detail }
    return line + lost.map { "; \($0)" }.joined()
  }
}
