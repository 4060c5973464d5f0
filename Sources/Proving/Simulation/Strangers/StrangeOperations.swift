import FerryConformance
import FerryProtocol

/// Draws the operations of a hostile member's packets.
struct StrangeOperations {
  private typealias Draft = (kind: OperationKind, key: RecordKey, columns: [Column])

  private var random: SeededRandom
  private let limits: Limits
  /// Records written so far.
  private var known: [RecordKey] = []

  init(random: SeededRandom, limits: Limits) { (self.random, self.limits) = (random, limits) }

  /// Returns the operations of one packet.
  ///
  /// - Parameters:
  ///   - head: the space's head.
  ///   - wall: the server's clock, milliseconds.
  ///   - attacks: whether they may be of tables of the others.
  mutating func operations(
    head: SequenceNumber, wall: Int64, attacks: Bool
  ) -> [SyncOperation] {
    let most = min(limits.operationsPerPacket, 40)
    let drafts: [Draft] =
      switch random.below(attacks ? 11 : 8) {
      case 0, 1: chain(1 + random.below(most))
      case 2: (0..<1 + random.below(most)).map { _ in reference() }
      case 3: (0..<1 + random.below(most)).map { _ in oddTable() }
      case 4: [huge()]
      case 5: known.isEmpty ? [reference()] : [(.delete, pick(), [])]
      case 6: known.isEmpty ? [reference()] : [(.update, pick(), [oddColumn()])]
      case 7: (0..<1 + random.below(min(most, 6))).map { _ in same() }
      default: (0..<1 + random.below(min(most, 6))).map { _ in attack() }
      }
    let (base, time) = (base(head), time(wall))
    for draft in drafts.prefix(3) where known.count < 200 && Workload.isStray(draft.key.table) {
      known.append(draft.key)
    }
    return drafts.enumerated().map { place, draft in
      let stamp = HybridTimestamp(milliseconds: time + Int64(place))
      return SyncOperation(
        id: OperationID(UniqueID(timestamp: stamp, random: random.next())), key: draft.key,
        kind: draft.kind, time: stamp, columns: draft.columns.sorted { $0.name < $1.name },
        base: base)
    }
  }

  private mutating func pick() -> RecordKey { known[random.below(known.count)] }

  /// Returns the claimed place: the right one, none, or a nonexistent one.
  private mutating func base(_ head: SequenceNumber) -> SequenceNumber {
    switch random.below(6) {
    case 0: 0
    case 1: head + 1 + SequenceNumber(random.below(1_000))
    default: head
    }
  }

  /// The right time, one of the past, or one of the far future.
  private mutating func time(_ wall: Int64) -> Int64 {
    switch random.below(6) {
    case 0: 1
    case 1: wall + 86_400_000 * Int64(1 + random.below(40_000))
    default: wall
    }
  }

  private mutating func name(_ prefix: String) -> Name { Name(Workload.fresh(prefix, &random)) }

  /// Returns nodes with references to each other; nobody has the first one.
  private mutating func chain(_ count: Int) -> [Draft] {
    let id = name("x")
    var nodes = (1...count).map { index -> Draft in
      (
        .insert, RecordKey(table: "stray_nodes", record: "\(id)-\(index)"),
        [Column("up", .text("\(id)-\(index - 1)"))]
      )
    }
    if random.chance(1, in: 2) { nodes.reverse() }
    return nodes
  }

  private mutating func reference() -> Draft {
    let value = Workload.oddTexts[random.below(Workload.oddTexts.count)]
    let column: Name = random.chance(1, in: 2) ? "hub" : "up"
    return (.insert, RecordKey(table: "stray_nodes", record: name("x")), [Column(column, value)])
  }

  private mutating func oddTable() -> Draft {
    let marks = ["\u{301}", "\u{600}", "'", "\"", "\u{202E}", "\u{1F468}\u{200D}\u{1F469}"]
    let table = Name("stray\(marks[random.below(marks.count)])\(random.below(1_000))")
    return (.insert, RecordKey(table: table, record: name("x")), [oddColumn()])
  }

  private mutating func oddColumn() -> Column {
    let names: [Name] = ["\u{600}\"", "HUB", "id", "rowid", "up\u{301}", "size", "x'; --"]
    let value = Workload.oddTexts[random.below(Workload.oddTexts.count)]
    return Column(names[random.below(names.count)], value)
  }

  private mutating func huge() -> Draft {
    let text = String(repeating: "z", count: limits.operationBytes - 200)
    return (
      .insert, RecordKey(table: "stray_hubs", record: name("x")), [Column("name", .text(text))]
    )
  }

  /// Writes to a note of the others: any kind, and any possible value of the columns.
  private mutating func attack() -> Draft {
    let key = Workload.sharedNote(&random)
    let any = Workload.oddTexts + [.null, .integer(.min), .real(-1e300), .blob([0, 39, 255])]
    switch random.below(6) {
    case 0: return (.delete, key, [])
    case 1:
      return (
        .insert, key,
        [
          Column("title", Workload.oddTexts[random.below(Workload.oddTexts.count)]),
          Column("stars", .integer(.max)),
        ]
      )
    case 2:
      return (.update, key, [Column("stars", random.chance(1, in: 2) ? .null : .integer(.min))])
    case 3:
      return (
        .update, key, [Column("title", Workload.oddTexts[random.below(Workload.oddTexts.count)])]
      )
    default: return (.update, key, [Column("body", any[random.below(any.count)])])
    }
  }

  /// Hubs with one unique name.
  private mutating func same() -> Draft {
    (.insert, RecordKey(table: "stray_hubs", record: name("x")), [Column("name", "hub 0")])
  }
}
