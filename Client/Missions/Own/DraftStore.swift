import FerryPlatform
import FerryProtocol
import FerrySQLite
import Foundation

/// The rows of composed missions. Each call is one transaction.
final class DraftStore: Sendable {
  private let index: IndexFile<SQLiteConnection, MissionError>

  private static let columns =
    "number, mission, document, payload, state, kind, item, message, seal, at"

  /// Opens the file at `path`, and creates an absent one.
  static func open(
    _ path: String, on executor: any WorkExecutor
  ) async throws(MissionError) -> DraftStore {
    DraftStore(
      index: try await IndexFile.open(
        path, on: executor, isDurable: true, steps: ContentSchema.steps))
  }

  private init(index: IndexFile<SQLiteConnection, MissionError>) { self.index = index }

  /// Returns all drafts in the order of addition.
  func drafts() async throws(MissionError) -> [Draft] {
    try await index.write { connection in
      try connection.rows("SELECT \(Self.columns) FROM drafts ORDER BY number") { row in
        guard let id = MissionID(row.text(1)), let state = MissionState(rawValue: row.text(4)),
          let document = try? JSONDecoder().decode(
            Draft.Document.self, from: Data(row.blob(2)))
        else { throw MissionError(.database, "the row of mission \(row.text(1)) cannot be read") }
        return Draft(
          number: row.int64(0), id: id, document: document,
          payload: row.isNull(3) ? nil : row.blob(3), state: state, reason: row.reason(5, 6, 7),
          seal: row.blob(8), at: row.int64(9))
      }
    }
  }

  /// Adds a draft. Returns it with the new number.
  func add(_ draft: Draft) async throws(MissionError) -> Draft {
    try await index.write { connection in
      let document = Array(try JSONEncoder().encode(draft.document))
      try connection.run(
        "INSERT INTO drafts(mission, document, payload, state, seal, at) VALUES (?, ?, ?, ?, ?, ?)",
        draft.id.value, document, draft.payload, draft.state.rawValue, draft.seal, draft.at)
      var added = draft
      added.number = try connection.first("SELECT last_insert_rowid()") { $0.int64(0) } ?? 0
      return added
    }
  }

  /// Stores the state of a draft with the reason.
  func set(
    _ state: MissionState, _ reason: MissionError?, of number: Int64
  ) async throws(MissionError) {
    try await index.write { connection in
      try connection.run(
        "UPDATE drafts SET state = ?2, kind = ?3, item = ?4, message = ?5 WHERE number = ?1",
        number, state.rawValue, reason?.kind.rawValue, reason?.item, reason?.message)
    }
  }

  /// Removes drafts.
  func remove(_ numbers: [Int64]) async throws(MissionError) {
    try await index.write { connection in
      for number in numbers {
        try connection.run("DELETE FROM drafts WHERE number = ?", number)
      }
    }
  }
}
