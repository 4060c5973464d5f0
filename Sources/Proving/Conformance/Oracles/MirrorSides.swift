import FerryProtocol

/// The two sides of a mirror at the end of a run.
package struct MirrorSidesEvidence: Sendable {
  /// A row's values by column, as PostgreSQL writes them.
  package typealias Rows = [RecordKey: [Name: String?]]

  /// Of the tables in PostgreSQL.
  package var tables: Rows = [:]
  /// Of the mirror's replica.
  package var replica: Rows = [:]
  /// Records that PostgreSQL cannot hold, as the mirror lists them.
  package var deferred: Set<RecordKey> = []
  /// Rows of a company's tables missing in the space, as the mirror lists them.
  package var unsent: Set<RecordKey> = []
  /// Records in the replica with a value that their column in PostgreSQL cannot hold.
  package var unfit: Set<RecordKey> = []
  /// Records made by programs in committed transactions, and not deleted.
  package var made: Set<RecordKey> = []
  /// Records whose operations the replica has had.
  package var taken: Set<RecordKey> = []
  /// True if the space may have forgotten deleted records: then those with a taken write do not
  /// count.
  package var forgets = false
  /// The sums of what programs have added to accounts in committed transactions. Nobody else
  /// writes them.
  package var balances: [RecordKey: Int64] = [:]
  /// True if the company's sequences number rows of some tables (``Workload/numbered``).
  package var hasOrders = false
  /// The tokens of such rows made by programs in committed transactions, and not deleted.
  package var tokens: Set<String> = []
  /// True if the tables refuse and change rows of devices (``CompanyRules``).
  package var hasRules = false
  /// Records deleted by programs in committed transactions.
  package var removed: Set<RecordKey> = []
  /// The mirror's device; `nil` if the file does not know it.
  package var device: DeviceID?
  /// Those reported by the mirror as rejected, or rejected by the space.
  package var rejected: Set<RecordKey> = []

  package init() {}
}

/// Checks a mirror at the end of a run.
///
/// 1. The tables have the rows of the replica. A row is missing only if the mirror lists it. It
///    lists a row only if PostgreSQL cannot hold it, or cannot hold a row needed by it. A company's
///    row refused by the space stays as it is, and may keep others out.
/// 2. The space has had each record made and not deleted by a program, unless the write was
///    rejected.
/// 3. The accounts of programs have what programs have added: no committed transaction is undone,
///    not even in part.
///
/// 4. No record of the space violates the rules of a company's tables, unless the mirror lists it:
///    rows of devices that PostgreSQL refuses are rejected for all devices.
/// 5. The mirror gives a reason for each delete of a note that no program made. ``OverrulingsReported``
///    judges that the authors find it.
/// 6. Numbered rows are the same on both sides by their tokens: no two rows become one, and lines
///    belong to their orders (``NumberedRows``).
///
/// After the server went back, the last five are not judged.
package enum MirrorSides {
  package static let name = "mirror-sides"

  package static func judge(
    _ mirror: String, _ evidence: MirrorSidesEvidence, _ server: ServerEvidence,
    serverWentBack: Bool
  ) -> [Violation] {
    var found: [String] = []
    let listed = evidence.deferred.union(evidence.unsent)
    for (key, row) in evidence.replica where !listed.contains(key) {
      guard let other = evidence.tables[key] else {
        found.append("\(key) is not in PostgreSQL")
        continue
      }
      for (column, value) in row where other[column] != value {
        found.append(
          "\(key) has \(shown(other[column] ?? nil)) in column \(column) in PostgreSQL, and \(shown(value)) in the space"
        )
      }
    }
    for key in evidence.tables.keys where evidence.replica[key] == nil {
      if !evidence.deferred.union(evidence.unsent).contains(key) {
        found.append("\(key) is in PostgreSQL alone")
      }
    }
    if !evidence.deferred.isEmpty, evidence.unfit.isEmpty, evidence.unsent.isEmpty {
      found.append(
        "\(evidence.deferred.sorted()[0]) is deferred, although PostgreSQL can hold all rows")
    }
    if !serverWentBack {
      found += lost(evidence, server) + undone(evidence) + violating(evidence, server)
      found += unexplained(evidence, server)
      if evidence.hasOrders { found += NumberedRows.faults(evidence, server) }
    }
    return found.sorted().map { Violation(oracle: name, "\(mirror): \($0)") }
  }

  private static func lost(_ evidence: MirrorSidesEvidence, _ server: ServerEvidence) -> [String] {
    let known = Set(server.records.keys).union(server.history.map(\.key))
      .union(server.forgotten.map(\.key))
    let forgotten = evidence.forgets ? evidence.taken : []
    return evidence.made.subtracting(evidence.rejected).subtracting(evidence.unsent).subtracting(
      known
    ).subtracting(forgotten)
      .map {
        "\($0), which a program has made, never reached the space"
      }
  }

  private static func undone(_ evidence: MirrorSidesEvidence) -> [String] {
    evidence.balances.compactMap { key, balance in
      let (column, text) = (Workload.counter.column, String(balance))
      let found = evidence.tables[key]?[column] ?? nil
      return found == text
        ? nil : "account \(key) has \(shown(found)) in PostgreSQL, and programs made it \(text)"
    }
  }

  private static func violating(
    _ evidence: MirrorSidesEvidence, _ server: ServerEvidence
  ) -> [String] {
    guard evidence.hasRules else { return [] }
    let listed = evidence.deferred.union(evidence.unsent)
    return server.records.filter { CompanyRules.refuses($0, $1) && !listed.contains($0) }.keys
      .map { "\($0), which the company refuses, is only on devices" }
  }

  private static func unexplained(
    _ evidence: MirrorSidesEvidence, _ server: ServerEvidence
  ) -> [String] {
    guard evidence.hasRules, let device = evidence.device else { return [] }
    // Rows of other tables also go with their parents.
    return server.history.filter {
      $0.device == device && $0.kind == .delete && $0.key.table == "notes" && $0.reason == nil
        && !evidence.removed.contains($0.key)
    }.map { "\($0.key) is deleted by the mirror at \($0.sequence), without a reason" }
  }

  private static func shown(_ value: String?) -> String {
    value.map { "“\($0.prefix(60))”" } ?? "NULL"
  }
}
