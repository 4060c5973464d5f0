/// All events of a run, in order: always hashed, kept on request.
// SAFETY: touched on the scheduler's thread only.
package final class Trace: @unchecked Sendable {
  private let scheduler: Scheduler
  private let keepsEvents: Bool
  private var hash: UInt64 = 0xcbf2_9ce4_8422_2325
  package private(set) var events: [TraceEvent] = []
  /// The number of events of each kind.
  package private(set) var counts: [TraceEvent.Kind: Int] = [:]

  package init(_ scheduler: Scheduler, keepsEvents: Bool) {
    self.scheduler = scheduler
    self.keepsEvents = keepsEvents
  }

  /// Sixteen hexadecimal digits; equal for two runs of one seed.
  package var digest: String {
    let digits = String(hash, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  package func record(
    _ kind: TraceEvent.Kind, _ actor: String, peer: String? = nil, message: Int? = nil,
    _ detail: @autoclosure () -> String = ""
  ) {
    let event = TraceEvent(
      at: scheduler.now, actor: actor, kind: kind, peer: peer, message: message, detail: detail())
    counts[kind, default: 0] += 1
    add(UInt64(bitPattern: event.at))
    add(event.actor)
    add(event.kind.rawValue)
    add(event.peer ?? "")
    add(UInt64(bitPattern: Int64(event.message ?? -1)))
    add(event.detail)
    if keepsEvents { events.append(event) }
  }

  /// Adds bytes too many to be looked at to the hash.
  package func digest(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { add($0) }
  }

  private func add(_ text: String) {
    var text = text
    text.withUTF8 { add(UnsafeRawBufferPointer($0)) }
  }

  /// Adds eight bytes at a time, and the length, so no two sequences of texts look alike.
  private func add(_ bytes: UnsafeRawBufferPointer) {
    var index = 0
    while index + 8 <= bytes.count {
      add(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)))
      index += 8
    }
    var rest: UInt64 = 0
    while index < bytes.count {
      rest = rest << 8 | UInt64(bytes[index])
      index += 1
    }
    add(rest)
    add(UInt64(bytes.count))
  }

  private func add(_ number: UInt64) {
    hash = (hash ^ number) &* 0x100_0000_01b3
    hash ^= hash >> 29
  }
}
