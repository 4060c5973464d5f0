import FerryProtocol

/// What a reader of one replica has seen does not go back: a device's beat never counts down, and a
/// row of the ledger that was there stays.
///
/// A file that goes back to an earlier state (after a loss of power, or as a copy) shows what it
/// then shows; its reader starts anew from there. And its own beat counts on from an earlier
/// number: numbers that it gives a second time tell no other reader anything, until it has passed
/// all that it ever gave. Where the clock was so far ahead that the server clamped its times, not
/// even then: what a copy of the file sends late is clamped late, and overrules (SPEC.md §6).
package struct MonotonicReads: Oracle {
  package static let name = "monotonic-reads"

  /// Beats that a device may have made without the harness hearing of it: one for each process
  /// that died between its commit and its word.
  private static let unheardMax: Int64 = 8

  private struct Reader {
    var ledger: [String] = []
    /// By device: no lower number may be read.
    var floors: [String: Int64] = [:]
  }

  /// A beat that counted on from an earlier number.
  private struct Repeat {
    /// The lowest number that it went back to.
    var from: Int64
    /// The highest number that it may give a second time.
    var to: Int64
  }

  private var readers: [String: Reader] = [:]
  private var highest: [String: Int64] = [:]
  private var repeats: [String: Repeat] = [:]
  private var doubts = ClampDoubts()

  package init() {}

  package mutating func see(_ event: RunEvent) -> [Violation] {
    switch event {
    case .committed(_, let operations):
      for operation in operations { note(operation) }
      return []
    case .read(let device, let evidence): return read(device, evidence.rows)
    case .confirmed: return []
    case .lostPower(let device, let survivors):
      restart(device, survivors.rows)
      doubts.branch(device)
    case .copied(let device, let original, let evidence):
      restart(device, evidence.rows)
      doubts.branch(original)
    }
    return []
  }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    let found = final.replicas.sorted { $0.key < $1.key }.flatMap { read($0.key, $0.value.rows) }
    return found + doubts.settled(by: final.server)
  }

  private mutating func note(_ operation: LocalOperation) {
    guard let beat = operation.beat else { return }
    highest[operation.key.record] = max(highest[operation.key.record] ?? 0, beat)
  }

  /// What a number says at least of how far the beat has come.
  private func least(_ beat: Int64, of device: String) -> Int64 {
    guard let again = repeats[device], beat <= again.to else { return beat }
    return min(beat, again.from)
  }

  // MARK: Reading

  private mutating func read(_ device: String, _ rows: ReplicaRows) -> [Violation] {
    var reader = readers[device] ?? Reader()
    readers[device] = nil
    var found: [Violation] = []
    func note(_ what: String) {
      found.append(Violation(oracle: Self.name, "\(device) \(what)"))
    }
    if let ledger = rows["ledger"] {
      if let gone = Self.firstMissing(of: reader.ledger, in: ledger.records) {
        note("does not show the ledger row \(gone) any more")
      }
      reader.ledger = ledger.records
    }
    let beats = rows.beats
    for (name, beat) in beats {
      let least = least(beat, of: name)
      let floor = reader.floors[name] ?? 0
      if least < floor {
        let what = "\(device) shows beat \(beat) of \(name) after \(floor)"
        found += doubts.unlessDoubtful(Violation(oracle: Self.name, what), beatOf: name)
      }
      reader.floors[name] = max(floor, least)
    }
    if beats.count < reader.floors.count {
      let shown = Set(beats.map(\.0))
      for name in reader.floors.keys.sorted() where !shown.contains(name) {
        note("does not show the beat of \(name) any more")
      }
    }
    readers[device] = reader
    return found
  }

  private mutating func restart(_ device: String, _ rows: ReplicaRows) {
    let own = rows.beats.first { $0.0 == device }?.1 ?? 0
    if let highest = highest[device] {
      let before = repeats[device]
      let again = Repeat(
        from: min(own, before?.from ?? own), to: max(highest + Self.unheardMax, before?.to ?? 0))
      repeats[device] = again
      for name in readers.keys {
        if let floor = readers[name]?.floors[device] {
          readers[name]?.floors[device] = min(floor, again.from)
        }
      }
    }
    var reader = Reader(ledger: rows["ledger"]?.records ?? [])
    for (name, beat) in rows.beats { reader.floors[name] = least(beat, of: name) }
    readers[device] = reader
  }

  /// Both ascending.
  private static func firstMissing(of before: [String], in now: [String]) -> String? {
    var place = 0
    for record in before {
      while place < now.count, now[place] != record { place += 1 }
      if place == now.count { return record }
      place += 1
    }
    return nil
  }
}

extension ReplicaRows {
  /// Each device's beat.
  var beats: [(String, Int64)] {
    guard let table = self["beats"], let column = table.place(ofColumn: "n") else { return [] }
    return table.records.indices.map { row in
      if case .integer(let beat) = table.value(row, column) {
        (table.records[row], beat)
      } else {
        (table.records[row], 0)
      }
    }
  }
}

extension LocalOperation {
  /// The number that it gives a beat.
  var beat: Int64? {
    guard key.table == "beats",
      case .integer(let beat)? = columns.first(where: { $0.name == "n" })?
        .value
    else { return nil }
    return beat
  }
}
