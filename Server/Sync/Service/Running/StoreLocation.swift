import FerryPlatform
import Foundation

/// The place of a server's data.
package enum StoreLocation: Sendable, Equatable {
  /// The embedded store, in a directory created if absent.
  case embedded(directory: String)
  /// A PostgreSQL database.
  case postgres(PostgresAddresses)

  /// Reads the command line: a database URL, a directory, or neither.
  ///
  /// - Parameters:
  ///   - direct: The database's direct address, if `database` is a proxy.
  ///   - reads: The address of a standby for pulls.
  ///   - worker: The address of a worker of Citus for packets and pulls.
  package init(
    database: String?, direct: String? = nil, reads: String? = nil, worker: String? = nil,
    data: String?, environment: [String: String]
  ) throws(FerryServerError) {
    if let database {
      guard data == nil else { throw .twoStores }
      let addresses = PostgresAddresses(
        database, direct: direct, reads: reads, worker: worker)
      let isPostgres = addresses.all.allSatisfy { url in
        url.begins(with: "postgres://") || url.begins(with: "postgresql://")
      }
      guard isPostgres else { throw .badDatabaseURL }
      self = .postgres(addresses)
    } else if direct != nil || reads != nil || worker != nil {
      throw .addressAlone
    } else if let data {
      self = .embedded(directory: data)
    } else {
      self = .embedded(directory: try Self.defaultDirectory(environment))
    }
  }

  /// True if an embedded store exists already; `true` for a database, which only opening it shows.
  package var exists: Bool {
    switch self {
    case .embedded(let directory):
      FileManager.default.fileExists(atPath: directory + "/" + SQLiteStore.fileName)
    case .postgres: true
    }
  }

  /// The same place for a command with a single task: the coordinator is enough.
  package var withoutWorker: StoreLocation {
    guard case .postgres(var addresses) = self else { return self }
    addresses.worker = nil
    return .postgres(addresses)
  }

  /// `$XDG_STATE_HOME/ferryd`, or `~/.local/state/ferryd` (XDG Base Directory Specification 0.8).
  private static func defaultDirectory(
    _ environment: [String: String]
  ) throws(FerryServerError) -> String {
    if let state = environment["XDG_STATE_HOME"], state.begins(with: "/") {
      return state + "/ferryd"
    }
    guard let home = environment["HOME"], home.begins(with: "/") else { throw .noHome }
    return home + (home.ends(with: "/") ? "" : "/") + ".local/state/ferryd"
  }
}

extension StoreLocation: CustomStringConvertible {
  /// For people; a URL without user, password and parameters.
  package var description: String {
    switch self {
    case .embedded(let directory): return "embedded store in \(directory)"
    case .postgres(let addresses):
      guard let parts = URLComponents(string: addresses.main) else { return "PostgreSQL" }
      let port = parts.port.map { ":\($0)" } ?? ""
      return "PostgreSQL at \(parts.host ?? "")\(port)\(parts.path)"
    }
  }
}
