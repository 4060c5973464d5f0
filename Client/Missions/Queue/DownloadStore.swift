import FerryPlatform
import FerryProtocol
import FerrySQLite
import Foundation

/// A download in a queue, with all facts to continue it after a restart.
struct DownloadRow: Sendable, Equatable {
  var id: DownloadID
  /// The number in the order of addition.
  var number: Int64
  var request: ContentRequest
  var path: String
  var size: Int64?
  var hash: ContentHash?
  var sizeMax: Int64
  /// The app's value as JSON.
  var userInfo: [UInt8]?
  var priority: Int
  var after: [DownloadID]
  var state = DownloadState.ready
  var reason: DownloadError?
  /// The fetched parts, encoded.
  var map: [UInt8]?
  var bytesDone: Int64 = 0
  var bytesTotal: Int64?
  /// The facts about the content once all of it was fetched and checked.
  var file: DownloadedFile?
}

extension JobQueue.Job where Kind == DownloadJobs {
  /// Creates the job of a row. A download under way begins again when its turn comes.
  init(_ row: DownloadRow, group: Int64?) {
    let state = row.state == .downloading ? .ready : row.state
    self.init(
      id: row.id, priority: Int64(row.priority), number: row.number, after: row.after,
      group: group, state: state, reason: row.reason,
      isBlocked: row.reason?.kind == .waiting)
  }
}

extension DownloadRow {
  init(_ download: Download, userInfo: [UInt8]?) {
    self.init(
      id: download.id, number: .max, request: download.request, path: download.path,
      size: download.size, hash: download.hash, sizeMax: download.sizeMax, userInfo: userInfo,
      priority: download.priority, after: download.after)
  }
}

/// The rows of a queue in a separate SQLite file. Each call is one transaction.
///
/// A loss of power may undo the last transactions, except those that add downloads. Then the queue
/// repeats some work: it writes a row after the row's file.
final class DownloadStore: Sendable {
  let index: IndexFile<SQLiteConnection, DownloadError>

  /// Opens the file at `path`, and creates an absent one.
  static func open(
    _ path: String, on executor: any WorkExecutor
  ) async throws(DownloadError) -> DownloadStore {
    DownloadStore(
      index: try await IndexFile.open(
        path, on: executor, isDurable: false, steps: ContentSchema.steps))
  }

  private init(index: IndexFile<SQLiteConnection, DownloadError>) { self.index = index }

  /// Closes the file, so no other files of SQLite are left beside it. Later calls throw.
  func close() async { await index.close() }

  // MARK: Rows

  /// Returns every download, in the order of addition.
  func rows() async throws(DownloadError) -> [DownloadRow] {
    try await index.write { connection in
      try connection.rows(
        """
        SELECT id, number, request, path, size, hash, size_max, user_info, priority, after, state,
          kind, message, map, bytes_done, bytes_total, file_size, file_hash, file_parts
        FROM downloads ORDER BY number
        """
      ) { try DownloadRow($0) }
    }
  }

  /// Adds downloads all together; they are on the disk when this returns. Returns their numbers.
  func add(_ rows: [DownloadRow]) async throws(DownloadError) -> [Int64] {
    try await index.writeDurably { connection in
      try rows.map { row in
        let request = Array(try JSONEncoder().encode(row.request))
        let after = try Self.encoded(row.after)
        try connection.run(
          """
          INSERT INTO downloads(id, request, path, size, hash, size_max, user_info, priority, after,
            state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
          """, row.id.value, request, row.path, row.size, row.hash?.bytes, row.sizeMax,
          row.userInfo, row.priority, after, row.state.rawValue)
        return try connection.first("SELECT last_insert_rowid()") { $0.int64(0) } ?? 0
      }
    }
  }

  /// Stores a state with the reason. The parts of a failed or cancelled download are forgotten.
  func set(
    _ state: DownloadState, _ reason: DownloadError?, _ progress: DownloadProgress,
    of id: DownloadID
  ) async throws(DownloadError) {
    let isGone = state == .failed || state == .cancelled
    try await index.write { connection in
      try connection.run(
        """
        UPDATE downloads SET state = ?2, kind = ?3, message = ?4, bytes_done = ?5, bytes_total = ?6
        WHERE id = ?1
        """, id.value, state.rawValue, reason?.kind.code, reason?.message,
        isGone ? 0 : progress.bytesDone, progress.bytesTotal)
      guard isGone else { return }
      try connection.run(
        """
        UPDATE downloads SET map = NULL, file_size = NULL, file_hash = NULL, file_parts = NULL
        WHERE id = ?
        """, id.value)
    }
  }

  func set(priority: Int, of id: DownloadID) async throws(DownloadError) {
    try await index.write { connection in
      try connection.run("UPDATE downloads SET priority = ?2 WHERE id = ?1", id.value, priority)
    }
  }

  /// Stores the fetched parts and the progress. A cancelled download whose work still ends has none.
  func set(
    _ map: ChunkMap, _ progress: DownloadProgress, of id: DownloadID
  ) async throws(DownloadError) {
    try await index.write { connection in
      try connection.run(
        """
        UPDATE downloads SET map = ?2, bytes_done = ?3, bytes_total = ?4
        WHERE id = ?1 AND state <> ?5
        """, id.value, map.encoded(), progress.bytesDone, progress.bytesTotal,
        DownloadState.cancelled.rawValue)
    }
  }

  /// Returns the fetched parts; `nil` if there are none.
  func map(of id: DownloadID) async throws(DownloadError) -> ChunkMap? {
    try await index.write { connection in
      try connection.first("SELECT map FROM downloads WHERE id = ? AND map NOT NULL", id.value) {
        ChunkMap(encoded: $0.blob(0), chunkCount: 0)
      } ?? nil
    }
  }

