import FerryProtocol

/// Pulled changes waiting for the rest of their pull list, or for the schema.
struct WaitingChanges {
  let tables: LocalTables
  let staged: StagedPages
  let kept: KeptChanges
  /// The cursor: everything up to here is applied.
  let applied: SequenceNumber

  /// Returns waiting changes, oldest first.
  func oldest(_ limit: Int) throws -> [WaitingChange] {
    var waiting: [WaitingChange] = []
    var place = applied
    try staged.forEach { page in
      while waiting.count < limit, let batch = try page.next() {
        for case .success(let change) in batch.prefix(limit - waiting.count) {
          let reason = "the rest of its pull list is missing"
          waiting.append(WaitingChange(change, dependency: place, reason: reason))
          place = change.sequence
        }
      }
    }
    for next in try kept.changes(.all, limit: max(0, limit - waiting.count)) {
      let reason =
        next.reason ?? SpellingFault.reason(of: next.change, in: schema(of: next.change))
        ?? "its table or column does not exist here yet"
      waiting.append(WaitingChange(next.change, reason: reason))
    }
    return waiting
  }

  private func schema(of change: Change) -> TableSchema? {
    try? tables.schema(of: change.key.table)
  }
}

extension WaitingChange {
  init(_ change: Change, dependency: SequenceNumber? = nil, reason: String) {
    let state = change.state
    let stamps = [state.inserted?.stamp, state.deleted?.stamp] + state.columns.map(\.stamp)
    let isDead = state.deleted != nil && !state.isAlive
    self.init(
      sequence: change.sequence, key: change.key,
      kind: isDead ? .delete : state.inserted != nil ? .insert : .update,
      columns: state.columns.map { Column($0.name, $0.value) },
      time: stamps.compactMap { $0?.time }.max() ?? .zero, dependency: dependency, reason: reason)
  }
}
