import FerryProtocol

/// This device's write that another device overruled with a reason (SPEC.md §15): a pure rule. The
/// user finds it in the quarantine, and may send it again.
struct OverruledWrite: Equatable {
  /// The operation that overruled it.
  let operation: OperationID
  /// The place of the operation in the space.
  let sequence: SequenceNumber
  let key: RecordKey
  let kind: OperationKind
  /// The lost values; of an insert, the whole row with them.
  var columns: [Column]
  let reason: String
  /// The newest operation that overruled a part of it.
  let winner: HybridTimestamp

  /// Returns the writes that this device lost, by the notices of a page; one for each operation and
  /// record. The device may have lost some values under a former identifier, in a notice of its own.
  static func all(in notices: [Notice], of own: OwnNames) -> [OverruledWrite] {
    var places: [Loss: Int] = [:]
    var lost: [(notice: Notice, conflicts: [Conflict])] = []
    for notice in notices where notice.overruling != nil {
      // A device with another identifier than before may overrule a former value of its own.
      let conflicts = notice.conflicts.filter { own.wrote($0.loser) && !own.wrote($0.winner) }
      if conflicts.isEmpty { continue }
      let loss = Loss(operation: notice.operation, key: notice.key)
      if let place = places[loss] {
        lost[place].conflicts += conflicts
      } else {
        places[loss] = lost.count
        lost.append((notice, conflicts))
      }
    }
    return lost.compactMap { OverruledWrite($0.notice, $0.conflicts) }
  }

  private struct Loss: Hashable {
    let operation: OperationID
    let key: RecordKey
  }

  private init?(_ notice: Notice, _ conflicts: [Conflict]) {
    guard let overruling = notice.overruling else { return nil }
    (operation, sequence) = (notice.operation, notice.sequence)
    (key, reason) = (notice.key, overruling.reason)
    winner = conflicts.map(\.winner.time).max() ?? .zero
    if overruling.kind == .delete {
      kind = .insert
    } else {
      // A record exists again against this device's delete.
      kind = conflicts.contains { $0.column == nil } ? .delete : .update
    }
    let limits = Limits.standard
    var values: [Name: (value: Value, time: HybridTimestamp)] = [:]
    for conflict in conflicts where kind != .delete {
      guard let name = conflict.column, NameRule.fault(in: name, limits: limits) == nil else {
        continue
      }
      if let known = values[name], known.time > conflict.loser.time { continue }
      values[name] = (conflict.lost, conflict.loser.time)
    }
    columns = values.sorted { $0.key < $1.key }.prefix(limits.columns)
      .map { Column($0.key, $0.value.value) }
  }

  /// True if the write needs the device's row: to write a removed record again as a whole, or to show
  /// a deleted one.
  var needsRow: Bool { kind != .update }

  /// Adds the columns of the device's row that were not lost.
  mutating func complete(with row: [Column]) {
    let (lost, limits) = (Set(columns.map(\.name)), Limits.standard)
    // A value too large to be sent would make the entry unreadable.
    columns += row.filter {
      !lost.contains($0.name) && $0.value.byteCount <= limits.valueBytes
    }.prefix(max(0, limits.columns - columns.count))
  }
}
