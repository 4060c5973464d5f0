import FerryPlatform
import FerryPostgres

/// Names and attributes of the spans of stores (OpenTelemetry's semantic conventions for databases,
/// 1.33).
enum StoreSpan {
  static let waiting = "wait for a connection"
  static let postgres = SpanAttribute("db.system.name", "postgresql")
  static let sqlite = SpanAttribute("db.system.name", "sqlite")
  /// Characters of a summary, by the conventions.
  private static let summaryMax = 255

  static func operation(_ name: String) -> SpanAttribute {
    SpanAttribute("ferry.store.operation", name)
  }

  /// Returns the name of a function without the parameters: `changes` for `changes(in:_:now:)`.
  static func name(of function: String) -> String {
    String(function.until("("))
  }

  /// Returns the names of statements as one text; whole names only.
  static func summary(of statements: [String]) -> String {
    var text = statements.first ?? "statement"
    for name in statements.dropFirst() {
      guard text.utf8.count + 1 + name.utf8.count <= summaryMax else { break }
      text += " " + name
    }
    return text
  }

  /// Returns the reason of a failure, without the values of rows in PostgreSQL's details.
  static func reason(_ error: any Error) -> String {
    String(((error as? PostgresError)?.message ?? String(describing: error)).prefix(summaryMax))
  }

  static func fault(of error: any Error) -> [SpanAttribute] {
    guard let error = error as? PostgresError else {
      return [SpanAttribute("error.type", "_OTHER")]
    }
    guard let state = error.sqlState else { return [SpanAttribute("error.type", "\(error.kind)")] }
    return [
      SpanAttribute("error.type", state), SpanAttribute("db.response.status_code", state),
    ]
  }
}
