import FerryProtocol

/// Checks that a device's user sees his own writes.
///
/// Every read after a commit shows the device's own beat at least as high as the user has brought
/// it, and the posted ledger rows. (``MonotonicReads`` checks that rows stay after they were seen.)
///
/// If the file went back to an earlier state, by a loss of power or as a copy, this state counts.
/// Confirmed operations come back with the next pull; ``Convergence`` and
/// ``AcknowledgedOperations`` check this. Beats lost by the file are another writer's from then on:
/// a copy may have sent them. If the clock went back with the file, they are later than the
/// device's new writes (SPEC.md §6). So a read may show any number above the file's number after it
/// went back. If a device's clock is so far ahead that the server clamps its times, late operations
/// of a copy are clamped late, and overrule.
///
/// If the server was rolled back as well, it may have lost such a number. A file with the number
/// from a pull list cannot re-upload it. Then a read may show the number to which the device went
/// back.
///
/// A hostile server may confirm a write, and then hide the row for as long as it answers. Then only
/// the last read is judged.
package struct ReadYourWrites: Oracle {
  package static let name = "read-your-writes"

  private struct Writer {
    var beat: Int64?
    /// The highest number set.
    var highest: Int64 = 0
    /// The lowest permitted number of a read, if the file went back behind `highest`.
    var least: Int64?
    /// Posted since the last read.
    var posted: [Name] = []
  }

  private var writers: [String: Writer] = [:]
  private var serverWentBack = false
  private var isLiedTo = false
  private var doubts = ClampedStamps()

  package init() {}

  package mutating func see(_ event: RunEvent) -> [Violation] {
    switch event {
    case .committed(let device, let operations):
      for operation in operations { record(operation, of: device) }
    case .read(let device, let evidence): return isLiedTo ? [] : read(device, evidence.rows)
    case .serverWentBack: serverWentBack = true
    case .serverLies: isLiedTo = true
    case .confirmed: break
    case .lostPower(let device, let evidence):
      goBack(device, evidence.rows.beats.first { $0.0 == device }?.1)
      doubts.branch(device)
    case .copied(let device, let original, let evidence):
      goBack(device, evidence.rows.beats.first { $0.0 == device }?.1)
      doubts.branch(original)
    }
    return []
  }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    let found = final.replicas.sorted { $0.key < $1.key }.flatMap { read($0.key, $0.value.rows) }
    return found + doubts.confirmed(by: final.server)
  }

  private mutating func record(_ operation: LocalOperation, of device: String) {
    if let beat = operation.beat, operation.key.record == Name(device) {
      writers[device, default: Writer()].beat = beat
      writers[device, default: Writer()].highest = max(writers[device]?.highest ?? 0, beat)
    }
    if operation.key.table == "ledger", operation.kind == .insert {
      writers[device, default: Writer()].posted.append(operation.key.record)
    }
  }

  private mutating func goBack(_ device: String, _ beat: Int64?) {
    let before = writers[device] ?? Writer()
    var writer = Writer(beat: beat, highest: max(before.highest, beat ?? 0), least: before.least)
    if (beat ?? 0) < before.highest {
      writer.least = min(before.least ?? .max, (beat ?? 0) + 1)
    }
    writers[device] = writer
  }

  private mutating func read(_ device: String, _ rows: ReplicaRows) -> [Violation] {
    guard let writer = writers[device] else { return [] }
    var found: [Violation] = []
    func violation(_ what: String) -> Violation {
      Violation(oracle: Self.name, "\(device) \(what)")
    }
    if let beat = writer.beat {
      let shown = rows.beats.first { $0.0 == device }?.1
      writers[device]?.highest = max(writer.highest, shown ?? 0)
      let least = writer.least.map { serverWentBack ? $0 - 1 : $0 }
      if (shown ?? 0) < min(beat, least ?? beat) {
        let what = "shows its own beat as \(shown.map(String.init) ?? "none") after \(beat)"
        found += doubts.unlessDoubtful(violation(what), beatOf: device)
      }
    }
    if !writer.posted.isEmpty {
      let ledger = rows["ledger"]
      for record in writer.posted where ledger?.place(of: record) == nil {
        found.append(violation("does not show the ledger row \(record) that it has posted"))
      }
      writers[device]?.posted = []
    }
    return found
  }
}
