import FerryProtocol

/// Compares rows numbered by a company's sequences with the records of the space, without a number.
///
/// Each row has a token, which stays. So two rows that become one, and a line with another order, are
/// found whatever the numbers on both sides are.
enum NumberedRows {
  private static let orders = Workload.numbered[0]

  /// A row by its meaning: the text, and the token of the order.
  private struct Row: Equatable {
    var text: String?
    var order: String?
  }

  /// - Returns: Nothing about rows if the mirror lists some of them: others may wait for these.
  static func faults(_ evidence: MirrorSidesEvidence, _ server: ServerEvidence) -> [String] {
    var found: [String] = []
    let tables = rows(evidence, &found)
    let space = rows(server, &found)
    let listed = evidence.deferred.union(evidence.unsent).union(evidence.rejected)
    guard !listed.contains(where: { Workload.numbered.contains($0.table) }) else { return found }
    for token in Set(tables.keys).union(space.keys).sorted() where tables[token] != space[token] {
      found.append(
        "the row \(token) is \(shown(tables[token])) in PostgreSQL, and \(shown(space[token])) in "
          + "the space")
    }
    if evidence.forgets { return found }
    let known = Set(
      server.history.flatMap { entry in
        entry.columns.compactMap { $0.name == "token" ? $0.value : nil }
      })
    for token in evidence.tokens.sorted() where space[token] == nil && !known.contains(.text(token))
    {
      found.append("the row \(token), which a program has made, never reached the space")
    }
    return found
  }

  private static func rows(
    _ evidence: MirrorSidesEvidence, _ found: inout [String]
  ) -> [String: Row] {
    var rows: [String: Row] = [:]
    for (key, row) in evidence.tables where Workload.numbered.contains(key.table) {
      let parent = (row["order_id"] ?? nil).map { RecordKey(table: orders, record: Name($0)) }
      let made = Row(
        text: (row["title"] ?? nil) ?? (row["note"] ?? nil),
        order: parent.flatMap { evidence.tables[$0]?["token"] ?? nil })
      guard let token = row["token"] ?? nil, rows.updateValue(made, forKey: token) == nil else {
        found.append("\(key) in PostgreSQL has no token of its own")
        continue
      }
    }
    return rows
  }

  private static func rows(
    _ server: ServerEvidence, _ found: inout [String]
  ) -> [String: Row] {
    func text(_ record: RecordState, _ name: Name) -> String? {
      guard case .text(let text)? = record.columns.first(where: { $0.name == name })?.value else {
        return nil
      }
      return text
    }
    var rows: [String: Row] = [:]
    for (key, record) in server.records
    where Workload.numbered.contains(key.table) && record.isAlive {
      let parent = text(record, "order_id").map { RecordKey(table: orders, record: Name($0)) }
      let made = Row(
        text: text(record, "title") ?? text(record, "note"),
        order: parent.flatMap { server.records[$0] }.flatMap { text($0, "token") })
      guard let token = text(record, "token"), rows.updateValue(made, forKey: token) == nil else {
        found.append("\(key) in the space has no token of its own")
        continue
      }
    }
    return rows
  }

  private static func shown(_ row: Row?) -> String {
    row.map { "“\($0.text ?? "NULL")” of \($0.order ?? "no order")" } ?? "absent"
  }
}
