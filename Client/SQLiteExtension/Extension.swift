import FerryPlatform
import FerrySQLite
import FerrySyncClient

/// The entry point of `libferry_sqlite.so`, with the name derived by SQLite from the file's name
/// (https://sqlite.org/loadext.html).
///
/// A connection to a replica records all writes from now on; see ``Replica/prepare(_:)``. Another
/// file stays unchanged.
///
/// - Parameters:
///   - message: gets the reason of a failure; the host frees it.
///   - routines: the host's table of SQLite's functions.
/// - Returns: SQLite's result code.
@_cdecl("sqlite3_ferrysqlite_init")
public func loadFerryIntoSQLite(
  _ connection: OpaquePointer?,
  _ message: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
  _ routines: UnsafeRawPointer?
) -> Int32 {
  guard let connection, let routines else { return SQLiteHost.failed }
  let host = SQLiteHost(routines: routines)
  host.stayInMemory()
  guard host.isShared else {
    message?.pointee = host.copy(
      of: "ferry: this program has a copy of SQLite of its own, and libferry_sqlite calls the "
        + "system's; use a program that is linked with the system's libsqlite3")
    return SQLiteHost.failed
  }
  do {
    _ = try Replica.prepareIfReplica(connection)
    return SQLiteHost.loaded
  } catch {
    // An earlier load's function has put the name before the message.
    let reason = error.description
    message?.pointee = host.copy(of: reason.begins(with: "ferry: ") ? reason : "ferry: " + reason)
    return SQLiteHost.failed
  }
}
