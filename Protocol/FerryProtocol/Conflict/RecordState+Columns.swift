// The merge of one column written by two operations (SPEC.md §6). The column at `index` has the
// same name as the incoming write.

extension RecordState {
  /// Merges by last writer wins, without rules: the path of nearly all writes.
  mutating func mergeLatest(
    _ incoming: ColumnState, at index: Int, base: SequenceNumber, _ outcome: inout Outcome
  ) {
    switch Resolution.resolve(existing: columns[index].stamp, incoming: incoming.stamp) {
    case .incoming: replace(at: index, with: incoming, base: base, &outcome)
    case .existing: stand(at: index, against: incoming, &outcome)
    }
  }

  /// Merges by the column's policy.
  mutating func merge(
    _ incoming: ColumnState, at index: Int, of operation: SyncOperation, _ rules: TableRules,
    _ outcome: inout Outcome
  ) {
    let policy = rules.policy(of: incoming.name)
    if operation.increments.contains(incoming.name) {
      return add(incoming, at: index, isWhole: false, operation.base, &outcome)
    }
    switch policy {
    case .lastWriterWins:
      mergeLatest(incoming, at: index, base: operation.base, &outcome)
    case .counter where operation.kind == .insert:
      add(incoming, at: index, isWhole: true, operation.base, &outcome)
    case .counter:
      mergeLatest(incoming, at: index, base: operation.base, &outcome)
    case .serverWins, .ask, .clientWins:
      mergeKnowing(incoming, at: index, policy, base: operation.base, &outcome)
    case .max, .min:
      mergeExtreme(incoming, at: index, policy, base: operation.base, &outcome)
    case .setUnion:
      mergeUnion(incoming, at: index, base: operation.base, &outcome)
    case .textMerge:
      mergeText(incoming, at: index, of: operation, isAuthority: rules.isAuthority, &outcome)
    }
  }

  // MARK: Ends

  /// Replaces the column; a replaced value not seen by the author is listed as lost.
  private mutating func replace(
    at index: Int, with incoming: ColumnState, base: SequenceNumber, _ outcome: inout Outcome
  ) {
    let existing = columns[index]
    if existing.isUnseen(by: incoming.stamp.device, since: base), existing.value != incoming.value {
      outcome.conflicts.append(
        Conflict(
          column: incoming.name, lost: existing.value, loser: existing.stamp,
          winner: incoming.stamp))
    }
    columns[index] = incoming
  }

  /// Keeps the column; the author of the incoming value pulls it.
  private mutating func stand(
    at index: Int, against incoming: ColumnState, isQuestion: Bool = false,
    _ outcome: inout Outcome
  ) {
    let existing = columns[index]
    if existing.value != incoming.value {
      outcome.lose(
        Conflict(
          column: incoming.name, lost: incoming.value, loser: incoming.stamp,
          winner: existing.stamp, isQuestion: isQuestion))
    }
    columns[index].sequence = incoming.sequence
  }

  /// Sets a value with parts from both devices. Nothing is lost, and an author with another value
  /// pulls it.
  private mutating func share(at index: Int, _ value: Value, with incoming: ColumnState) {
    let existing = columns[index]
    columns[index].sequence = incoming.sequence
    if value == existing.value { return }
    let device = incoming.stamp.device
    columns[index].value = value
    columns[index].stamp = Stamp(
      time: max(existing.stamp.time, incoming.stamp.time), device: device)
    columns[index].origin = incoming.sequence
    columns[index].shared = existing.stamp.device == device ? existing.shared : existing.origin
  }

  // MARK: Policies

  /// Merges by the policies that depend on the author's knowledge of the present value.
  private mutating func mergeKnowing(
    _ incoming: ColumnState, at index: Int, _ policy: ConflictPolicy, base: SequenceNumber,
    _ outcome: inout Outcome
  ) {
    let existing = columns[index]
    guard existing.isUnseen(by: incoming.stamp.device, since: base),
      existing.value != incoming.value
    else { return mergeLatest(incoming, at: index, base: base, &outcome) }
    if policy == .clientWins {
      replace(at: index, with: incoming, base: base, &outcome)
    } else {
      stand(at: index, against: incoming, isQuestion: policy == .ask, &outcome)
    }
  }

  private mutating func mergeExtreme(
    _ incoming: ColumnState, at index: Int, _ policy: ConflictPolicy, base: SequenceNumber,
    _ outcome: inout Outcome
  ) {
    let existing = columns[index]
    if existing.value == incoming.value {
      mergeLatest(incoming, at: index, base: base, &outcome)
    } else if ValueOrder.extreme(existing.value, incoming.value, policy) == incoming.value {
      replace(at: index, with: incoming, base: base, &outcome)
    } else {
      stand(at: index, against: incoming, &outcome)
    }
  }

  /// Adds to a counter; any value but an integer counts as nothing.
  ///
  /// - Parameter isWhole: Whether the value is the content of its author's row, not an increment.
  private mutating func add(
    _ incoming: ColumnState, at index: Int, isWhole: Bool, _ base: SequenceNumber,
    _ outcome: inout Outcome
  ) {
    switch (columns[index].value, incoming.value) {
    case (.integer(let total), .integer(let amount)):
      share(at: index, .integer(total &+ amount), with: incoming)
      if isWhole && columns[index].value != incoming.value { outcome.isOverruled = true }
    case (_, .integer):
      replace(at: index, with: incoming, base: base, &outcome)
    case (.integer, _):
      stand(at: index, against: incoming, &outcome)
    default:
      mergeLatest(incoming, at: index, base: base, &outcome)
    }
  }

  private mutating func mergeUnion(
    _ incoming: ColumnState, at index: Int, base: SequenceNumber, _ outcome: inout Outcome
  ) {
    switch ArrayUnion.of(columns[index].value, incoming.value) {
    case .union(let value):
      share(at: index, value, with: incoming)
      if value != incoming.value { outcome.isOverruled = true }
    case .second: replace(at: index, with: incoming, base: base, &outcome)
    case .first: stand(at: index, against: incoming, &outcome)
    case .neither: mergeLatest(incoming, at: index, base: base, &outcome)
    }
  }

  private mutating func mergeText(
    _ incoming: ColumnState, at index: Int, of operation: SyncOperation, isAuthority: Bool,
    _ outcome: inout Outcome
  ) {
    let existing = columns[index]
    guard existing.value != incoming.value else {
      return mergeLatest(incoming, at: index, base: operation.base, &outcome)
    }
    guard let original = operation.original(of: incoming.name) else {
      return isAuthority
        ? mergeLatest(incoming, at: index, base: operation.base, &outcome)
        : mergeKnowing(incoming, at: index, .ask, base: operation.base, &outcome)
    }
    if existing.value == original {
      columns[index] = incoming
    } else if let merged = TextMerge.merge(
      original: original, existing.value, incoming.value)
    {
      share(at: index, merged, with: incoming)
      if merged != incoming.value { outcome.isOverruled = true }
    } else if isAuthority {
      mergeLatest(incoming, at: index, base: operation.base, &outcome)
    } else {
      stand(at: index, against: incoming, isQuestion: true, &outcome)
    }
  }
}
