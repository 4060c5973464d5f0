import FerryHTTPServer

/// The reason why a server did not start, or a store could not be opened.
package enum FerryServerError: Error, Sendable, Equatable {
  /// Both a database and a data directory are named.
  case twoStores
  /// The database is not named by a `postgres://` URL. The URL is not repeated: it may hold a
  /// password.
  case badDatabaseURL
  /// A further address of a database is named, and no database.
  case addressAlone
  /// No data directory is named, and the environment has no home directory to put one in.
  case noHome
  /// The data directory cannot be made or written to.
  case dataDirectory(String, reason: String)
  /// The directory for missions' content cannot be made or written to.
  case blobDirectory(String, reason: String)
  /// Another server serves the data directory.
  case dataInUse(String, processID: Int32?)
  /// The database was not available during the whole wait.
  case storeUnavailable(String, reason: String, waited: Duration)
  /// The database is there but cannot be used.
  case storeFailed(String, reason: String)
  /// Others than this machine could connect, and nothing keeps them out.
  case needsTokens(ListenAddress)
  /// A trusted proxy could pass on the requests of others, and nothing keeps them out.
  case proxyNeedsTokens
  /// The file with the keys of tokens' issuer cannot be read.
  case issuerKeys(String)
  /// The address cannot be listened on.
  case listen(ListenAddress, HTTPServerError)
}
