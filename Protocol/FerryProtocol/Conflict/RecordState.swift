/// A stamp with the place in the space's order at which it last mattered.
package struct SequencedStamp: Sendable, Equatable {
  package var stamp: Stamp
  package var sequence: SequenceNumber
  /// The place at which it was written; ``sequence`` moves on if the record is sent again.
  package var origin: SequenceNumber

  package init(stamp: Stamp, sequence: SequenceNumber, origin: SequenceNumber? = nil) {
    self.stamp = stamp
    self.sequence = sequence
    self.origin = origin ?? sequence
  }

  /// Returns whether it was written after `base` by another device than `device`.
  package func isUnseen(by device: DeviceID, since base: SequenceNumber) -> Bool {
    origin > base && stamp.device != device
  }
}

/// The value of one column, with the writer.
package struct ColumnState: Sendable, Equatable {
  package var name: Name
  package var value: Value
  package var stamp: Stamp
  package var sequence: SequenceNumber
  /// The place at which the value was written; ``sequence`` moves on if a write lost to it.
  package var origin: SequenceNumber
  /// The newest place at which a device other than the stamp's contributed to the value. A sum, a
  /// union or a merged text may be several devices' work. 0 if one device wrote all of it.
  package var shared: SequenceNumber

  package init(
    name: Name, value: Value, stamp: Stamp, sequence: SequenceNumber,
    origin: SequenceNumber? = nil, shared: SequenceNumber = 0
  ) {
    self.name = name
    self.value = value
    self.stamp = stamp
    self.sequence = sequence
    self.origin = origin ?? sequence
    self.shared = shared
  }

  /// About how many bytes the column takes as JSON; escapes need more.
  package var jsonBytes: Int { name.utf8.count + value.jsonBytes + 4 }

  /// Returns whether any of it was written after `base` by another device than `device`.
  package func isUnseen(by device: DeviceID, since base: SequenceNumber) -> Bool {
    (stamp.device != device ? origin : shared) > base
  }
}

