import FerryConformance
import FerryProtocol
import FerryTestSupport
import Testing

/// The rules for a program on a mirror's tables beside devices, each of them broken on purpose.
@Suite(.hangLimit)
struct MirroredTablesTests {
  private let note = RowName("notes", "n")
  private let reply = RowName("replies", "r")

  private func write(
    _ author: String, acknowledged: Bool = true, _ change: (inout AuthoredWrite) -> Void
  ) -> AuthoredWrite {
    var write = AuthoredWrite(author: author, isAcknowledged: acknowledged)
    change(&write)
    return write
  }

  /// A note of the program with a reply of a device, on both sides.
  private func evidence() -> MirroredEvidence {
    var evidence = MirroredEvidence()
    evidence.tables = [
      note: ["order_id": "o", "body": "one"], reply: ["note": "n", "body": "two"],
    ]
    evidence.devices = ["phone": evidence.tables, "laptop": evidence.tables]
    evidence.writes = [
      write("program") { $0.inserted = [note] },
      write("phone") {
        $0.inserted = [reply]
        $0.parents = [reply: note]
      },
    ]
    return evidence
  }

  private func entry(
    _ row: RowName, _ kind: OperationKind, _ columns: [Column] = []
  ) -> HistoryEntry {
    HistoryEntry(
      sequence: 1, id: OperationID(UniqueID(high: 2, low: 2)),
      device: DeviceID(UniqueID(high: 1, low: 1)),
      key: RecordKey(table: row.table, record: row.key), kind: kind, time: .zero,
      columns: columns)
  }

  private func rules(_ evidence: MirroredEvidence) -> [String] {
    MirroredTables.judge(evidence).map(\.oracle)
  }

  /// Removes rows everywhere.
  private func remove(_ rows: RowName..., from evidence: inout MirroredEvidence) {
    for row in rows {
      evidence.tables[row] = nil
      for device in evidence.devices.keys { evidence.devices[device]?[row] = nil }
    }
  }

