import FerryConformance
import FerryProtocol
import FerryTestSupport
import Testing

/// The oracles on the rows of replicas.
@Suite(.hangLimit)
struct ReplicaOracleTests {
  // MARK: Convergence

  @Test("replicas that equal the server pass")
  func converged() {
    let maker = HistoryMaker.busy()
    let final = maker.final(["one": maker.replica(1), "two": maker.replica(2)])
    #expect(Convergence.found(Convergence(), [], final) == [])
  }

  @Test("the oracle finds a missing row, an extra row and a different value")
  func diverged() {
    let maker = HistoryMaker.busy()
    func found(_ notes: [Name: [Name: Value]]) -> [String] {
      let rows = ReplicaRows(["notes": notes])
      let final = maker.final(["one": maker.replica(1, rows.tables)])
      return Convergence.found(Convergence(), [], final)
    }
    let row: [Name: Value] = ["title": "again", "body": .null, "stars": .null]
    #expect(found(["b": row]) == [])
    #expect(found([:]) == ["one lacks notes/b"])
    #expect(found(["b": row, "a": row]) == ["one has notes/a, which the server does not have"])
    #expect(found(["b": ["title": "again", "stars": 1]]).count == 1)
    #expect(found(["b": ["stars": .null]]) == ["one notes/b: has no column title"])
  }

  @Test("devices may lack the columns that a company's developers add, and no other one")
  func addedColumns() {
    func found(_ column: Name) -> [String] {
      var maker = HistoryMaker()
      maker.add(.insert, "b", by: 1, at: 1, ["title": "a", column: "x"])
      let rows = ReplicaRows(["notes": ["b": ["title": "a"]]])
      return Convergence.found(
        Convergence(), [], maker.final(["one": maker.replica(1, rows.tables)]))
    }
    #expect(found("remark") == [] && found("priority") == [])
    #expect(found("body") == ["one notes/b: has no column body"])
  }

  @Test("the oracle finds every kind of remaining work")
  func leftovers() {
    let maker = HistoryMaker.busy()
    let changes: [(inout ReplicaEvidence) -> Void] = [
      { $0.applied -= 1 }, { $0.epoch = Epoch(8) }, { $0.unconfirmed = 1 }, { $0.waiting = 1 },
      { $0.refused = 1 }, { $0.pending = [maker.history[0].id] },
    ]
    for change in changes {
      var replica = maker.replica(1)
      change(&replica)
      #expect(Convergence.found(Convergence(), [], maker.final(["one": replica])).count == 1)
    }
  }

  @Test("an orphan may be deferred only after a file was restored")
  func orphans() {
    var maker = HistoryMaker()
    maker.add(.insert, "l", by: 1, at: 1, ["name": "groceries"], table: "lists")
    maker.add(.insert, "i", by: 2, at: 2, ["list": "l"], base: 1, table: "items")
    maker.add(.delete, "l", by: 1, at: 3, base: 1, table: "lists")
    #expect(maker.server.orphans == [RecordKey(table: "items", record: "i")])
    var replica = maker.replica(1, [TableRows(name: "items", columns: ["list", "label", "done"])])
    replica.refused = 1
    let loss = RunEvent.lostPower(device: "two", survivors: maker.replica(2, []))
    let final = maker.final(["one": replica])
    #expect(Convergence.found(Convergence(), [loss], final) == [])
    #expect(Convergence.found(Convergence(), [], final).count == 2)
    replica.refused = 2
    #expect(Convergence.found(Convergence(), [loss], maker.final(["one": replica])).count == 1)
  }

  // MARK: Transactions

  private func ledger(_ rows: [(String, String, Int64)]) -> ReplicaEvidence {
    var table = TableRows(name: "ledger", columns: ["txn", "size", "place"])
    for (record, txn, size) in rows {
      table.append(Name(record), [.text(txn), .integer(size), 0])
    }
    return HistoryMaker().replica(1, [table])
  }