/// The merged state of a record: the remaining effect of all writing operations.
///
/// Without rules each part is a register that keeps the greatest stamp, so any order of arrival
/// gives the same state. A delete erases every column write before it; a later insert brings the
/// record back with its own columns. If edits may win against deletes, a delete only hides the
/// columns, so an edit can bring them back.
package struct RecordState: Sendable, Equatable {
  /// The latest insert.
  package var inserted: SequencedStamp?
  /// The latest delete.
  package var deleted: SequencedStamp?
  /// Sorted by name.
  package var columns: [ColumnState]

  package init(
    inserted: SequencedStamp? = nil, deleted: SequencedStamp? = nil, columns: [ColumnState] = []
  ) {
    self.inserted = inserted
    self.deleted = deleted
    self.columns = columns
  }

  /// True if nothing has been written.
  package var isEmpty: Bool { inserted == nil && deleted == nil && columns.isEmpty }

  /// True if the record exists for a reader.
  package var isAlive: Bool {
    guard let inserted else { return false }
    guard let deleted else { return true }
    return inserted.stamp > deleted.stamp
  }

  /// The insert that wrote all of the record; `nil` if another operation has changed or touched it
  /// since.
  package var soleInsert: SequencedStamp? {
    guard deleted == nil, let inserted, inserted.origin == inserted.sequence else { return nil }
    let isSole = columns.allSatisfy {
      $0.sequence == inserted.sequence && $0.origin == inserted.origin && $0.shared == 0
        && $0.stamp == inserted.stamp
    }
    return isSole ? inserted : nil
  }

  /// The last place in the order at which anything of this record changed.
  package var sequence: SequenceNumber {
    var newest = max(inserted?.sequence ?? 0, deleted?.sequence ?? 0)
    for column in columns { newest = max(newest, column.sequence) }
    return newest
  }

  /// The device that has written last to the record; `nil` if nothing has been written.
  package var newestAuthor: DeviceID? {
    var newest = [inserted, deleted].compactMap(\.self).max { $0.origin < $1.origin }
      .map { (origin: $0.origin, device: $0.stamp.device) }
    for column in columns where column.origin >= newest?.origin ?? 0 {
      newest = (column.origin, column.stamp.device)
    }
    return newest?.device
  }

  /// Merges one operation by the rules of the table. Every part named in the operation gets
  /// `sequence`, even if the operation lost. So the author's next pull brings the present values.
  package mutating func merge(
    _ operation: SyncOperation, stamp: Stamp, sequence: SequenceNumber,
    rules: TableRules = .standard
  ) -> Outcome {
    var outcome = Outcome.applied
    if !rules.isPlain, settlesLife(operation, stamp, sequence, rules, &outcome) { return outcome }
    switch operation.kind {
    case .insert: insert(operation, stamp, sequence, rules, &outcome)
    case .update: update(operation, stamp, sequence, rules, &outcome)
    case .delete: delete(operation, stamp, sequence, rules, &outcome)
    case .batch: preconditionFailure("a batch is merged record by record")
    }
    return outcome
  }

  // MARK: Kinds

  private mutating func insert(
    _ operation: SyncOperation, _ stamp: Stamp, _ sequence: SequenceNumber, _ rules: TableRules,
    _ outcome: inout Outcome
  ) {
    let wasAlive = isAlive
    let own = operation.insertStamp(within: stamp)
    if let existing = inserted {
      if own > existing.stamp {
        inserted = SequencedStamp(stamp: own, sequence: existing.sequence, origin: sequence)
      }
    } else {
      inserted = SequencedStamp(stamp: own, sequence: sequence)
    }
    write(operation, stamp, sequence, rules, &outcome)
    if let deleted, !isAlive { loseLife(operation, own, stamp, to: deleted.stamp, &outcome) }
    // Other devices' writes to the dead record are alive again, and the author does not know them.
    if isAlive && !wasAlive && columns.count > operation.columns.count {
      outcome.isOverruled = true
    }
    resetStamps(wasAlive: wasAlive, sequence)
  }

  private mutating func update(
    _ operation: SyncOperation, _ stamp: Stamp, _ sequence: SequenceNumber, _ rules: TableRules,
    _ outcome: inout Outcome
  ) {
    write(operation, stamp, sequence, rules, &outcome)
    guard !isAlive else { return }
    guard let deleted else {
      // No write wins against it: the record has not been inserted yet.
      outcome.isOverruled = true
      return
    }
    loseLife(operation, stamp, stamp, to: deleted.stamp, &outcome)
    self.deleted?.sequence = sequence
  }

  private mutating func delete(
    _ operation: SyncOperation, _ stamp: Stamp, _ sequence: SequenceNumber, _ rules: TableRules,
    _ outcome: inout Outcome
  ) {
    let wasAlive = isAlive
    if let existing = deleted, existing.stamp >= stamp {
      // An earlier or the same delete: the record's state does not change.
    } else {
      // Of several deletes in a row, readers may have seen the first.
      let origin = wasAlive ? sequence : deleted?.origin ?? sequence
      deleted = SequencedStamp(stamp: stamp, sequence: sequence, origin: origin)
      if rules.deletes == .deleteWins || rules.isAuthority {
        listInsert(before: stamp, operation.base, wasAlive, &outcome)
        listColumns(before: stamp, operation.base, &outcome)
      }
      // An edit that wins against the delete brings the columns back.
      if rules.deletes == .deleteWins { columns.removeAll { $0.stamp < stamp } }
    }
    if isAlive, let inserted {
      outcome.lose(.existence(stamp, to: inserted.stamp))
      touchAll(sequence)
    }
    resetStamps(wasAlive: wasAlive, sequence)
  }

  // MARK: Parts

  /// Lists the insert of a record without columns, if the delete's author had not seen it: no value
  /// shows the loss of the record.
  private func listInsert(
    before stamp: Stamp, _ base: SequenceNumber, _ wasAlive: Bool, _ outcome: inout Outcome
  ) {
    guard wasAlive, columns.isEmpty, let inserted, inserted.stamp < stamp,
      inserted.isUnseen(by: stamp.device, since: base)
    else { return }
    outcome.conflicts.append(.existence(inserted.stamp, to: stamp))
  }

  /// Lists the writes not seen by the delete's author as lost: they are erased, or hidden with the
  /// record.
  private func listColumns(
    before stamp: Stamp, _ base: SequenceNumber, _ outcome: inout Outcome
  ) {
    outcome.conflicts += columns.compactMap { column in
      guard column.isUnseen(by: stamp.device, since: base), column.stamp < stamp || !isAlive
      else { return nil }
      return Conflict(column: column.name, lost: column.value, loser: column.stamp, winner: stamp)
    }
  }

  /// Merges the operation's columns one by one.
  private mutating func write(
    _ operation: SyncOperation, _ stamp: Stamp, _ sequence: SequenceNumber, _ rules: TableRules,
    _ outcome: inout Outcome
  ) {
    if columns.isEmpty && deleted == nil { return fill(operation, stamp, sequence) }
    let isPlain = rules.isPlain && operation.increments.isEmpty
    var hasErased = false
    for column in operation.columns {
      let own = operation.stamp(of: column.name, within: stamp)
      if let deleted, deleted.stamp > own {
        outcome.lose(
          Conflict(column: column.name, lost: column.value, loser: own, winner: deleted.stamp))
        hasErased = true
        continue
      }
      let incoming = ColumnState(
        name: column.name, value: column.value, stamp: own, sequence: sequence)
      let index = columns.partitioningIndex { $0.name >= incoming.name }
      if index == columns.count || columns[index].name != incoming.name {
        columns.insert(incoming, at: index)
      } else if isPlain {
        mergeLatest(incoming, at: index, base: operation.base, &outcome)
      } else {
        merge(incoming, at: index, of: operation, rules, &outcome)
      }
    }
    // No value replaces an erased column: only the whole record removes it from the author's table.
    if hasErased && isAlive { touchAll(sequence) }
  }

  /// Writes the columns of an empty record. Nothing is merged.
  private mutating func fill(
    _ operation: SyncOperation, _ stamp: Stamp, _ sequence: SequenceNumber
  ) {
    let written = operation.columns
    let order = written.ascendingOrder
    columns.reserveCapacity(written.count)
    for index in written.indices {
      let column = written[order?[index] ?? index]
      columns.append(
        ColumnState(
          name: column.name, value: column.value,
          stamp: operation.stamp(of: column.name, within: stamp), sequence: sequence))
    }
  }

  /// Marks a revived record to be sent whole, and a dead one as a tombstone.
  private mutating func resetStamps(wasAlive: Bool, _ sequence: SequenceNumber) {
    if isAlive {
      if !wasAlive { touchAll(sequence) }
    } else {
      deleted?.sequence = sequence
    }
  }

  /// Marks the record to be sent whole to all devices.
  mutating func touchAll(_ sequence: SequenceNumber) {
    inserted?.sequence = sequence
    for index in columns.indices { columns[index].sequence = sequence }
  }
}

