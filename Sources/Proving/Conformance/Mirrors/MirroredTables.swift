import FerryProtocol

/// The state of a mirrored space and its authors at the end of a run, when everything has drained.
package struct MirroredEvidence: Sendable {
  /// The rows in PostgreSQL.
  package var tables: NamedRows = [:]
  /// The rows of each device.
  package var devices: [String: NamedRows] = [:]
  /// Rows of the space that the tables cannot hold: the mirror lists them, with the reason.
  package var deferred: Set<RowName> = []
  /// Rows of the tables that the space cannot hold: the mirror lists them, with the reason.
  package var unsent: Set<RowName> = []
  /// Rows of operations rejected by the server, which their authors keep.
  package var quarantined: Set<RowName> = []
  /// Rows with lost values, as the conflicts of devices list them.
  package var conflicting: Set<RowName> = []
  /// The history of the space.
  package var history: [HistoryEntry] = []
  /// Rows from before the first write.
  package var initial: Set<RowName> = []
  package var writes: [AuthoredWrite] = []

  package init() {}
}

/// Checks that a program on a mirror's tables and the users of devices lose nothing.
///
/// - **Equal.** Each device has the rows of the tables, except rows listed by the mirror as
///   deferred or unsent.
/// - **Rows.** A row inserted by an acknowledged write is there, unless an author deleted it or its
///   parent, or it is listed or in quarantine. It also goes with a parent in quarantine: then a
///   device lists it among the conflicts.
/// - **Values.** A value from an acknowledged write is in the history, with the value that it
///   replaced or lost to. The author's other values of the same column may contain it: a device and
///   a mirror merge writes before they send them. The value of a deleted row may be lost.
/// - **Deletes.** A row deleted by an acknowledged write was deleted in the space. It may be back
///   by a later write.
/// - **Nothing else.** Each row was inserted by an author, and each delete is an author's, or the
///   database's answer to a row of a device in quarantine, or goes along with such an answer.
/// - **Books.** The sums of all rows are right.
package enum MirroredTables {
  /// Violations reported by each rule.
  private static let reportedMax = 10

  package static func judge(_ evidence: MirroredEvidence) -> [Violation] {
    let facts = Facts(evidence)
    var found: [Violation] = []
    let rules: [(String, [String])] = [
      ("equal-tables", facts.differences), ("acknowledged-rows", facts.lostRows),
      ("acknowledged-values", facts.lostValues), ("acknowledged-deletes", facts.lostDeletes),
      ("nothing-invented", facts.invented), ("books", facts.wrongBooks),
    ]
    for (rule, faults) in rules {
      found += faults.prefix(reportedMax).map { Violation(oracle: rule, $0) }
    }
    return found
  }

  private struct Facts {
    private let evidence: MirroredEvidence
    private let listed: Set<RowName>
    /// Rows that an author may have deleted.
    private let deletable: Set<RowName>
    private let parents: [RowName: RowName]
    /// Rows deleted in the space at some time.
    private let deleted: Set<RowName>
    private let written: Set<AuthoredWrite.Setting>

    init(_ evidence: MirroredEvidence) {
      self.evidence = evidence
      listed = evidence.deferred.union(evidence.unsent)
      deletable = Set(evidence.writes.flatMap(\.deleted))
      var parents: [RowName: RowName] = [:]
      for write in evidence.writes { parents.merge(write.parents) { $1 } }
      self.parents = parents
      var (deleted, written): (Set<RowName>, Set<AuthoredWrite.Setting>) = ([], [])
      for entry in evidence.history {
        let row = RowName(entry.key.table.text, entry.key.record.text)
        if entry.kind == .delete { deleted.insert(row) }
        for column in entry.columns {
          guard case .text(let text) = column.value else { continue }
          written.insert(AuthoredWrite.Setting(row, column.name.text, text))
        }
      }
      (self.deleted, self.written) = (deleted, written)
    }

    /// Returns `true` if an author may have deleted a row or its parent.
    private func mayBeGone(_ row: RowName) -> Bool {
      deletable.contains(row) || parents[row].map(deletable.contains) ?? false
    }

    /// Returns `true` if a row may have gone with its parent, which the database has refused.
    private func goesAlong(_ row: RowName) -> Bool {
      parents[row].map(evidence.quarantined.contains) ?? false
    }

    var differences: [String] {
      var found: [String] = []
      for (device, rows) in evidence.devices.sorted(by: { $0.key < $1.key }) {
        for row in Set(rows.keys).union(evidence.tables.keys).sorted() where !listed.contains(row) {
          let (here, there) = (evidence.tables[row], rows[row])
          guard here != there else { continue }
          found.append(
            "\(row) is \(Self.shown(here)) in the table, \(Self.shown(there)) on \(device)")
        }
      }
      return found
    }

    private static func shown(_ row: [String: String]?) -> String {
      guard let row else { return "absent" }
      return row.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
    }

    private var acknowledged: [AuthoredWrite] { evidence.writes.filter(\.isAcknowledged) }

    var lostRows: [String] {
      acknowledged.flatMap { write in
        write.inserted.filter { row in
          evidence.tables[row] == nil && !evidence.deferred.contains(row)
            && !evidence.quarantined.contains(row) && !mayBeGone(row)
            && !(goesAlong(row) && evidence.conflicting.contains(row))
        }.map { "\($0), which \(write.author) inserted, is lost" }
      }
    }

    var lostValues: [String] {
      var kept: Set<[String]> = []
      let isThere = { (setting: AuthoredWrite.Setting) in
        evidence.tables[setting.row]?[setting.column] == setting.value || written.contains(setting)
      }
      for write in evidence.writes {
        for setting in write.set where isThere(setting) {
          kept.insert([write.author, setting.row.description, setting.column])
        }
      }
      return acknowledged.flatMap { write in
        write.set.filter { setting in
          !kept.contains([write.author, setting.row.description, setting.column])
            && !mayBeGone(setting.row) && !listed.contains(setting.row)
            && !evidence.quarantined.contains(setting.row)
        }.map { "\($0.row).\($0.column) = \($0.value), which \(write.author) wrote, is lost" }
      }
    }

    var lostDeletes: [String] {
      acknowledged.flatMap { write in
        write.deleted.filter { evidence.tables[$0] != nil && !deleted.contains($0) }
          .map { "\($0), which \(write.author) deleted, is still there" }
      }
    }

    var invented: [String] {
      let known = evidence.initial.union(evidence.writes.flatMap(\.inserted))
      let unknown = evidence.tables.keys.filter { !known.contains($0) }.sorted()
        .map { "\($0) was inserted by no author" }
      let undeleted = deleted.filter {
        !mayBeGone($0) && !goesAlong($0) && !evidence.quarantined.contains($0)
      }.sorted().map { "\($0) was deleted by no author" }
      return unknown + undeleted
    }

    var wrongBooks: [String] {
      var found = ShopBooks.faults(in: evidence.tables).map { "in the tables: \($0)" }
      for (device, rows) in evidence.devices.sorted(by: { $0.key < $1.key }) {
        found += ShopBooks.faults(in: rows).map { "on \(device): \($0)" }
      }
      return found
    }
  }
}
