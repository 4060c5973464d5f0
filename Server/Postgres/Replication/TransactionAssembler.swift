/// A change of a transaction, in the order of the log.
package enum ReplicatedChange: Sendable, Equatable {
  case insert(PgoutputRelation, new: [PgoutputValue])
  case update(PgoutputRelation, old: PgoutputOld?, new: [PgoutputValue])
  case delete(PgoutputRelation, old: PgoutputOld)
  case truncate(PgoutputRelation)
  case message(prefix: String, content: [UInt8])

  /// The approximate memory.
  package var bytes: Int {
    let values: [PgoutputValue]
    switch self {
    case .insert(_, let new): values = new
    case .update(_, let old, let new): values = (old?.values ?? []) + new
    case .delete(_, let old): values = old.values
    case .truncate: values = []
    case .message(_, let content): return 64 + content.count
    }
    return values.reduce(64) { $0 + 24 + $1.bytes }
  }
}

/// A transaction, or a part of a large one.
package struct ReplicatedPart: Sendable, Equatable {
  package var xid: UInt32
  /// The position of the commit.
  package var commit: PostgresLSN
  /// The time of the commit, in microseconds since 2000-01-01 UTC.
  package var time: Int64
  package var changes: [ReplicatedChange] = []
  package var isFirst = true
  /// The position behind the transaction; `nil` if another part follows.
  package var end: PostgresLSN?
}

/// Assembles transactions of messages, in the order of their commits; pure. A transaction with many
/// changes is handed on in parts, so the memory has a bound.
package struct TransactionAssembler: Sendable {
  private let bytesMax: Int
  private var relations: [UInt32: PgoutputRelation] = [:]
  private var open: ReplicatedPart?
  private var bytes = 0

  /// - Parameter bytesMax: the approximate memory of a part; a single larger change is a part.
  package init(bytesMax: Int) { self.bytesMax = bytesMax }

  /// True between the beginning and the end of a transaction.
  package var isOpen: Bool { open != nil }

  /// Adds a message. Returns a complete transaction, or a part of a large one.
  package mutating func add(
    _ message: PgoutputMessage
  ) throws(ReplicationFault) -> ReplicatedPart? {
    switch message {
    case .begin(let xid, let commit, let time):
      guard open == nil else { throw ReplicationFault("a transaction begins within another one") }
      (open, bytes) = (ReplicatedPart(xid: xid, commit: commit, time: time), 0)
      return nil
    case .commit(let commit, let end, _):
      guard let part = open else {
        throw ReplicationFault("a transaction ends that has not begun")
      }
      guard commit == part.commit, end >= commit else {
        throw ReplicationFault("a transaction ends at \(commit) instead of \(part.commit)")
      }
      open = nil
      var last = part
      last.end = end
      return last
    case .relation(let relation): relations[relation.id] = relation
    case .insert(let id, let new):
      return try add(.insert(try relation(id, new), new: new))
    case .update(let id, let old, let new):
      if let old { _ = try relation(id, old.values) }
      return try add(.update(try relation(id, new), old: old, new: new))
    case .delete(let id, let old):
      return try add(.delete(try relation(id, old.values), old: old))
    case .truncate(let ids):
      var found: ReplicatedPart?
      // A part after each would be too many: tables are few.
      for id in ids {
        if let part = try add(.truncate(try relation(id))) { found = Self.joined(found, part) }
      }
      return found
    case .message(let isTransactional, let prefix, let content):
      guard isTransactional else { return nil }
      return try add(.message(prefix: prefix, content: content))
    case .type, .origin: break
    }
    return nil
  }

  private static func joined(_ one: ReplicatedPart?, _ other: ReplicatedPart) -> ReplicatedPart {
    guard var one else { return other }
    one.changes += other.changes
    return one
  }

  private mutating func add(
    _ change: ReplicatedChange
  ) throws(ReplicationFault) -> ReplicatedPart? {
    guard open != nil else { throw ReplicationFault("a change belongs to no transaction") }
    open?.changes.append(change)
    bytes += change.bytes
    guard bytes > bytesMax, let part = open else { return nil }
    open?.changes = []
    open?.isFirst = false
    bytes = 0
    return part
  }

  private func relation(_ id: UInt32) throws(ReplicationFault) -> PgoutputRelation {
    guard let relation = relations[id] else {
      throw ReplicationFault("a row belongs to the unknown table \(id)")
    }
    return relation
  }

  private func relation(
    _ id: UInt32, _ values: [PgoutputValue]
  ) throws(ReplicationFault) -> PgoutputRelation {
    let relation = try relation(id)
    guard values.count == relation.columns.count else {
      throw ReplicationFault(
        "a row of table \(relation.name) has \(values.count) values instead of "
          + "\(relation.columns.count)")
    }
    return relation
  }
}
