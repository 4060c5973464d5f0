import FerryProtocol
import FerrySQLite

/// The index of a file store in SQLite, for any number of processes; all calls block.
///
/// A version is in the index before it is in the final place. So a process may be killed between
/// both steps: readers find the version in the folder of new files, and the next opening moves it.
final class FileIndex {
  private let connection: SQLiteConnection
  let folders: FileFolders
  private let keys: FileKeys
  /// Names in the order of their uses, not in the index yet.
  private var uses: [ContentHash] = []
  /// Versions committed since the last ``finishMoves()``.
  private var unsettled = 0

  private static let usesMax = 32
  private static let unsettledMax = 64
  private static let removedAtOnce = 500

  init(folders: FileFolders, keys: FileKeys, fileSystem: String?) throws {
    self.folders = folders
    self.keys = keys
    connection = try SQLiteConnection.index(
      folders.root + "/index.db", fileSystem: fileSystem, isDurable: true,
      steps: [FileIndexSchema.statements])
    try connection.transaction { try checkKey() }
    try finishMovesUnlessFull()
    try folders.sweep { draft in
      try connection.exists(
        "SELECT 1 FROM files WHERE pending = 1 AND lower(hex(id)) = ?", draft)
    }
  }

  /// Checks the key; the first key of an empty store is right.
  private func checkKey() throws {
    let proof = try connection.first("SELECT value FROM settings WHERE name = 'sealing'") {
      $0.blob(0)
    }
    if let proof, keys.proof.accepts(proof) { return }
    guard try proof == nil || totals().count == 0 else {
      throw FileStoreError(
        .wrongKey,
        keys.isSealed
          ? proof == [0]
            ? "the files in \(folders.root) are not encrypted; open the store without a key"
            : "the key does not fit the files in \(folders.root)"
          : "the files in \(folders.root) are encrypted; give their key")
    }
    try connection.run(
      "INSERT OR REPLACE INTO settings VALUES ('sealing', ?)", keys.proof.make())
  }

  // MARK: Looking

  /// Returns the row of a name; `nil` if there is none.
  func row(_ name: ContentHash) throws -> FileRow? {
    try connection.first(FileRow.select + " WHERE name = ?", name.bytes) { try FileRow($0) }
  }

  /// Returns rows in the order of their names.
  func rows(after name: ContentHash?, limit: Int) throws -> [FileRow] {
    try connection.rows(
      FileRow.select + " WHERE name > ? ORDER BY name LIMIT ?", name?.bytes ?? [0], limit
    ) { try FileRow($0) }
  }

  /// Returns the number of files, the bytes of their contents and their bytes on disk.
  func totals() throws -> (count: Int, bytes: Int64, stored: Int64) {
    try connection.first("SELECT count, bytes, stored FROM totals") {
      (Int($0.int64(0)), $0.int64(1), $0.int64(2))
    } ?? (0, 0, 0)
  }

  /// Records the use of a file, for the order of removal.
  func use(_ name: ContentHash) {
    uses.append(name)
    // A failed write of a use only changes the order.
    if uses.count >= Self.usesMax { try? connection.transaction { try writeUses() } }
  }

  private func writeUses() throws {
    defer { uses = [] }
    for name in uses {
      try connection.run("UPDATE files SET used = ? WHERE name = ?", try nextTurn(), name.bytes)
    }
  }

  private func nextTurn() throws -> Int64 {
    try connection.run("UPDATE totals SET turn = turn + 1")
    return try connection.first("SELECT turn FROM totals") { $0.int64(0) } ?? 0
  }

  // MARK: Changing

  /// Puts a written version in use and moves it to the final place. Removes other files if `plan`
  /// allows it.
  func commit(_ new: FileRow, _ plan: RoomPlan) throws {
    let old = try connection.transaction {
      try writeUses()
      let old = try row(new.version.name)
      // At most one version of a key is not in the final place: a late move must not replace a
      // later one.
      if let old, old.version.isPending { try folders.place(old.version) }
      try makeRoom(for: new, replacing: old, plan)
      try replace(by: new)
      return old
    }
    do {
      try folders.place(new.version)
    } catch {
      // The former version is still in place.
      try? connection.transaction { try restore(old, insteadOf: new) }
      throw error
    }
    unsettled += 1
    // If the call fails, the next opening repeats it.
    if unsettled >= Self.unsettledMax { try? finishMoves() }
  }

