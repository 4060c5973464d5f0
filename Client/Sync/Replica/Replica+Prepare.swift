import FerrySQLite

extension Replica {
  /// Makes a connection of another SQLite library record writes to tracked tables.
  ///
  /// Each transaction of the connection records all changes itself, as ``write(_:)`` does. This
  /// process and others see them as those of any other process, and the next sync sends them.
  ///
  /// ```swift
  /// var configuration = Configuration()  // GRDB
  /// configuration.prepareDatabase { try Replica.prepare($0.sqliteConnection!) }
  /// let notes = try DatabasePool(path: "notes.db", configuration: configuration)
  /// ```
  ///
  /// - The connection's main database is the replica's file; ``open(_:transport:credentials:log:)``
  ///   has made it one. Call this on every connection, before it begins a transaction.
  /// - It sets `PRAGMA foreign_keys` and `PRAGMA recursive_triggers`. A write to a tracked table
  ///   fails while one of them is off. Hooks, authorizer and busy timeout stay the library's own.
  /// - If another connection has changed tracked tables, writes fail until `SELECT ferry_prepare()`
  ///   has run, outside of a transaction, or until this process or `ferry` has opened the file.
  /// - The library must call the same copy of SQLite as Ferry.
  /// - Call it on the connection's thread. It opens and closes the file once more if the tables
  ///   have changed, and waits at most 10 seconds for another writer then.
  ///
  /// - Parameter connection: the `sqlite3 *`, kept and closed by the library.
  /// - Throws: ``ReplicaError/cannotOpen(path:_:)`` if the file is not a replica, if another
  ///   version of Ferry wrote it, or if a transaction is open; ``ReplicaError/database(_:code:)``.
  public static func prepare(_ connection: OpaquePointer) throws(ReplicaError) {
    guard try prepareIfReplica(connection) else {
      throw .cannotOpen(
        path: SQLiteConnection(borrowing: connection).mainPath,
        "it is not a replica; make it one with Replica.open or `ferry init`")
    }
  }

  /// Does the same as ``prepare(_:)``. Returns false if the file is not a replica; then nothing has
  /// changed, and `SELECT ferry_prepare()` does it later.
  package static func prepareIfReplica(_ connection: OpaquePointer) throws(ReplicaError) -> Bool {
    do {
      return try HostRecording.prepare(connection)
    } catch {
      throw ReplicaError(error)
    }
  }
}
