/// A message of the output plugin `pgoutput` (PostgreSQL manual, "Logical Replication Message
/// Formats") of a whole transaction: transactions come in the order of their commits.
/// ``StreamedTransactions`` sorts those of open transactions. A prepared transaction comes when it
/// commits.
package enum PgoutputMessage: Sendable, Equatable {
  case begin(xid: UInt32, commit: PostgresLSN, time: Int64)
  /// - Parameter end: the position behind the transaction.
  case commit(commit: PostgresLSN, end: PostgresLSN, time: Int64)
  case relation(PgoutputRelation)
  case type(id: UInt32)
  case insert(relation: UInt32, new: [PgoutputValue])
  /// - Parameter old: the whole former row or the former key; `nil` for an unchanged key.
  case update(relation: UInt32, old: PgoutputOld?, new: [PgoutputValue])
  case delete(relation: UInt32, old: PgoutputOld)
  case truncate(relations: [UInt32])
  /// Written by `pg_logical_emit_message`.
  case message(isTransactional: Bool, prefix: String, content: [UInt8])
  case origin(String)
}

/// The description of a table, sent before the first row and after each change of the table.
package struct PgoutputRelation: Sendable, Equatable {
  package struct Column: Sendable, Equatable {
    package var name: String
    package var type: UInt32
    package var isKey: Bool
  }

  package var id: UInt32
  /// Empty for `pg_catalog`.
  package var schema: String
  package var name: String
  /// The code of `pg_class.relreplident`; `f` for whole former rows.
  package var identity: UInt8
  package var columns: [Column]

  /// True if former rows come as a whole.
  package var hasWholeRows: Bool { identity == UInt8(ascii: "f") }
}

/// A value of a row, as PostgreSQL writes it.
package enum PgoutputValue: Sendable, Equatable {
  case null
  /// Stored outside of the row, and not changed.
  case unchanged
  case text(ArraySlice<UInt8>)

  var bytes: Int {
    if case .text(let text) = self { text.count } else { 0 }
  }
}

/// The former state of a row.
package enum PgoutputOld: Sendable, Equatable {
  /// The columns of the key; the others are NULL.
  case key([PgoutputValue])
  case row([PgoutputValue])

  package var values: [PgoutputValue] {
    switch self {
    case .key(let values), .row(let values): values
    }
  }
}
