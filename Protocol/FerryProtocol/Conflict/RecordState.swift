/// A stamp with the place in the space's order at which it last mattered.
package struct SequencedStamp: Sendable, Equatable {
  package var stamp: Stamp
  package var sequence: SequenceNumber

  package init(stamp: Stamp, sequence: SequenceNumber) {
    self.stamp = stamp
    self.sequence = sequence
  }
}

/// One column's value with its writer.
package struct ColumnState: Sendable, Equatable {
  package var name: String
  package var value: Value
  package var stamp: Stamp
  package var sequence: SequenceNumber

  package init(name: String, value: Value, stamp: Stamp, sequence: SequenceNumber) {
    self.name = name
    self.value = value
    self.stamp = stamp
    self.sequence = sequence
  }
}

/// The merged state of a record: what is left of all operations that wrote it.
///
/// Each part is a register in which the greatest stamp stays, so any order of arrival gives the
/// same state. A delete erases every column write before it; a later insert brings the record
/// back with its own columns.
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

  /// Whether the record exists for a reader.
  package var isAlive: Bool {
    guard let inserted else { return false }
    guard let deleted else { return true }
    return inserted.stamp > deleted.stamp
  }

  /// The last place in the order at which anything of this record changed.
  package var sequence: SequenceNumber {
    var newest = max(inserted?.sequence ?? 0, deleted?.sequence ?? 0)
    for column in columns { newest = max(newest, column.sequence) }
    return newest
  }

  /// Merges one operation. Every part that the operation names gets `sequence`, also where the
  /// operation lost: so its author's next pull brings what stands instead.
  package mutating func merge(
    _ operation: Operation, stamp: Stamp, sequence: SequenceNumber
  ) -> Outcome {
    switch operation.kind {
    case .insert: insert(operation, stamp, sequence)
    case .update: update(operation, stamp, sequence)
    case .delete: delete(operation, stamp, sequence)
    }
  }

  // MARK: Kinds

  private mutating func insert(
    _ operation: Operation, _ stamp: Stamp, _ sequence: SequenceNumber
  ) -> Outcome {
    if PlantedFault.tombstoneForgotten.isPlanted { deleted = nil }
    let wasAlive = isAlive
    // Updates may have been merged into the insert: it is as old as its oldest column, so a
    // delete in between erases all of it or nothing.
    let own = operation.columns.map { operation.stamp(of: $0.name, within: stamp) }.min() ?? stamp
    if let existing = inserted {
      inserted?.stamp = max(existing.stamp, own)
    } else {
      inserted = SequencedStamp(stamp: own, sequence: sequence)
    }
    var outcome = write(operation, stamp, sequence)
    if let deleted, !isAlive { outcome.lose(.existence(own, to: deleted.stamp)) }
    // What others wrote to the dead record is alive again, and its author does not know it.
    if isAlive && !wasAlive && columns.count > operation.columns.count {
      outcome.isOverruled = true
    }
    settle(wasAlive: wasAlive, sequence)
    return outcome
  }

  private mutating func update(
    _ operation: Operation, _ stamp: Stamp, _ sequence: SequenceNumber
  ) -> Outcome {
    var outcome = write(operation, stamp, sequence)
    if !isAlive {
      outcome.lose(.existence(stamp, to: deleted?.stamp ?? stamp))
      deleted?.sequence = sequence
    }
    return outcome
  }

  private mutating func delete(
    _ operation: Operation, _ stamp: Stamp, _ sequence: SequenceNumber
  ) -> Outcome {
    let wasAlive = isAlive
    var outcome = Outcome.applied
    if let existing = deleted, existing.stamp >= stamp {
      // An earlier or the same delete: the record's state does not change.
    } else {
      deleted = SequencedStamp(stamp: stamp, sequence: sequence)
      // Lost are the writes that the author had not seen: erased, or hidden with the record.
      outcome.conflicts = columns.compactMap { column in
        guard column.sequence > operation.base, column.stamp.device != stamp.device,
          column.stamp < stamp || !isAlive
        else { return nil }
        return Conflict(
          column: column.name, lost: column.value, loser: column.stamp, winner: stamp)
      }
      columns.removeAll { $0.stamp < stamp }
    }
    if isAlive, let inserted {
      outcome.lose(.existence(stamp, to: inserted.stamp))
      touchAll(sequence)
    }
    settle(wasAlive: wasAlive, sequence)
    return outcome
  }

  // MARK: Parts

  /// Merges the operation's columns one by one.
  private mutating func write(
    _ operation: Operation, _ stamp: Stamp, _ sequence: SequenceNumber
  ) -> Outcome {
    var outcome = Outcome.applied
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
      merge(incoming, base: operation.base, &outcome)
    }
    // Nothing stands in an erased column's place: only the whole record takes it back.
    if hasErased && isAlive { touchAll(sequence) }
    return outcome
  }

  private mutating func merge(
    _ incoming: ColumnState, base: SequenceNumber, _ outcome: inout Outcome
  ) {
    let index = columns.partitioningIndex { $0.name >= incoming.name }
    guard index < columns.count, columns[index].name == incoming.name else {
      columns.insert(incoming, at: index)
      return
    }
    let existing = columns[index]
    switch Resolution.resolve(existing: existing.stamp, incoming: incoming.stamp) {
    case .incoming:
      if !PlantedFault.conflictNotRecorded.isPlanted, existing.sequence > base,
        existing.stamp.device != incoming.stamp.device,
        existing.value != incoming.value
      {
        outcome.conflicts.append(
          Conflict(
            column: incoming.name, lost: existing.value, loser: existing.stamp,
            winner: incoming.stamp))
      }
      columns[index] = incoming
    case .existing:
      if existing.value != incoming.value {
        outcome.lose(
          Conflict(
            column: incoming.name, lost: incoming.value, loser: incoming.stamp,
            winner: existing.stamp))
      }
      columns[index].sequence = incoming.sequence
    }
  }

  /// A record that came to life is sent whole; one that is dead is sent as its tombstone.
  private mutating func settle(wasAlive: Bool, _ sequence: SequenceNumber) {
    if isAlive {
      if !wasAlive { touchAll(sequence) }
    } else {
      deleted?.sequence = sequence
    }
  }

  private mutating func touchAll(_ sequence: SequenceNumber) {
    inserted?.sequence = sequence
    for index in columns.indices { columns[index].sequence = sequence }
  }
}

extension Operation {
  /// Who wrote `column`, and when. A clamped operation's columns are no later than the operation,
  /// and a device's own writes keep their order.
  fileprivate func stamp(of column: String, within stamp: Stamp) -> Stamp {
    Stamp(time: min(time(of: column), stamp.time), device: stamp.device)
  }
}

extension Outcome {
  /// Notes a part of the operation that did not take effect.
  fileprivate mutating func lose(_ conflict: Conflict) {
    conflicts.append(conflict)
    if !PlantedFault.loserNotTold.isPlanted { isOverruled = true }
  }
}

extension Conflict {
  fileprivate static func existence(_ loser: Stamp, to winner: Stamp) -> Conflict {
    Conflict(column: nil, lost: .null, loser: loser, winner: winner)
  }
}

extension Array {
  /// The first index whose element satisfies `predicate`, in an array that is partitioned by it.
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