  @Test("equal tables with all acknowledged rows pass")
  func passes() { #expect(rules(evidence()) == []) }

  @Test("a row that differs on one device, or is absent there, is found, unless it is listed")
  func differences() {
    var other = evidence()
    other.devices["phone"]?[note]?["body"] = "three"
    #expect(rules(other) == ["equal-tables"])
    other.deferred = [note]
    #expect(rules(other) == [])
    var absent = evidence()
    absent.devices["laptop"]?[reply] = nil
    #expect(rules(absent) == ["equal-tables"])
    absent.unsent = [reply]
    #expect(rules(absent) == [])
  }

  @Test("an acknowledged row that is nowhere is lost, unless an author deleted it or its parent")
  func lostRows() {
    var lost = evidence()
    remove(reply, from: &lost)
    #expect(rules(lost) == ["acknowledged-rows"])
    var unknown = lost
    unknown.writes[1].isAcknowledged = false
    #expect(rules(unknown) == [])
    var rejected = lost
    rejected.quarantined = [reply]
    #expect(rules(rejected) == [])
    // A delete may be committed, although the author does not know it.
    remove(note, from: &lost)
    #expect(rules(lost) == ["acknowledged-rows", "acknowledged-rows"])
    lost.writes.append(write("laptop", acknowledged: false) { $0.deleted = [note] })
    #expect(rules(lost) == [])
  }

  @Test("a row goes with a parent in quarantine only if a device lists it among the conflicts")
  func rejectedParents() {
    var gone = evidence()
    remove(note, reply, from: &gone)
    gone.writes[0].author = "laptop"
    gone.history = [entry(note, .delete), entry(reply, .delete)]
    gone.quarantined = [note]
    #expect(rules(gone) == ["acknowledged-rows"])
    gone.conflicting = [reply]
    #expect(rules(gone) == [])
    gone.quarantined = []
    #expect(Set(rules(gone)) == ["acknowledged-rows", "nothing-invented"])
  }

  @Test("an acknowledged value is in the history, or in another value of its author")
  func lostValues() {
    var changed = evidence()
    changed.writes.append(
      write("laptop") { $0.set = [AuthoredWrite.Setting(note, "body", "four")] })
    #expect(rules(changed) == ["acknowledged-values"])
    var kept = changed
    kept.history = [entry(note, .update, [Column("body", .text("four"))])]
    #expect(rules(kept) == [])
    // It was merged into a later write of the same author.
    var merged = changed
    merged.writes.append(
      write("laptop") { $0.set = [AuthoredWrite.Setting(note, "body", "one")] })
    #expect(rules(merged) == [])
    // Another author's value does not contain it.
    merged.writes[3].author = "phone"
    #expect(rules(merged) == ["acknowledged-values"])
    var deleted = changed
    deleted.writes.append(write("phone") { $0.deleted = [note] })
    deleted.history = [entry(note, .delete)]
    #expect(rules(deleted) == [])
  }

  @Test("an acknowledged delete reaches the space, and no other row is deleted or inserted")
  func deletes() {
    var present = evidence()
    present.writes.append(write("phone") { $0.deleted = [reply] })
    #expect(rules(present) == ["acknowledged-deletes"])
    // It is back by a later write.
    present.history = [entry(reply, .delete)]
    #expect(rules(present) == [])
    present.writes.removeLast()
    #expect(rules(present) == ["nothing-invented"])
    var invented = evidence()
    invented.writes.removeFirst()
    #expect(rules(invented) == ["nothing-invented"])
    invented.initial = [note]
    #expect(rules(invented) == [])
  }

  @Test("wrong sums are found on each side")
  func books() {
    var shop = evidence()
    shop.initial = [
      RowName("stock", "tea/shelf"), RowName("stock", "tea/cellar"), RowName("movements", "m"),
      RowName("orders", "o"), RowName("lines", "l"),
    ]
    let rows: NamedRows = [
      RowName("stock", "tea/shelf"): ["quantity": "3"],
      RowName("stock", "tea/cellar"): ["quantity": "-3"],
      RowName("movements", "m"): [
        "product": "tea", "from_place": "cellar", "to_place": "shelf", "quantity": "3",
      ],
      RowName("orders", "o"): ["total": "20"],
      RowName("lines", "l"): ["order_id": "o", "quantity": "2", "price": "10"],
    ]
    shop.tables.merge(rows) { $1 }
    shop.devices = ["phone": shop.tables]
    #expect(rules(shop) == [])
    for (row, column, value) in [
      ("stock", "tea/shelf", "4"), ("movements", "m", "2"), ("orders", "o", "21"),
      ("lines", "l", "1"),
    ].map({ (RowName($0.0, $0.1), $0.0 == "orders" ? "total" : "quantity", $0.2) }) {
      var wrong = shop
      wrong.tables[row]?[column] = value
      wrong.devices["phone"] = wrong.tables
      #expect(Set(rules(wrong)) == ["books"], "\(row)")
    }
    for row in rows.keys where row.key != "tea/cellar" {
      var part = shop
      remove(row, from: &part)
      #expect(Set(rules(part)) == ["books"], "\(row)")
    }
  }

  @Test(
    "a journal has the last attempt of each transaction, and only committed ones are acknowledged")
  func journal() {
    let journal = ProgramJournal(
      """
      {"event":"commits","id":"1","inserted":[["notes","a"]],"set":[],"deleted":[]}
      {"event":"commits","id":"1","inserted":[["notes","b"],["replies","r","notes","b"]]}
      {"event":"committed","id":"1"}
      {"event":"read","broken":[]}
      {"event":"commits","id":"2","set":[["notes","b","body","x"]],"deleted":[["notes","c"]]}
      {"event":"commits","id":"2","deleted":[["notes","d"]]}
      {"event":"read","broken":["the books: not"]}
      {"event":"comm
      """, author: "program")
    #expect(journal.writes.count == 3)
    #expect(journal.writes[0].inserted == [RowName("notes", "b"), RowName("replies", "r")])
    #expect(journal.writes[0].parents == [RowName("replies", "r"): RowName("notes", "b")])
    #expect(journal.writes.map(\.isAcknowledged) == [true, false, false])
    // One of the two attempts may be committed.
    #expect(journal.writes[1].set == [AuthoredWrite.Setting(RowName("notes", "b"), "body", "x")])
    #expect(
      journal.writes[1...].flatMap(\.deleted) == [RowName("notes", "c"), RowName("notes", "d")])
    #expect(journal.reads == 2)
    #expect(journal.broken == ["the books: not"])
    #expect(journal.torn == 1)
  }

  @Test("a commit without its first line, and a line of another form, are unreadable")
  func torn() {
    let journal = ProgramJournal(
      """
      {"event":"committed","id":"1"}
      {"event":"commits","id":"2","inserted":[["notes"]]}
      {"event":"other"}
      """, author: "program")
    #expect(journal.torn == 3)
    #expect(journal.writes == [])
  }
}
