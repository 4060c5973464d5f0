import FerryProtocol

/// Checks that no read ever shows a part of a transaction.
///
/// Of the rows of one `ledger` transaction all are there or none. This holds for the author's
/// replica, for every other, and for the server's final records.
///
/// A hostile server may end a list too soon. Then only the end is judged.
package struct WholeTransactions: Oracle {
  package static let name = "whole-transactions"

  private var isLiedTo = false

  package init() {}

  package mutating func see(_ event: RunEvent) -> [Violation] {
    if case .serverLies = event { isLiedTo = true }
    if isLiedTo { return [] }
    return switch event {
    case .read(let device, let evidence): Self.parts(evidence.rows, "a read of \(device)")
    case .lostPower(let device, let survivors):
      Self.parts(survivors.rows, "what survives on \(device)")
    case .copied(let device, _, let evidence):
      Self.parts(evidence.rows, "the copy that \(device) got")
    case .committed, .confirmed, .serverWentBack, .serverLies: []
    }
  }

  package mutating func judge(_ final: FinalEvidence) -> [Violation] {
    var found: [Violation] = []
    for (name, replica) in final.replicas.sorted(by: { $0.key < $1.key }) {
      found += Self.parts(replica.rows, "\(name) at the end")
    }
    var count = PartCount()
    for (key, state) in final.server.records.sorted(by: { $0.key < $1.key })
    where key.table == "ledger" && state.isAlive {
      func value(_ name: Name) -> Value {
        state.columns.first { $0.name == name }?.value ?? .null
      }
      count.add(key.record, value("txn"), value("size"))
    }
    return found + count.violations("the server at the end")
  }

  private static func parts(_ rows: ReplicaRows, _ whose: @autoclosure () -> String) -> [Violation]
  {
    guard let ledger = rows["ledger"], let txn = ledger.place(ofColumn: "txn"),
      let size = ledger.place(ofColumn: "size")
    else { return [] }
    var count = PartCount()
    for row in ledger.records.indices {
      count.add(ledger.records[row], ledger.value(row, txn), ledger.value(row, size))
    }
    return count.isWhole ? [] : count.violations(whose())
  }
}

/// Counts the rows of each transaction. Rows of one transaction are mostly adjacent.
private struct PartCount {
  private var txn = ""
  private var size = 0
  private var run = 0
  private var parts: [String: (count: Int, size: Int)] = [:]
  private var odd: [String] = []

  var isWhole: Bool { run == size && parts.isEmpty && odd.isEmpty }

  mutating func add(_ record: Name, _ txn: Value, _ size: Value) {
    guard case .text(let txn) = txn, case .integer(let size) = size else {
      odd.append(record.text)
      return
    }
    if txn != self.txn {
      close()
      self.txn = txn
      self.size = Int(clamping: size)
    }
    run += 1
  }

  private mutating func close() {
    if run != size { parts[txn, default: (0, size)].count += run }
    (run, size) = (0, 0)
  }

  mutating func violations(_ whose: String) -> [Violation] {
    close()
    let rows = odd.map { "\(whose) shows the ledger row \($0) without its transaction or size" }
    let broken = parts.filter { $0.value.count != $0.value.size }.sorted { $0.key < $1.key }
    return
      (rows
      + broken.map { "\(whose) shows \($1.count) of the \($1.size) rows of transaction \($0)" })
      .map { Violation(oracle: WholeTransactions.name, $0) }
  }
}
