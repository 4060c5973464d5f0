import FerryProtocol

// Joins two operations on one record into one, with the same result on the server (SPEC.md §4, §6).

extension SyncOperation {
  /// Returns one operation with the later one's id and time and the columns of both; `nil` if no
  /// single operation is equivalent.
  func joined(with later: SyncOperation, rules: TableRules) -> SyncOperation? {
    let isPlain = rules.isPlain && isPlainWrite && later.isPlainWrite
    if !isPlain && !canJoin(later, rules) { return nil }
    var joined = later
    joined.kind = kind == .insert || later.kind == .insert ? .insert : .update
    joined.base = min(base, later.base)
    joined.columns = columns.filter { column in
      !later.columns.contains { $0.name == column.name }
    }
    for column in joined.columns { joined.columnTimes[column.name] = time(of: column.name) }
    joined.columns += later.columns
    if !isPlain { joinOriginals(into: &joined, later) }
    return joined
  }

  private var isPlainWrite: Bool { increments.isEmpty && originals.isEmpty }

  private func canJoin(_ later: SyncOperation, _ rules: TableRules) -> Bool {
    if isSummand(rules) || later.isSummand(rules) { return false }
    for column in later.columns {
      // A change seen by the author in between is not concurrent with the later write.
      let policy = rules.policy(of: column.name)
      if base != later.base && policy.asksWhatWasSeen { return false }
      // The row here has the later value. The server reports another result only to an operation it
      // overrules or merges.
      guard let earlier = columns.first(where: { $0.name == column.name }) else { continue }
      if policy.joined(earlier.value, column.value) != column.value { return false }
    }
    return true
  }

  /// Returns true if the operation adds to a sum. A copy of this file may send it too, and a
  /// restarted chain sends it again. As part of another operation, the server would not recognise
  /// it and would add it twice.
  private func isSummand(_ rules: TableRules) -> Bool {
    if !increments.isEmpty { return true }
    guard kind == .insert else { return false }
    return columns.contains { rules.policy(of: $0.name) == .counter && $0.value.isSummand }
  }

  private func joinOriginals(into joined: inout SyncOperation, _ later: SyncOperation) {
    if joined.kind == .insert {
      // The texts of a new record have no original.
      joined.originals = []
    } else {
      joined.originals =
        originals
        + later.originals.filter { original in
          !columns.contains { $0.name == original.name }
        }
    }
  }
}

extension ConflictPolicy {
  /// True if the changes seen by the author decide a write.
  fileprivate var asksWhatWasSeen: Bool {
    switch self {
    case .serverWins, .clientWins, .textMerge, .ask: true
    case .lastWriterWins, .max, .min, .counter, .setUnion: false
    }
  }

  /// Returns the result of two writes of one device.
  fileprivate func joined(_ earlier: Value, _ later: Value) -> Value {
    switch self {
    case .max, .min: return ValueOrder.extreme(later, earlier, self)
    case .setUnion:
      switch ArrayUnion.of(earlier, later) {
      case .union(let value): return value
      case .first: return earlier
      case .second, .neither: return later
      }
    default: return later
    }
  }
}

extension Value {
  /// True if adding the value changes a sum.
  fileprivate var isSummand: Bool {
    if case .integer(let integer) = self { integer != 0 } else { false }
  }
}