extension SyncOperation {
  /// Returns the writer and time of `column`. A clamped operation's columns are no later than the
  /// operation, and a device's own writes keep their order.
  func stamp(of column: Name, within stamp: Stamp) -> Stamp {
    Stamp(time: min(time(of: column), stamp.time), device: stamp.device)
  }

  /// Returns the stamp of an insert, which is as old as the oldest column. Updates may have been
  /// merged into it: a delete in between erases all of it or nothing.
  func insertStamp(within stamp: Stamp) -> Stamp {
    if hasOneTime {
      return columns.isEmpty ? stamp : Stamp(time: min(time, stamp.time), device: stamp.device)
    }
    return columns.map { self.stamp(of: $0.name, within: stamp) }.min() ?? stamp
  }
}

extension [Column] {
  /// The places of the columns in the order of their names; `nil` if they are in it already.
  fileprivate var ascendingOrder: [Int]? {
    let ascend = indices.dropFirst().allSatisfy { self[$0 - 1].name < self[$0].name }
    return ascend ? nil : indices.sorted { self[$0].name < self[$1].name }
  }
}

extension Outcome {
  /// Records a part of the operation without effect.
  mutating func lose(_ conflict: Conflict) {
    conflicts.append(conflict)
    isOverruled = true
  }
}

extension Conflict {
  static func existence(
    _ loser: Stamp, to winner: Stamp, isQuestion: Bool = false
  ) -> Conflict {
    Conflict(column: nil, lost: .null, loser: loser, winner: winner, isQuestion: isQuestion)
  }
}

extension Array {
  /// Returns the first index with an element that satisfies `predicate`, in an array partitioned by
  /// it.
  package func partitioningIndex(where predicate: (Element) -> Bool) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if predicate(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
