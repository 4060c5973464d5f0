import FerryProtocol
import FerrySQLite

extension MissionRow {
  static let columns = """
    mission, version, state, complete, activation, active, asked, asked_at, completed_at, kind,
    item, message, bytes_done, items_done, title, summary, items, size, priority, after, manifest,
    manifest_size, signature, signer, published_at, published
    """

  /// Reads a row of ``columns``.
  init(_ row: SQLiteStatement) throws {
    let record = MissionRecord(id: row.text(0)) { name in
      switch name {
      case "version": .integer(row.optionalInt64(25) ?? row.int64(1))
      case "title": .text(row.text(14))
      case "summary": .text(row.text(15))
      case "items": .integer(row.int64(16))
      case "size": .integer(row.int64(17))
      case "priority": .integer(row.int64(18))
      case "after": .text(row.text(19))
      case "manifest": .text(row.text(20))
      case "manifestSize": .integer(row.int64(21))
      case "signature": .blob(row.blob(22))
      case "signer": .blob(row.blob(23))
      case "publishedAt": .integer(row.int64(24))
      default: nil
      }
    }
    guard let record, let state = MissionState(rawValue: row.text(2)) else {
      throw MissionError(.database, "the row of mission \(row.text(0)) cannot be read")
    }
    self.init(
      record: record, state: state, reason: row.reason(9, 10, 11), isComplete: row.int64(3) == 1,
      activation: row.optionalInt64(4), isActive: row.int64(5) == 1, asked: row.int64(6),
      bytesDone: row.int64(12), itemsDone: row.int64(13), askedAt: row.int64(7),
      completedAt: row.optionalInt64(8), alias: row.optionalInt64(25).map { _ in row.int64(1) })
  }
}

extension MissionFileRow {
  static let columns = """
    f.mission, f.version, f.place, f.path, f.kind, f.media_type, f.size, f.hash, f.url,
    f.local_path, f.completed_at
    """

  /// Reads a row of ``columns``.
  init(_ row: SQLiteStatement) throws {
    self.init(
      version: try row.missionVersion(0, 1), place: Int(row.int64(2)), path: row.text(3),
      kind: MissionItemKind(rawValue: row.text(4)) ?? .file, mediaType: row.text(5),
      content: StoredContent(hash: try row.contentHash(7), size: row.int64(6)),
      url: row.optionalText(8), localPath: row.optionalText(9), completedAt: row.optionalInt64(10))
  }
}

/// Binds a mission and its version to two parameters.
extension MissionVersion: SQLiteBindable {
  @usableFromInline
  package func bind(to parameters: inout SQLiteParameters) {
    parameters.append(mission.value)
    parameters.append(version)
  }
}

extension SQLiteStatement {
  func contentHash(_ index: Int32) throws -> ContentHash {
    guard let hash = ContentHash(blobBytes(index)) else {
      throw MissionError(.database, "a hash in the mission store is malformed")
    }
    return hash
  }

  func missionVersion(_ mission: Int32, _ version: Int32) throws -> MissionVersion {
    guard let id = MissionID(text(mission)) else {
      throw MissionError(
        .database, "“\(text(mission))” in the mission store is not a mission's name")
    }
    return MissionVersion(id, int64(version))
  }

  func reason(_ kind: Int32, _ item: Int32, _ message: Int32) -> MissionError? {
    guard let name = optionalText(kind) else { return nil }
    // A later version of Ferry wrote this kind.
    let kind = MissionError.Kind(rawValue: name) ?? .refused
    return MissionError(kind, item: optionalText(item), text(message))
  }
}
