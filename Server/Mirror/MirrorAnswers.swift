import FerryPlatform
import FerryPostgres
import FerryProtocol

/// A row of the replica that a company's table cannot have.
struct RefusedRow: Sendable {
  var row: MirrorRow
  var reason: String
}

/// The answers to refused rows of a step: the space gets the rows of the company's tables instead,
/// since the company's database decides. All calls block.
struct MirrorAnswers {
  typealias Part = [(texts: MirrorTexts, reason: String)]

  let connection: PostgresConnection
  let sql: [MirrorSQL]

  /// Returns refused rows as the rows of single statements. Children come before their parents:
  /// most of them are new, and the space has to delete them.
  func parts(of rows: [RefusedRow]) -> [Part] {
    let sorted = rows.enumerated().sorted { one, other in
      let (one, other) = (order(one), order(other))
      return one.lexicographicallyPrecedes(other)
    }
    var parts: [Part] = []
    for (_, row) in sorted {
      guard let texts = texts(of: row.row) else { continue }
      if let last = parts.last, last.count < MirrorStep.batchMax,
        last[0].texts.row.table == row.row.table,
        (last[0].texts.texts == nil) == (texts.texts == nil)
      {
        parts[parts.count - 1].append((texts, row.reason))
      } else {
        parts.append([(texts, row.reason)])
      }
    }
    return parts
  }

  private func order(_ row: EnumeratedSequence<[RefusedRow]>.Element) -> [Int] {
    let isDelete = row.element.row.values == nil
    let table = row.element.row.table
    return [isDelete ? 1 : 0, isDelete ? table : -table, row.offset]
  }

  /// Returns a row as far as PostgreSQL can hold it; `nil` if it cannot hold the key.
  private func texts(of row: MirrorRow) -> MirrorTexts? {
    let table = sql[row.table].table
    guard let key = try? table.texts(ofKey: row.key) else { return nil }
    let texts = row.values.map { values in
      zip(table.columns, values).map { column, value in (try? column.text(of: value)) ?? nil }
    }
    return MirrorTexts(row: row, key: key, texts: texts)
  }

  /// Captures the table's rows in place of refused ones. Returns the keys. The space would keep the
  /// others.
  func capture(_ part: Part) throws -> Set<[String?]> {
    let sql = sql[part[0].texts.row.table]
    let isDelete = part[0].texts.texts == nil
    let keys = PostgresParameters(columnsOf: part.map(\.texts.key))
    let rows = part.map { texts, reason in
      texts.key + (texts.texts ?? []) + [Self.shown(reason)]
    }
    let results = try connection.pipeline {
      // Rows may be gone with a parent.
      $0.add(.once(StepSQL(sql: sql).forget), keys)
      $0.add(
        .once(AnswerSQL(sql: sql).captureRefused(isDelete: isDelete)),
        PostgresParameters(columnsOf: rows))
    }
    guard let captured = results.last else { return [] }
    return Set(try captured.map { try $0.array(0, of: String.self) })
  }

  /// Returns PostgreSQL's reason for people.
  static func shown(_ reason: String) -> String {
    MirrorLedger.storable(String(reason.cut(bytes: Limits.standard.reasonBytes)))
  }
}

extension PostgresParameters {
  /// Creates an array of texts for each column of some rows.
  init(columnsOf rows: [[String?]]) {
    self.init()
    for column in rows[0].indices { append(PostgresArray<String>(rows.map { $0[column] })) }
  }
}
