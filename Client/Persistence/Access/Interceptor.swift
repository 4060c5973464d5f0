import FerryProtocol

/// An action of the record layer. Plain SQL is not intercepted.
public enum RecordAction: Sendable, Hashable, CaseIterable {
  case insert
  case update
  case delete
  case query
}

/// One action on a table, as an interceptor sees and changes it.
public struct Interception: Sendable {
  /// The action.
  public let action: RecordAction
  /// The table; a split table has the first part's name and the columns of all parts.
  public let table: TableInfo
  /// Insert: the values. Update: the key and the new values. Delete: the key. A before-interceptor
  /// may change them.
  public var columns: RecordColumns = [:]
  /// Query: the query. A before-interceptor may change it.
  public var query = Query()
  /// Query: the rows found. An after-interceptor may change them.
  public var rows: [RecordColumns] = []
}

/// A closure that runs before or after actions, within their transaction. If it throws, the action
/// fails and the error reaches the caller.
///
/// Those of the ``DataCenter`` come first and those of the ``Table`` last, each list in order.
/// After an action they run in the reverse order. After-interceptors of updates and deletions run
/// only if a row changed. An update or deletion by a query runs them for each row, but no
/// interceptor of queries: a filter of queries does not protect rows from writes. `count` and
/// `exists` run the ones before a query only. At most 16 interceptors may run within one another.
///
/// ```swift
/// let stamped = Interceptor(.before, .insert, .update, table: "notes") { action, _ in
///   action.columns["edited"] = Date().columnValue
/// }
/// let center = DataCenter(database, interceptors: [stamped])
/// ```
public struct Interceptor: Sendable {
  /// When an interceptor runs.
  public enum Stage: Sendable, Hashable {
    case before
    case after
  }

  /// The code of an interceptor.
  public typealias Body = @Sendable (inout Interception, Database) throws -> Void

  let stage: Stage
  let actions: Set<RecordAction>
  let table: Name?
  let body: Body

  /// Creates an interceptor.
  ///
  /// - Parameters:
  ///   - actions: the actions; all of them if there are none.
  ///   - table: the only table; `nil` for all.
  public init(
    _ stage: Stage, _ actions: RecordAction..., table: Name? = nil, _ body: @escaping Body
  ) {
    self.stage = stage
    self.actions = Set(actions.isEmpty ? RecordAction.allCases : actions)
    self.table = table?.folded
    self.body = body
  }

  func runs(_ stage: Stage, _ action: RecordAction, on table: TableInfo) -> Bool {
    self.stage == stage && actions.contains(action)
      && (self.table == nil || self.table == table.name.folded)
  }
}

extension Database {
  /// The most interceptors within each other's writes.
  private static let interceptionDepthMax = 16

  /// Runs the interceptors of one stage. Returns true if there was one.
  @discardableResult
  func intercept(
    _ stage: Interceptor.Stage, _ interception: inout Interception, with own: [Interceptor]
  ) throws -> Bool {
    // Most databases have none.
    if interceptors.isEmpty && own.isEmpty { return false }
    let due = (interceptors + own).filter {
      $0.runs(stage, interception.action, on: interception.table)
    }
    guard !due.isEmpty else { return false }
    guard interceptionDepth < Self.interceptionDepthMax else {
      throw RecordError(
        .invalid, table: interception.table.name,
        "interceptors call each other without end; write with SQL inside of an interceptor")
    }
    interceptionDepth += 1
    defer { interceptionDepth -= 1 }
    for interceptor in stage == .before ? due : due.reversed() {
      try interceptor.body(&interception, self)
    }
    return true
  }

  /// Runs the interceptors after an action of another device.
  ///
  /// - Parameter columns: those of the row; of the key for a deletion.
  package func intercept(
    pulled action: RecordAction, table name: Name, _ columns: [Column],
    with interceptors: [Interceptor]
  ) throws {
    guard let table = try table(name) else { return }
    var interception = Interception(action: action, table: table)
    for column in columns { interception.columns[column.name] = column.value }
    try intercept(.after, &interception, with: interceptors)
  }

  /// Ends the use of this value: calls fail from now on.
  package func end() { isOver = true }

  /// Returns true if an interceptor is due.
  func intercepts(
    _ stage: Interceptor.Stage, _ action: RecordAction, on table: TableInfo,
    with own: [Interceptor]
  ) -> Bool {
    (interceptors + own).contains { $0.runs(stage, action, on: table) }
  }
}
