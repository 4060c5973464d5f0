import FerryProtocol

/// What a reader of one replica has seen does not go back: a device's beat never counts down, and a
/// row of the ledger that was there stays.
///
/// A file that goes back to an earlier state (after a loss of power, or as a copy) shows what it
/// then shows; its reader starts anew from there. And its own beat counts on from an earlier
/// number: numbers that it gives a second time tell no other reader anything, until it has passed
/// all that it ever gave. Where the clock was so far ahead that the server clamped its times, not
/// even then: what a copy of the file sends late is clamped late, and overrules (SPEC.md §6).
///
/// A replica that was read at a point of a history which is gone, since the server was set back,
/// may go back from there once: to what the server has, until others have given it their later
/// beats again. A beat that is only in a row that was given back may go back as well: such a row is
/// older than all that the beat's device sends again, one after the other. Rows of the ledger it keeps,
/// since it gives them back itself; unless so much was pruned since that nobody knows what the server
/// lost and what was deleted: then it gives up what the server does not have, says so, and its reader
/// starts anew.
package struct MonotonicReads: Oracle {
  package static let name = "monotonic-reads"

  /// Beats that a device may have made without the harness hearing of it: one for each process
  /// that died between its commit and its word.
  private static let unheardMax: Int64 = 8

  private struct Reader {
    var ledger: [Name] = []
    /// By device: no lower number may be read.
    var floors: [String: Floor] = [:]
    /// The newest anchor that it was read at.
    var anchor: Cursor.Anchor?
    /// See ``ReplicaEvidence/losses``.
    var losses: Int64 = 0
  }

  /// What was read, and at which point of the history first.
  private struct Floor {
    var beat: Int64 = 0
    var anchor: Cursor.Anchor?
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
  /// Beats that went back, each with the point from which: held until it is known whether that
  /// point is in the history that there is.
  private var regresses: [(from: Floor, device: String, violation: Violation)] = []
  private var lineage = Lineage()

  package init() {}

  package mutating func see(_ event: RunEvent) -> [Violation] {
    switch event {
    case .committed(_, let operations):
      for operation in operations { note(operation) }
      return []
    case .read(let device, let evidence): return read(device, evidence)
    case .confirmed: return []
    case .serverWentBack(let before, let survivors):
      lineage.goBack(from: before, to: survivors)
      return []
    case .lostPower(let device, let survivors):
      restart(device, survivors)
      doubts.branch(device)
    case .copied(let device, let original, let evidence):
      restart(device, evidence)
      doubts.branch(original)
    }
    return []
  }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    var found = final.replicas.sorted { $0.key < $1.key }.flatMap { read($0.key, $0.value) }
    let history = final.server.history
    for regress in regresses {
      guard let anchor = regress.from.anchor, lineage.holds(anchor, in: history) else { continue }
      let known = history.prefix(Int(clamping: anchor.head))
      if known.haveGivenBack(regress.from.beat, of: regress.device) { continue }
      found += doubts.unlessDoubtful(regress.violation, beatOf: regress.device)
    }
    return found + doubts.settled(by: final.server)
  }

  private mutating func note(_ operation: LocalOperation) {
    guard let beat = operation.beat else { return }
    let device = operation.key.record.text
    highest[device] = max(highest[device] ?? 0, beat)
  }

  /// What a number says at least of how far the beat has come.
  private func least(_ beat: Int64, of device: String) -> Int64 {
    guard let again = repeats[device], beat <= again.to else { return beat }
    return min(beat, again.from)
  }

  // MARK: Reading

  private mutating func read(_ device: String, _ evidence: ReplicaEvidence) -> [Violation] {
    let rows = evidence.rows
    var reader = readers[device] ?? Reader()
    readers[device] = nil
    if evidence.losses != reader.losses && lineage.wentBack { reader = Reader() }
    reader.losses = evidence.losses
    if !evidence.isReplacing { reader.anchor = evidence.anchor }
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
    // Rows that are being replaced are of the history that the server refused. Where this one was
    // read last, they may not have been there yet: of which point they are is not known.
    let isOfAnother = evidence.isRescuing && lineage.wentBack
    for (name, beat) in beats {
      let least = least(beat, of: name)
      let floor = reader.floors[name] ?? Floor()
      if least < floor.beat {
        let what = "\(device) shows beat \(beat) of \(name) after \(floor.beat)"
        let violation = Violation(oracle: Self.name, what)
        if lineage.wentBack, floor.anchor != nil {
          regresses.append((floor, name, violation))
        } else {
          found += doubts.unlessDoubtful(violation, beatOf: name)
        }
      }
      if least > floor.beat ? !isOfAnother : least < floor.beat && lineage.wentBack {
        reader.floors[name] = Floor(beat: least, anchor: reader.anchor)
      }
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

  private mutating func restart(_ device: String, _ evidence: ReplicaEvidence) {
    let rows = evidence.rows
    let own = rows.beats.first { $0.0 == device }?.1 ?? 0
    if let highest = highest[device] {
      let before = repeats[device]
      let again = Repeat(
        from: min(own, before?.from ?? own), to: max(highest + Self.unheardMax, before?.to ?? 0))
      repeats[device] = again
      for name in readers.keys {
        if let floor = readers[name]?.floors[device], floor.beat > again.from {
          readers[name]?.floors[device]?.beat = again.from
        }
      }
    }
    var reader = Reader(ledger: rows["ledger"]?.records ?? [])
    (reader.anchor, reader.losses) = (evidence.anchor, evidence.losses)
    // The anchor of a file that is being replaced is the list's that is under way, not its rows'.
    let isOfAnother = evidence.isRescuing && lineage.wentBack
    for (name, beat) in rows.beats {
      reader.floors[name] = Floor(
        beat: isOfAnother ? 0 : least(beat, of: name), anchor: evidence.anchor)
    }
    readers[device] = reader
  }

  /// Both ascending.
  private static func firstMissing(of before: [Name], in now: [Name]) -> Name? {
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
        (table.records[row].text, beat)
      } else {
        (table.records[row].text, 0)
      }
    }
  }
}

extension LocalOperation {
  /// The number that it gives a beat.
  var beat: Int64? { columns.beat(in: key) }
}

extension Sequence<HistoryEntry> {
  /// Whether a beat has come to a number only by rows that were given back.
  fileprivate func haveGivenBack(_ beat: Int64, of device: String) -> Bool {
    let reaching = filter { entry in
      entry.key.record == Name(device)
        && entry.columns.beat(in: entry.key).map { $0 >= beat } == true
    }
    return !reaching.isEmpty && reaching.allSatisfy(\.id.isRescue)
  }
}

extension [Column] {
  /// The number that they give a beat, where they are of one.
  fileprivate func beat(in key: RecordKey) -> Int64? {
    guard key.table == "beats", case .integer(let beat)? = first(where: { $0.name == "n" })?.value
    else { return nil }
    return beat
  }
}
