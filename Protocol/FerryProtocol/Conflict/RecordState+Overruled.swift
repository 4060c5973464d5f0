// The values that an operation with a reason overrules (SPEC.md §15).

extension RecordState {
  /// Returns the writes of other devices in this state that an operation has replaced or removed,
  /// also those seen by the operation's author. Merged values, such as sums, lose nothing.
  ///
  /// - Parameters:
  ///   - stamp: The operation's stamp.
  ///   - sequence: The operation's place.
  ///   - after: The state after the operation.
  package func overruled(
    by stamp: Stamp, at sequence: SequenceNumber, leaving after: RecordState
  ) -> [Conflict] {
    guard isAlive else {
      guard after.isAlive, let deleted, deleted.stamp.device != stamp.device else { return [] }
      return [.existence(deleted.stamp, to: stamp)]
    }
    let foreign = columns.filter { $0.stamp.device != stamp.device }
    guard after.isAlive else {
      let values = foreign.map { $0.lost(to: stamp) }
      guard let inserted, inserted.stamp.device != stamp.device else { return values }
      return [.existence(inserted.stamp, to: stamp)] + values
    }
    return foreign.compactMap { column in
      guard let present = after.column(column.name) else { return column.lost(to: stamp) }
      let isReplaced = present.origin == sequence && present.shared == 0
      return isReplaced && present.value != column.value ? column.lost(to: present.stamp) : nil
    }
  }

  private func column(_ name: Name) -> ColumnState? {
    let index = columns.partitioningIndex { $0.name >= name }
    return index < columns.count && columns[index].name == name ? columns[index] : nil
  }
}

extension ColumnState {
  fileprivate func lost(to winner: Stamp) -> Conflict {
    Conflict(column: name, lost: value, loser: stamp, winner: winner)
  }
}