  private func replace(by new: FileRow) throws {
    try connection.run("DELETE FROM files WHERE name = ?", new.version.name.bytes)
    try connection.run(
      "INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", new.version.name.bytes,
      new.version.suffix, new.version.id, new.facts, new.size, new.bytesOnDisk, new.storedAt,
      try nextTurn(),
      new.version.isPending)
  }

  private func restore(_ old: FileRow?, insteadOf new: FileRow) throws {
    guard try row(new.version.name)?.version.id == new.version.id else { return }
    if let old { return try replace(by: old) }
    try connection.run("DELETE FROM files WHERE name = ?", new.version.name.bytes)
  }

  private func makeRoom(for new: FileRow, replacing old: FileRow?, _ plan: RoomPlan) throws {
    let used = try totals().stored
    switch plan.verdict(added: new.bytesOnDisk, replaced: old?.bytesOnDisk ?? 0, used: used) {
    case .fits: return
    case .removing(let bytes): try removeLeastUsed(bytes, except: new.version.name)
    case .lacking(let bytes):
      throw FileStoreError(
        .limitReached,
        "the file does not fit within the store's limit: remove files with \(bytes) bytes first")
    case .tooLarge:
      throw FileStoreError(
        .limitReached,
        "the file has \(new.bytesOnDisk) bytes on disk, more than the store's limit")
    }
  }

  private func removeLeastUsed(_ bytes: Int64, except name: ContentHash) throws {
    var missing = bytes
    while missing > 0 {
      let rows = try connection.rows(
        FileRow.select + " WHERE name <> ? ORDER BY used, name LIMIT 64", name.bytes
      ) { try FileRow($0) }
      if rows.isEmpty { return }
      var victims: [FileRow] = []
      for row in rows where missing > 0 {
        victims.append(row)
        missing -= row.bytesOnDisk
      }
      try remove(victims)
    }
  }

  /// Removes files before their rows: on a full disk the removal makes room for the index. A row
  /// without a file counts as none.
  private func remove(_ rows: [FileRow]) throws {
    for row in rows { try folders.remove(row.version) }
    try folders.sync()
    for row in rows {
      try connection.run("DELETE FROM files WHERE name = ?", row.version.name.bytes)
    }
  }

  /// Removes one file. Returns true if there was one.
  func remove(_ name: ContentHash) throws -> Bool {
    try removing {
      guard let row = try row(name) else { return 0 }
      try remove([row])
      return 1
    } > 0
  }

  /// Removes all files stored before a time, in milliseconds since 1970; `nil` for all. Returns
  /// their number.
  func remove(storedBefore time: Int64?) throws -> Int {
    var count = 0
    while true {
      let removed = try removing {
        let rows = try connection.rows(
          FileRow.select + " WHERE at < ? ORDER BY at LIMIT ?", time ?? .max, Self.removedAtOnce
        ) { try FileRow($0) }
        try remove(rows)
        return rows.count
      }
      count += removed
      if removed < Self.removedAtOnce { return count }
    }
  }

  /// Runs a removal in a transaction; again if the disk was full before it.
  private func removing(_ body: () throws -> Int) throws -> Int {
    do {
      return try connection.transaction { try body() }
    } catch let error as SQLiteError where error.concernsDisk {
      return try connection.transaction { try body() }
    }
  }

  // MARK: Settling

  /// Moves versions if the disk has room: a store on a full disk can be opened to remove files.
  private func finishMovesUnlessFull() throws {
    do {
      try finishMoves()
    } catch let error as SQLiteError where error.isDiskFull {
      return
    } catch let error as FileStoreError where error.kind == .diskFull {
      return
    }
  }

  /// Moves versions to their places, and records the moves once the names are on the disk.
  func finishMoves() throws {
    try connection.transaction {
      try writeUses()
      let rows = try connection.rows(FileRow.select + " WHERE pending = 1") { try FileRow($0) }
      if rows.isEmpty { return }
      for row in rows { try folders.place(row.version) }
      try folders.sync()
      try connection.run("UPDATE files SET pending = 0 WHERE pending = 1")
    }
    unsettled = 0
  }
}
