/// Sorts the messages of a stream with open transactions (PostgreSQL manual, "Logical Replication
/// Message Formats", version 2 of the protocol); pure.
///
/// The server sends a large transaction in blocks before it commits, so it stores nothing of it. The
/// reader stores the messages instead. It removes those of an aborted part, and reads the rest when
/// the transaction commits.
package struct StreamedTransactions: Sendable {
  /// The effect of a message.
  package enum Effect: Sendable, Equatable {
    /// A message for ``PgoutputDecoder``: of a transaction sent as a whole.
    case decode(ArraySlice<UInt8>)
    /// A message of an open transaction, for ``PgoutputDecoder`` when it commits.
    case store(xid: UInt32, [UInt8])
    /// The stored messages of a transaction end here: the later ones are aborted.
    case cut(xid: UInt32, length: Int)
    /// A whole transaction is aborted.
    case drop(xid: UInt32)
    /// The stored messages belong between the two messages of a transaction.
    case commit(begin: PgoutputMessage, commit: PgoutputMessage)
    case nothing
  }

  /// A stored transaction.
  private struct Layout {
    /// The number of stored messages.
    var length = 0
    /// The subtransactions in the order of their first messages, and the messages before.
    var parts: [(xid: UInt32, start: Int)] = []
    var starts: [UInt32: Int] = [:]

    mutating func append(_ xid: UInt32) {
      if starts[xid] == nil {
        starts[xid] = length
        parts.append((xid, length))
      }
      length += 1
    }

    /// Removes a subtransaction, and all within it: they come behind. Returns `false` if it has no
    /// message.
    mutating func abort(_ xid: UInt32) -> Bool {
      guard let start = starts[xid] else { return false }
      while let last = parts.last, last.start >= start {
        starts[last.xid] = nil
        parts.removeLast()
      }
      length = start
      return true
    }
  }

  private var layouts: [UInt32: Layout] = [:]
  /// The transaction of the present block.
  private var open: UInt32?

  package init() {}

  /// True within a block of an open transaction.
  package var isOpen: Bool { open != nil }

  package mutating func add(_ bytes: ArraySlice<UInt8>) throws(ReplicationFault) -> Effect {
    var reader = ReplicationBytes(bytes)
    let kind = try reader.byte()
    if let open, kind != UInt8(ascii: "E") { return try change(of: open, kind, &reader) }
    switch kind {
    case UInt8(ascii: "S"):
      let xid = try reader.integer(UInt32.self)
      let isFirst = try reader.byte() != 0
      try reader.end()
      guard isFirst == (layouts[xid] == nil) else {
        throw ReplicationFault("the blocks of transaction \(xid) are incomplete")
      }
      if isFirst { layouts[xid] = Layout() }
      open = xid
      return .nothing
    case UInt8(ascii: "E"):
      guard open != nil else { throw ReplicationFault("a block ends that has not begun") }
      try reader.end()
      open = nil
      return .nothing
    case UInt8(ascii: "c"): return try commit(&reader)
    case UInt8(ascii: "A"):
      let (xid, part) = (try reader.integer(UInt32.self), try reader.integer(UInt32.self))
      try reader.end()
      guard layouts[xid] != nil else { return .nothing }
      if part == xid {
        layouts[xid] = nil
        return .drop(xid: xid)
      }
      guard layouts[xid]?.abort(part) == true, let length = layouts[xid]?.length else {
        return .nothing
      }
      return .cut(xid: xid, length: length)
    default: return .decode(bytes)
    }
  }

  private mutating func change(
    of xid: UInt32, _ kind: UInt8, _ reader: inout ReplicationBytes
  ) throws(ReplicationFault) -> Effect {
    switch kind {
    case UInt8(ascii: "O"): return .nothing
    case UInt8(ascii: "R"), UInt8(ascii: "Y"), UInt8(ascii: "I"), UInt8(ascii: "U"),
      UInt8(ascii: "D"), UInt8(ascii: "T"), UInt8(ascii: "M"):
      let part = try reader.integer(UInt32.self)
      layouts[xid]?.append(part)
      return .store(xid: xid, [kind] + reader.rest())
    default: throw ReplicationFault("a block has a message of the unknown kind \(kind)")
    }
  }

  private mutating func commit(
    _ reader: inout ReplicationBytes
  ) throws(ReplicationFault) -> Effect {
    let xid = try reader.integer(UInt32.self)
    _ = try reader.byte()
    let (commit, end) = (try reader.position(), try reader.position())
    let time = try reader.integer(Int64.self)
    try reader.end()
    guard layouts.removeValue(forKey: xid) != nil else {
      throw ReplicationFault("transaction \(xid) commits, and has not begun")
    }
    return .commit(
      begin: .begin(xid: xid, commit: commit, time: time),
      commit: .commit(commit: commit, end: end, time: time))
  }
}
