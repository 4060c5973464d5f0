import CFerrySQLite
import FerryPlatform

/// The arguments of a call to a function from SQL, valid during the call.
package struct SQLiteArguments {
  private let values: UnsafeMutablePointer<OpaquePointer?>?
  /// The number of arguments.
  package let count: Int

  init(_ values: UnsafeMutablePointer<OpaquePointer?>?, count: Int32) {
    self.values = values
    self.count = Int(count)
  }

  @inline(__always)
  private func value(_ index: Int) -> OpaquePointer? { values?[index] }

  package func type(_ index: Int) -> SQLiteType {
    SQLiteType(code: sqlite3_value_type(value(index)))
  }

  package func int64(_ index: Int) -> Int64 { sqlite3_value_int64(value(index)) }

  package func double(_ index: Int) -> Double { sqlite3_value_double(value(index)) }

  /// Returns the text's bytes, valid during the call.
  package func textBytes(_ index: Int) -> UnsafeBufferPointer<UInt8> {
    let start = sqlite3_value_text(value(index))
    return UnsafeBufferPointer(start: start, count: Int(sqlite3_value_bytes(value(index))))
  }

  /// Returns the blob's bytes, valid during the call.
  package func blobBytes(_ index: Int) -> UnsafeRawBufferPointer {
    let start = sqlite3_value_blob(value(index))
    return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_value_bytes(value(index))))
  }
}

/// The destination of a function's result.
package struct SQLiteAnswer {
  private let context: OpaquePointer?

  init(_ context: OpaquePointer?) { self.context = context }

  package func set(_ value: Int64) { sqlite3_result_int64(context, value) }

  package func set(text: UnsafeBufferPointer<UInt8>) {
    text.withMemoryRebound(to: CChar.self) {
      ferry_result_text(context, $0.baseAddress, UInt64($0.count))
    }
  }

  package func set(blob: UnsafeRawBufferPointer) {
    ferry_result_blob(context, blob.baseAddress, UInt64(blob.count))
  }

  package func setNull() { sqlite3_result_null(context) }

  /// Fails the statement with the call of the function. SQLite's messages end at U+0000, so it is
  /// written as an escape.
  package func fail(_ message: String) {
    sqlite3_result_error(context, message.replacing(bytes: "\0", with: "\\u{0}"), -1)
  }

  /// Fails it as another statement, which the function ran, has failed.
  package func fail(_ error: SQLiteError) {
    fail(error.message)
    sqlite3_result_error_code(context, error.code)
  }
}

/// The action of a function when SQL calls it.
package typealias SQLiteFunctionBody = (SQLiteArguments, SQLiteAnswer) -> Void

/// The schemas whose triggers, views and indexes may call a function
/// (https://sqlite.org/c3ref/c_deterministic.html). Statements may always call it.
package enum SQLiteFunctionCallers: Sendable {
  /// None.
  case none
  /// Those trusted by the connection.
  case trusted
  /// All, even if the connection does not trust the schema.
  case all

  fileprivate var flag: Int32 {
    switch self {
    case .none: SQLITE_DIRECTONLY
    case .trusted: 0
    case .all: SQLITE_INNOCUOUS
    }
  }
}

private final class FunctionBox {
  let body: SQLiteFunctionBody
  init(_ body: @escaping SQLiteFunctionBody) { self.body = body }
}

extension SQLiteConnection {
  /// Registers a function for SQL on this connection. `argumentCount` −1: any number.
  ///
  /// - Parameter callers: the schemas that may call it.
  package func addFunction(
    _ name: String, argumentCount: Int32, isDeterministic: Bool = false,
    callers: SQLiteFunctionCallers = .trusted,
    _ body: @escaping SQLiteFunctionBody
  ) throws(SQLiteError) {
    let flags =
      SQLITE_UTF8 | (isDeterministic ? SQLITE_DETERMINISTIC : 0)
      | callers.flag
    let box = Unmanaged.passRetained(FunctionBox(body)).toOpaque()
    let code = sqlite3_create_function_v2(
      handle, namespace.name(name), argumentCount, flags, box,
      { context, count, values in
        guard let box = sqlite3_user_data(context) else { return }
        Unmanaged<FunctionBox>.fromOpaque(box)._withUnsafeGuaranteedRef {
          $0.body(SQLiteArguments(values, count: count), SQLiteAnswer(context))
        }
      }, nil, nil, { box in box.map { Unmanaged<FunctionBox>.fromOpaque($0).release() } })
    guard code == SQLITE_OK else { throw error(code, sql: nil) }
  }

  /// Calls `ended` whenever a transaction of this connection is about to commit (`true`) or was
  /// rolled back (`false`), after the closures of earlier calls. The closure must not use the
  /// connection.
  package func onTransactionEnd(_ ended: @escaping (_ committed: Bool) -> Void) {
    if let owner { return owner.onTransactionEnd(ended) }
    if let hooks { return hooks.ended.append(ended) }
    let hooks = ConnectionHooks(ended: [ended])
    self.hooks = hooks
    let pointer = Unmanaged.passUnretained(hooks).toOpaque()
    sqlite3_commit_hook(
      handle,
      { pointer in
        if let pointer {
          Unmanaged<ConnectionHooks>.fromOpaque(pointer).takeUnretainedValue().end(true)
        }
        return 0
      }, pointer)
    sqlite3_rollback_hook(
      handle,
      { pointer in
        if let pointer {
          Unmanaged<ConnectionHooks>.fromOpaque(pointer).takeUnretainedValue().end(false)
        }
      }, pointer)
  }
}

/// Kept by the connection for as long as SQLite may call it.
final class ConnectionHooks {
  var ended: [(Bool) -> Void]
  init(ended: [(Bool) -> Void]) { self.ended = ended }

  func end(_ isCommitted: Bool) {
    for ended in ended { ended(isCommitted) }
  }
}
