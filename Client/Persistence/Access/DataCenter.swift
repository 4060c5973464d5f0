/// The place of an application's logic across tables: each call is one transaction, with the same
/// interceptors.
///
/// It returns values only. A ``Database`` outside of its closure no longer works, and a change of a
/// fetched record reaches no table. Extend it with the calls of your application:
///
/// ```swift
/// extension DataCenter {
///   func close(list: String) async throws -> [Note] {
///     try await write { database in
///       let open = Note.all.where(Field("list") == list && Field("done") == false)
///       try open.update(["done": true], in: database)
///       try List.table.update(["id": list, "closed": true], in: database)
///       return try Note.all.where(Field("list") == list).fetch(database)
///     }
///   }
/// }
/// ```
public struct DataCenter: DatabaseAccess {
  private let access: any DatabaseAccess
  private let interceptors: [Interceptor]

  /// Creates a data center over a file. The interceptors run outside of the interceptors of
  /// `access`.
  public init(_ access: any DatabaseAccess, interceptors: [Interceptor] = []) {
    self.access = access
    self.interceptors = interceptors
  }

  public func read<T: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> T
  ) async throws -> T {
    try await access.read { [interceptors] in try $0.lending(with: interceptors, body) }
  }

  @discardableResult
  public func write<T: Sendable>(
    _ body: @escaping @Sendable (Database) throws -> T
  ) async throws -> T {
    try await access.write { [interceptors] in try $0.lending(with: interceptors, body) }
  }
}

extension Database {
  /// Runs `body` with further interceptors; afterwards this value does not work any more.
  fileprivate func lending<T>(
    with more: [Interceptor], _ body: (Database) throws -> T
  ) throws -> T {
    interceptors = more + interceptors
    defer { isOver = true }
    return try body(self)
  }
}