  /// Returns the facts about completely fetched content; `nil` if a part is missing.
  func file(of id: DownloadID) async throws(DownloadError) -> DownloadedFile? {
    try await index.write { connection in
      try connection.first(
        """
        SELECT path, file_size, file_hash, file_parts FROM downloads
        WHERE id = ? AND file_size NOT NULL
        """, id.value
      ) { try DownloadedFile($0, path: 0, facts: 1) } ?? nil
    }
  }

  /// Stores the facts about completely fetched content; `nil` if it must be fetched again.
  func set(file: DownloadedFile?, of id: DownloadID) async throws(DownloadError) {
    try await index.write { connection in
      try connection.run(
        """
        UPDATE downloads SET file_size = ?2, file_hash = ?3, file_parts = ?4,
          map = CASE WHEN ?2 IS NULL THEN NULL ELSE map END WHERE id = ?1
        """, id.value, file?.size, file?.hash?.bytes, file?.parts.flatMap(\.bytes))
    }
  }

  /// Removes a download's row, and changes the lists of downloads waiting for it.
  func remove(
    _ id: DownloadID, freeing followers: [DownloadID: [DownloadID]]
  ) async throws(DownloadError) {
    try await index.write { connection in
      try connection.run("DELETE FROM downloads WHERE id = ?", id.value)
      for (follower, after) in followers {
        try connection.run(
          "UPDATE downloads SET after = ?2 WHERE id = ?1", follower.value, try Self.encoded(after))
      }
    }
  }

  private static func encoded(_ ids: [DownloadID]) throws -> [UInt8] {
    Array(try JSONEncoder().encode(ids.map(\.value)))
  }

  /// Runs blocking work on the store's thread.
  func perform<T: Sendable>(
    _ body: @escaping @Sendable () throws -> T
  ) async throws(DownloadError) -> T {
    try await index.executor.perform(DownloadError.self, body)
  }
}

extension DownloadRow {
  fileprivate init(_ row: SQLiteStatement) throws {
    let decoder = JSONDecoder()
    guard let state = DownloadState(rawValue: row.text(10)),
      let request = try? decoder.decode(ContentRequest.self, from: Data(row.blob(2))),
      let after = try? decoder.decode([String].self, from: Data(row.blob(9)))
    else { throw DownloadError(.file, "the row of download \(row.text(0)) cannot be read") }
    let hash = try row.isNull(5) ? nil : row.contentHash(5)
    self.init(
      id: DownloadID(row.text(0)), number: row.int64(1), request: request, path: row.text(3),
      size: row.optionalInt64(4), hash: hash, sizeMax: row.int64(6),
      userInfo: row.isNull(7) ? nil : row.blob(7), priority: Int(row.int64(8)),
      after: after.map { DownloadID($0) }, state: state,
      reason: row.optionalText(11).map { DownloadError(.init(code: $0), row.text(12)) },
      map: row.isNull(13) ? nil : row.blob(13), bytesDone: row.int64(14),
      bytesTotal: row.optionalInt64(15),
      file: try DownloadedFile(row, path: 3, facts: 16))
  }
}

extension DownloadedFile {
  /// Reads a path, and from the column `facts` on a size, a hash and the hashes of the parts; `nil`
  /// without a size.
  fileprivate init?(_ row: SQLiteStatement, path: Int32, facts: Int32) throws {
    guard let size = row.optionalInt64(facts) else { return nil }
    self.init(
      path: row.text(path), size: size,
      hash: try row.isNull(facts + 1) ? nil : row.contentHash(facts + 1))
    let bytes = row.isNull(facts + 2) ? [] : row.blob(facts + 2)
    parts = stride(from: 0, to: bytes.count, by: ContentHash.byteCount).compactMap { start in
      ContentHash(Array(bytes[start..<min(bytes.count, start + ContentHash.byteCount)]))
    }
  }
}

extension DownloadError.Kind {
  /// The name as stored by queues and printed by commands.
  package var code: String {
    switch self {
    case .offline: "offline"
    case .server(let status): "server_\(status)"
    case .wrongContent: "wrong_content"
    case .wrongAnswer: "wrong_answer"
    case .diskFull: "disk_full"
    case .file: "file"
    case .cancelled: "cancelled"
    case .changed: "changed"
    case .waiting: "waiting"
    case .dependency: "dependency"
    case .busy: "busy"
    }
  }

  init(code: String) {
    let plain: [Self] = [
      .offline, .wrongContent(chunk: nil), .diskFull, .file, .cancelled, .changed, .waiting,
      .dependency, .busy,
    ]
    let status = code.rest(after: "server_").flatMap { Int($0) }
    self = status.map { .server($0) } ?? plain.first { $0.code == code } ?? .wrongAnswer
  }
}

extension DownloadError: ConvertingError {
  package init(converting error: any Error) {
    switch error {
    case let error as DownloadError: self = error
    case let error as FileStoreError where error.kind == .diskFull:
      self.init(.diskFull, error.message)
    case let error as FileStoreError where error.kind == .cancelled:
      self.init(.cancelled, error.message)
    case let error as FileStoreError: self.init(.file, error.message)
    case let error as SQLiteError:
      self.init(error.isDiskFull ? .diskFull : .file, error.message)
    case let error as MissionError: self.init(.file, error.message)
    case is IndexClosed: self.init(.busy, "the queue was closed", isTransient: false)
    default: self.init(.file, String(describing: error))
    }
  }
}
