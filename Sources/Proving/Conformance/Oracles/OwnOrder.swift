import FerryProtocol

/// Checks that the operations of one replica file are in the history in the order of the user's
/// actions.
///
/// An operation merged into a later one has the later one's place. Left out are operations held by
/// two files: each file sends those that it knows, in separate packets. Left out is also a delete
/// without its insert in the history. No packet held both until it was cut again, and no other
/// device knew of the record.
package struct OwnOrder: Oracle {
  package static let name = "own-order"

  private var logs = FileLogs()

  package init() {}

  package mutating func see(_ event: RunEvent) -> [Violation] {
    logs.see(event)
    return []
  }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    var sequences: [OperationID: SequenceNumber] = [:]
    // A pruned operation sent once more by a copy of the file has its first place.
    for entry in final.server.history where sequences[entry.id] == nil {
      sequences[entry.id] = entry.sequence
    }
    return logs.files.flatMap { Self.violations(in: $0, sequences) }
  }

  private static func violations(
    in file: FileLog, _ sequences: [OperationID: SequenceNumber]
  ) -> [Violation] {
    var found: [Violation] = []
    var last: (id: OperationID, sequence: SequenceNumber)?
    var unheard = Set<RecordKey>()
    for entry in file.entries where !entry.isShared {
      let operation = entry.operation
      let sequence = sequences[operation.id]
      if operation.kind == .insert && sequence == nil { unheard.insert(operation.key) }
      guard let sequence, operation.kind != .delete || !unheard.contains(operation.key) else {
        continue
      }
      if operation.kind == .insert { unheard.remove(operation.key) }
      if let last, sequence < last.sequence {
        found.append(
          Violation(
            oracle: name,
            "\(file.device) wrote \(last.id) before \(entry.operation.id), but the history has the "
              + "reverse order (#\(sequence), #\(last.sequence))"))
      }
      last = (entry.operation.id, sequence)
    }
    return found
  }
}
