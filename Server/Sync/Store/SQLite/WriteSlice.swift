import FerryProtocol
import Foundation

/// The largest transaction of the embedded store, whose spaces share one writer: all that is larger is
/// written in slices, and other spaces' packets go between two of them.
package struct WriteSlice: Sendable, Equatable {
  /// Rows of a transaction, and operations of its packets.
  package var rows: Int
  /// Bytes of those rows, and of the states that are merged for them. A single larger row is written
  /// alone.
  package var bytes: Int
  /// Records that batches match, up to which the writer decides about them: some 10 ms.
  package var matches: Int
  /// Bytes that merges of sets and texts, and unique keys, read for a transaction: some 50 ms. See
  /// ``IngestWork``.
  package var merged: Int

  package init(rows: Int, bytes: Int, matches: Int, merged: Int = 1 << 20) {
    (self.rows, self.bytes, self.matches, self.merged) = (rows, bytes, matches, merged)
  }

  /// Columns that each operation of a transaction may write, on average.
  private static let columnsPerRow = 50

  /// Times that a transaction decides about as many operations as it may write.
  private static let decisionsPerRow = 8
  /// Times that a transaction encodes as many states as it may load: as they were, and as they grow.
  private static let encodingsPerByte = 2

  /// The largest transaction of a server. One row may have as many bytes as it.
  package static let standard = WriteSlice(rows: 2_000, bytes: 8 << 20, matches: 200)

  /// Returns whether these packets can be decided in one transaction.
  func admits(_ packets: [IncomingPacket], _ found: BatchMatches) -> Bool {
    found.count <= matches
      && packets.reduce(0) { $0 + $1.packet.operations.count } <= rows
      && packets.reduce(0) { $0 + $1.byteCount } <= bytes
      && packets.reduce(0) { $0 + $1.packet.operations.reduce(0) { $0 + $1.columns.count } }
        <= rows * Self.columnsPerRow
  }

  /// Returns whether these packets, and the buffered ones that they release, can be decided in one
  /// transaction. The context has all that they need.
  ///
  /// - Parameter rounds: Decisions so far: one begins from the start when it refuses a packet.
  func admits(_ packets: [IncomingPacket], in context: IngestContext, rounds: Int) -> Bool {
    var work = IngestWork(context, upTo: merged)
    for packet in packets { work.add(packet.packet) }
    for (_, body) in context.bodies.sorted(by: { $0.key < $1.key }) { work.add(body) }
    return work.operations * rounds <= rows * Self.decisionsPerRow
      && work.read * rounds <= merged && work.encoded * rounds <= bytes * Self.encodingsPerByte
  }

  /// Returns whether buffered packets can be decided together with the packet that releases them.
  func admits(_ keys: [BufferedKey], of buffered: [BufferedPacket]) -> Bool {
    let wanted = Set(keys)
    return buffered.reduce(0) { wanted.contains($1.key) ? $0 + $1.byteCount : $0 } <= bytes
  }

  /// Returns whether so many operations can be decided in one transaction.
  func admits(_ bodies: some Sequence<Packet>) -> Bool {
    bodies.reduce(0) { $0 + $1.operations.count } <= rows
  }
}

/// An error: a transaction would be larger than a slice. It is rolled back.
struct TooLargeForSlice: Error {}

/// The turns of the connections of one process that write to the same file. Each turn is one short
/// transaction, so threads may wait for it.
///
/// The turns are in the order in which they are asked for: a thread that writes one slice after the
/// other lets each waiting one in.
// SAFETY: `condition` guards all numbers.
package final class WriteLock: @unchecked Sendable {
  private let condition = NSCondition()
  /// Large packets that are being written.
  private var sliced = 0
  /// The number of the next turn, and of the current one.
  private var (next, current) = (0, 0)

  package init() {}

  /// Runs `body` when all earlier turns have ended.
  func withLock<T>(_ body: () throws -> T) rethrows -> T {
    begin()
    defer { end() }
    return try body()
  }

  /// Whether a large packet is being written.
  var hasSlices: Bool {
    condition.lock()
    defer { condition.unlock() }
    return sliced > 0
  }

  /// Notes that a connection begins to write a large packet in slices.
  func beginSlices() { countSlices(1) }

  /// Notes that it has ended.
  func endSlices() { countSlices(-1) }

  private func countSlices(_ change: Int) {
    condition.lock()
    defer { condition.unlock() }
    sliced += change
  }

  /// Turns that wait.
  var waitingCount: Int {
    condition.lock()
    defer { condition.unlock() }
    return max(0, next - current - 1)
  }

  private func begin() {
    condition.lock()
    defer { condition.unlock() }
    let turn = next
    next += 1
    while current != turn { condition.wait() }
  }

  private func end() {
    condition.lock()
    defer { condition.unlock() }
    current += 1
    condition.broadcast()
  }
}
