import FerryProtocol

/// A device's user sees what he wrote: every read after a commit shows the device's own beat at
/// least as high as he has brought it, and the ledger rows that he has posted. (That rows stay once
/// they were seen is ``MonotonicReads``'.)
///
/// Where the file went back to an earlier state, by a loss of power or as a copy, what it then
/// shows is what counts: what was confirmed comes back with the next pull, and ``Convergence`` and
/// ``AcknowledgedOperations`` see to it.
package struct ReadYourWrites: Oracle {
  package static let name = "read-your-writes"

  private struct Writer {
    var beat: Int64?
    /// Posted since the last read.
    var posted: [String] = []
  }

  private var writers: [String: Writer] = [:]

  package init() {}

  package mutating func see(_ event: RunEvent) -> [Violation] {
    switch event {
    case .committed(let device, let operations):
      for operation in operations { note(operation, of: device) }
    case .read(let device, let evidence): return read(device, evidence.rows)
    case .confirmed: break
    case .lostPower(let device, let evidence), .copied(let device, _, let evidence):
      writers[device] = Writer(beat: evidence.rows.beats.first { $0.0 == device }?.1)
    }
    return []
  }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    final.replicas.sorted { $0.key < $1.key }.flatMap { read($0.key, $0.value.rows) }
  }

  private mutating func note(_ operation: LocalOperation, of device: String) {
    if let beat = operation.beat, operation.key.record == device {
      writers[device, default: Writer()].beat = beat
    }
    if operation.key.table == "ledger", operation.kind == .insert {
      writers[device, default: Writer()].posted.append(operation.key.record)
    }
  }

  private mutating func read(_ device: String, _ rows: ReplicaRows) -> [Violation] {
    guard let writer = writers[device] else { return [] }
    var found: [String] = []
    if let beat = writer.beat {
      let shown = rows.beats.first { $0.0 == device }?.1
      if (shown ?? 0) < beat {
        found.append("shows its own beat as \(shown.map(String.init) ?? "none") after \(beat)")
      }
    }
    if !writer.posted.isEmpty {
      let ledger = rows["ledger"]
      for record in writer.posted where ledger?.place(of: record) == nil {
        found.append("does not show the ledger row \(record) that it has posted")
      }
      writers[device]?.posted = []
    }
    return found.map { Violation(oracle: Self.name, "\(device) \($0)") }
  }
}
