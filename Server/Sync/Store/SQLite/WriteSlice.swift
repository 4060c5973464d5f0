import FerryProtocol
import Foundation

/// The largest transaction of the embedded store, whose spaces share one writer. Larger work is
/// written in slices, and other spaces' packets go between two of them.
package struct WriteSlice: Sendable, Equatable {
  /// Rows of a transaction, and operations of all packets.
  package var rows: Int
  /// Bytes of these rows, and of the states to merge for them. A single larger row is written
  /// alone.
  package var bytes: Int
  /// Matching records of batches up to which the writer decides about them: some 10 ms.
  package var matches: Int
  /// Bytes read by merges of sets and texts, and by unique keys, for a transaction: some 50 ms. See
  /// ``IngestWork``.
  package var merged: Int

  package init(rows: Int, bytes: Int, matches: Int, merged: Int = 1 << 20) {
    (self.rows, self.bytes, self.matches, self.merged) = (rows, bytes, matches, merged)
  }

  /// Columns written by each operation of a transaction, on average and at most.
  private static let columnsPerRow = 50

  /// The ratio of decided operations to written ones in a transaction, at most.
  private static let decisionsPerRow = 8
  /// The ratio of encoded states to loaded ones in a transaction, at most: as they were, and as
  /// they grow.
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

  /// Returns `true` if these packets, and the buffered ones released by them, can be decided in one
  /// transaction. The context has all needed data.
  ///
  /// - Parameter rounds: Decisions so far: each one that refuses a packet starts from scratch.
  func admits(_ packets: [IncomingPacket], in context: IngestContext, rounds: Int) -> Bool {
    var work = IngestWork(context, upTo: merged)
    for packet in packets { work.add(packet.packet) }
    for (_, body) in context.bodies.sorted(by: { $0.key < $1.key }) { work.add(body) }
    return work.operations * rounds <= rows * Self.decisionsPerRow
      && work.read * rounds <= merged && work.encoded * rounds <= bytes * Self.encodingsPerByte
  }

  /// Returns `true` if buffered packets can be decided together with the packet that releases them.
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

/// The turns of one process's connections to write to the same file. Each turn is one short
/// transaction, so threads may wait for it.
///
/// The turns are in the order of the requests: between the slices of one thread, each waiting
/// thread gets a turn.
// SAFETY: `condition` guards all numbers.
package final class WriteLock: @unchecked Sendable {
  private let condition = NSCondition()
  /// Large packets now being written.
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

  /// True if a large packet is being written.
  var hasSlices: Bool {
    condition.lock()
    defer { condition.unlock() }
    return sliced > 0
  }

  /// Records the start of a large packet in slices.
  func beginSlices() { countSlices(1) }

  /// Records the end of a large packet.
  func endSlices() { countSlices(-1) }

  private func countSlices(_ change: Int) {
    condition.lock()
    defer { condition.unlock() }
    sliced += change
  }

  /// Turns in the queue.
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
