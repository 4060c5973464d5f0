import FerryProtocol

/// The memory for states of records in a transaction with packets.
///
/// States are measured as stored. In memory they take several times as much: they are read,
/// decoded, merged, encoded, and sent to the database.
package struct IngestRoom: Sendable, Equatable {
  /// Bytes of states in memory at once. A single larger state is loaded alone.
  package var bytes: Int
  /// True if larger states are loaded in slices. Otherwise the store throws
  /// ``StoreError/needsMemory``, and changes nothing.
  package var allowsSlices: Bool

  package init(bytes: Int, allowsSlices: Bool) {
    (self.bytes, self.allowsSlices) = (bytes, allowsSlices)
  }

  /// Bytes of memory for each byte of a state: it is read, decoded, merged, encoded twice, and sent
  /// to the database. States of many small columns, and of one large text, take about as much.
  private static let bytesPerByte = 14

  /// The memory of a transaction.
  package var memory: Int { bytes * Self.bytesPerByte }

  /// Enough room for most packets.
  package static let small = IngestRoom(bytes: 1 << 20, allowsSlices: false)
  /// The room in which any packet can be applied: one state of the largest size.
  package static let sliced = IngestRoom(bytes: 8 << 20, allowsSlices: true)
}

/// The refusals and unique keys found by an attempt after it had written some of its slices. The
/// transaction is rolled back, and the next attempt begins with them.
struct IngestRestart: Error {
  var refused: [IngestPlan.Source: Problem] = [:]
  var claims: [UniqueClaim] = []

  /// Runs attempts until one of them ends.
  static func repeated<T>(_ attempt: (IngestRestart) throws -> T) throws -> T {
    var start = IngestRestart()
    while true {
      do {
        return try attempt(start)
      } catch let restart as IngestRestart {
        start.refused.merge(restart.refused) { first, _ in first }
        start.claims += restart.claims
      }
    }
  }
}

// The states of a batch whose sizes are known.
extension IngestContext {
  /// The bytes of states to load at most, besides those of other records than these.
  func roomForStates(of keys: [RecordKey]) -> Int {
    if isSliced { return 0 }
    if recordBytes.isEmpty { return room.bytes }
    let wanted = Set(keys)
    return recordBytes.reduce(room.bytes) { wanted.contains($1.key) ? $0 : $0 - $1.value }
  }

  /// Decides how the states are loaded, when ``recordBytes`` is complete. ``records`` lacks some if
  /// all of them need more than the room.
  ///
  /// - Parameter count: Packets to apply together. Of several, each is tried alone.
  /// - Throws: `StoreError` if nothing can be decided in this attempt.
  package mutating func boundStates(of count: Int) throws(StoreError) {
    if recordBytes.values.reduce(0, +) > limits.packetStateBytes {
      guard count == 1 else { throw .needsMemory }
      (records, recordBytes) = ([:], [:])
      refused[.incoming(0)] = Problem(
        .limitExceeded,
        "the records of this packet have more than \(limits.packetStateBytes >> 20) MiB; send "
          + "fewer at once")
      return
    }
    if records.count == recordBytes.count, !isSliced { return }
    guard room.allowsSlices else { throw .needsMemory }
    isSliced = true
    records = [:]
  }
}
