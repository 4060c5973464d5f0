import FerryProtocol

/// Checks that a reader of one replica never sees it go back: a device's beat never decreases, and
/// an existing ledger row remains.
///
/// A file may go back to an earlier state, by a loss of power or as a copy. It then shows this
/// state, and its reader starts again from there. The file's own beat then continues from an
/// earlier number. For other readers, repeated numbers prove nothing until the beat has passed all
/// former ones. If the clock was so far ahead that the server clamped its times, they prove nothing
/// even then. The server clamps late operations of a copy late, and they overrule (SPEC.md §6).
///
/// A replica may have been read at a point that is gone, since the server was restored from a
/// backup. It may go back once: to the server's state, until others have re-uploaded their later
/// beats. A beat that is only in a re-uploaded row may go back as well. Such a row is older than
/// all operations sent again by the beat's device, one after the other. The replica keeps rows of
/// the ledger, since it re-uploads them itself. The exception is pruning that hides which rows the
/// server lost and which were deleted. Then the replica gives up the rows missing on the server and
/// reports this, and its reader starts again.
///
/// A hostile server may hide rows for as long as it answers. Then only the last read is judged: it
/// shows each ledger row shown by any read, and a beat of each device.
package struct MonotonicReads: Oracle {
  package static let name = "monotonic-reads"

  /// Beats of a device that the harness may not know: one for each process that died between its
  /// commit and its report.
  private static let unheardMax: Int64 = 8

  private struct Reader {
    var ledger: [Name] = []
    /// By device: no lower number may be read.
    var floors: [String: Floor] = [:]
    /// The newest anchor of a read.
    var anchor: Cursor.Anchor?
    /// See ``ReplicaEvidence/losses``.
    var losses: Int64 = 0
  }

  /// A number from a read, and the point of the history at which it was first read.
  private struct Floor {
    var beat: Int64 = 0
    var anchor: Cursor.Anchor?
  }

  /// A beat that counted on from an earlier number.
  private struct Repeat {
    /// The lowest number after the beat went back.
    var from: Int64
    /// The highest number that the beat may repeat.
    var to: Int64
  }

  private var readers: [String: Reader] = [:]
  private var highest: [String: Int64] = [:]
  private var repeats: [String: Repeat] = [:]
  private var doubts = ClampedStamps()
  /// Beats that went back, each with the earlier point. They wait until it is known whether the
  /// final history contains this point.
  private var regresses: [(from: Floor, device: String, violation: Violation)] = []
  private var lineage = Lineage()
  private var isLiedTo = false

  package init() {}

  package mutating func see(_ event: RunEvent) -> [Violation] {
    switch event {
    case .committed(_, let operations):
      for operation in operations { record(operation) }
      return []
    case .read(let device, let evidence):
      let found = read(device, evidence)
      return isLiedTo ? [] : found
    case .confirmed: return []
    case .serverWentBack(let before, let survivors):
      lineage.goBack(from: before, to: survivors)
      return []
    case .serverLies:
      lineage.doubt()
      isLiedTo = true
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
    return found + doubts.confirmed(by: final.server)
  }

  private mutating func record(_ operation: LocalOperation) {
    guard let beat = operation.beat else { return }
    let device = operation.key.record.text
    highest[device] = max(highest[device] ?? 0, beat)
  }

  /// Returns the least progress of the beat proved by a number.
  private func least(_ beat: Int64, of device: String) -> Int64 {
    guard let again = repeats[device], beat <= again.to else { return beat }
    return min(beat, again.from)
  }

  // MARK: Reading

  private mutating func read(_ device: String, _ evidence: ReplicaEvidence) -> [Violation] {
    let rows = evidence.rows
    var reader = readers[device] ?? Reader()
    readers[device] = nil
    if evidence.losses != reader.losses && lineage.wentBack && !isLiedTo { reader = Reader() }
    reader.losses = evidence.losses
    if !evidence.isReplacing { reader.anchor = evidence.anchor }
    var found: [Violation] = []
    func report(_ what: String) {
      found.append(Violation(oracle: Self.name, "\(device) \(what)"))
    }
    if let ledger = rows["ledger"] {
      if let gone = Self.firstMissing(of: reader.ledger, in: ledger.records) {
        report("does not show the ledger row \(gone) any more")
      }
      reader.ledger =
        isLiedTo && !found.isEmpty
        ? Set(reader.ledger).union(ledger.records).sorted() : ledger.records
    }
    let beats = rows.beats
    // Rows in replacement are of the history that the server refused. They may not have been there
    // at the last read of this one, so their point is not known.
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
        report("does not show the beat of \(name) any more")
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
    // The anchor of a file in replacement belongs to the list under way, not to the rows.
    let isOfAnother = evidence.isRescuing && lineage.wentBack
    for (name, beat) in rows.beats {
      reader.floors[name] = Floor(
        beat: isOfAnother ? 0 : least(beat, of: name), anchor: evidence.anchor)
    }
    readers[device] = reader
  }

  /// Returns the first name of `before` missing in `now`; both are ascending.
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
  /// The number of a beat.
  var beat: Int64? { columns.beat(in: key) }
}

extension Sequence<HistoryEntry> {
  /// Returns whether a beat has come to a number only by re-uploaded rows.
  fileprivate func haveGivenBack(_ beat: Int64, of device: String) -> Bool {
    let reaching = filter { entry in
      entry.key.record == Name(device)
        && entry.columns.beat(in: entry.key).map { $0 >= beat } == true
    }
    return !reaching.isEmpty && reaching.allSatisfy(\.id.isRescue)
  }
}

extension [Column] {
  /// Returns the number of a beat, if they belong to one.
  fileprivate func beat(in key: RecordKey) -> Int64? {
    guard key.table == "beats", case .integer(let beat)? = first(where: { $0.name == "n" })?.value
    else { return nil }
    return beat
  }
}
