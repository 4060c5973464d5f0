import FerryProtocol

/// The parts of the file's tables that applying changes still asks the file for.
///
/// Everyone else uses the tables themselves.
extension ReplicaFile {
  func hasKept() throws -> Bool { try !kept.isEmpty() }

  func keep(_ change: Change, reason: String?) throws { try kept.keep(change, reason: reason) }

  func keep(_ change: UnreadableChange, of key: RecordKey) throws {
    try kept.keep(change, of: key)
  }

  func forgetKept(_ key: RecordKey) throws { try kept.forget(key) }

  func isKept(_ key: RecordKey) throws -> Bool { try kept.contains(key) }

  func kept(of key: RecordKey) throws -> KeptState? { try kept.state(of: key) }

  func keptChange(of key: RecordKey) throws -> KeptChange? { try kept.change(of: key) }

  func nextKept(_ choice: KeptChoice, after place: KeptPlace) throws -> KeptChange? {
    try kept.next(choice, after: place)
  }

  func hasPending() throws -> Bool { try !queue.isEmpty() }

  func hasOpenQuestions() throws -> Bool { try conflicts.hasOpenQuestions() }
}
