import FerryPersistence
import FerryProtocol
import FerrySyncClient

/// The tables available to pages.
struct DataAccess: Sendable {
  /// `nil` for all tables of the file that are not Ferry's or SQLite's own.
  let tables: Set<Name>?

  /// Returns a table by the name in an argument.
  ///
  /// - Throws: `no_table`, for tables that do not exist for pages.
  func table(_ value: ServiceValue?) throws(ServiceError) -> Name {
    let name = Name(value?.text ?? "")
    let folded = name.folded
    let isOwn = ["ferry_", "sqlite_", "pragma_"].contains { folded.text.utf8.starts(with: $0.utf8) }
    guard !isOwn, tables?.contains(where: { $0.folded == folded }) ?? true else {
      throw ServiceError("no_table", "there is no table \(name.text.prefix(60)) for pages")
    }
    return name
  }
}

extension ReplicaError: ServiceErrorConvertible {
  package var serviceError: ServiceError {
    if case .database(let message, let code) = self {
      DatabaseError(message, code: code).serviceError
    } else {
      ServiceError(explanation.code, description)
    }
  }
}

extension DatabaseError: ServiceErrorConvertible {
  package var serviceError: ServiceError {
    ServiceError(isConstraint ? "constraint" : "database", message)
  }
}

extension RecordError: ServiceErrorConvertible {
  package var serviceError: ServiceError { ServiceError("invalid_argument", description) }
}