  @Test("whole transactions pass, even if their rows are mixed; the oracle finds parts")
  func transactions() {
    func found(_ rows: [(String, String, Int64)]) -> [String] {
      WholeTransactions.found(
        WholeTransactions(), [.read(device: "one", ledger(rows))], HistoryMaker().final())
    }
    #expect(found([]) == [])
    #expect(found([("a", "x", 2), ("b", "x", 2), ("c", "y", 1)]) == [])
    #expect(found([("a", "x", 2), ("b", "y", 2), ("c", "x", 2), ("d", "y", 2)]) == [])
    #expect(
      found([("a", "x", 3), ("b", "x", 3)])
        == ["a read of one shows 2 of the 3 rows of transaction x"])
    #expect(found([("a", "x", 2), ("b", "y", 1), ("c", "z", 1)]).count == 1)
  }

  @Test("the oracle finds half a transaction on the server")
  func serverTransactions() {
    var maker = HistoryMaker()
    let columns: [Name: Value] = ["txn": "x", "size": 2]
    maker.add(.insert, "x-1", by: 1, at: 1, columns, table: "ledger")
    #expect(WholeTransactions.found(WholeTransactions(), [], maker.final()).count == 1)
    maker.add(.insert, "x-2", by: 1, at: 2, columns, table: "ledger")
    #expect(WholeTransactions.found(WholeTransactions(), [], maker.final()) == [])
  }

  // MARK: Skipped changes

  /// Returns a device's evidence at every point of the busy history.
  private func sights() -> [ReplicaEvidence] {
    let whole = HistoryMaker.busy().history
    return (0...whole.count).map { count in
      var maker = HistoryMaker()
      for entry in whole.prefix(count) {
        let operation = LocalOperation(
          id: entry.id, key: entry.key, kind: entry.kind, columns: entry.columns)
        maker.take(operation, by: entry.device == HistoryMaker.device(1) ? 1 : 2, base: entry.base)
      }
      return maker.replica(3)
    }
  }

  private func skipped(_ sights: [ReplicaEvidence]) -> [String] {
    let events = sights.map { RunEvent.read(device: "three", $0) }
    return NoSkippedChange.found(NoSkippedChange(), events, HistoryMaker.busy().final())
  }

  @Test("reads that show the history up to their cursors pass")
  func nothingSkipped() { #expect(skipped(sights() + sights()) == []) }

  @Test("the oracle finds a read that lacks a change, or is ahead of its cursor", arguments: 1..<10)
  func changeSkipped(_ cursor: Int) {
    let right = sights()
    var behind = right[cursor - 1]
    behind.applied += 1
    // A losing operation makes no change to skip.
    guard right[cursor].rows != right[cursor - 1].rows else {
      #expect(skipped([behind]) == [])
      return
    }
    #expect(skipped([behind]).count == 1)
    var ahead = right[cursor]
    ahead.applied -= 1
    #expect(skipped([ahead]).count == 1)
    #expect(skipped(right + [ahead]).count == 1)
  }

  @Test("a read with pending or refused changes, or of another epoch, is ignored")
  func notComparable() {
    var sight = sights()[3]
    sight.rows = ReplicaRows()
    sight.rows.tables = [TableRows(name: "notes", columns: ["title"])]
    #expect(skipped([sight]).count == 1)
    for change: (inout ReplicaEvidence) -> Void in [
      { $0.pending = [HistoryMaker.busy().history[0].id] }, { $0.refused = 1 },
      { $0.epoch = Epoch(9) },
    ] {
      var other = sight
      change(&other)
      #expect(skipped([other]) == [])
    }
  }

  @Test("tables and columns that a replica does not know are ignored")
  func unknownColumns() {
    var sight = sights()[4]
    var notes = TableRows(name: "notes", columns: ["stars"])
    notes.append("a", [1])
    notes.append("b", [.null])
    sight.rows = ReplicaRows([notes])
    #expect(skipped([sight]) == [])
    var wrong = TableRows(name: "notes", columns: ["stars"])
    wrong.append("a", [2])
    wrong.append("b", [.null])
    sight.rows = ReplicaRows([wrong])
    #expect(
      skipped([sight]) == [
        "a read of three at 4 shows other content in notes.stars than the history up to that point"
      ])
  }
}
