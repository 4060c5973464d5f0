import FerryPersistence
import FerryProtocol
import FerrySyncClient

/// The services `data.…`: the tables of a replica for pages. Pages never write SQL.
///
/// ```swift
/// let services = DataServices(replica, tables: ["tasks", "lists"])
/// let registry = ServiceRegistry(services.all, granting: ["data.query", "data.write"])
/// ```
public struct DataServices: Sendable {
  let replica: Replica
  let access: DataAccess

  /// The name of a table or a column.
  static let name = ValueSchema.text(max: 1_024)

  /// Creates the services.
  ///
  /// - Parameter tables: the tables available to pages; `nil` for all but Ferry's own.
  public init(_ replica: Replica, tables: [Name]? = nil) {
    self.replica = replica
    access = DataAccess(tables: tables.map { Set($0) })
  }

  /// Returns the tables that are open to pages by name and missing from the file.
  package func absentTables() async throws -> [Name] {
    guard let tables = access.tables else { return [] }
    let present = try await replica.read { database in
      try database.query("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")
    }.compactMap { row in
      if case .text(let name) = row["name"] { Name(name).folded } else { nil }
    }
    return tables.filter { table in
      !present.contains(table.folded) || (try? access.table(.text(table.text))) == nil
    }.sorted()
  }

  /// All of them.
  public var all: [Service] {
    [query, count, write, batch, conflicts, resolve, status, sync]
  }

  /// `data.query`: the rows of a table.
  public var query: Service {
    Service(
      "data.query", permission: "reads tables", argument: PageQuery.schema,
      result: PageQuery.result
    ) { [replica, access] call in
      let query = try PageQuery(call.argument, in: access)
      return Feeds.mapped(replica.observe { try query.rows($0) }) {
        PageQuery.value($0, call.files)
      }
    } handler: { [replica, access] call in
      let query = try PageQuery(call.argument, in: access)
      return PageQuery.value(try await replica.read { try query.rows($0) }, call.files)
    }
  }

  /// `data.count`: the number of rows of a query, without the query's limit.
  public var count: Service {
    Service(
      "data.count", permission: "counts the rows of tables", argument: PageQuery.schema,
      result: .integer(0 ... .max)
    ) { [replica, access] call in
      let query = try PageQuery(call.argument, in: access)
      return Feeds.mapped(replica.observe { try query.count($0) }) { ServiceValue($0) }
    } handler: { [replica, access] call in
      let query = try PageQuery(call.argument, in: access)
      return ServiceValue(try await replica.read { try query.count($0) })
    }
  }

  /// `data.write`: several writes in one transaction.
  public var write: Service {
    Service(
      "data.write", permission: "changes rows of tables",
      argument: .object([
        .required("changes", .list(of: PageChange.schema, max: PageChange.changesMax))
      ]), result: .object([.required("changed", .anyInteger)])
    ) { [replica, access] call in
      var read: [PageChange] = []
      for value in call.argument["changes"]?.list ?? [] {
        read.append(try await PageChange(value, in: access, call.files))
      }
      let changes = read
      let changed = try await replica.write { database in
        try changes.reduce(0) { try $0 + ($1.make(database) ? 1 : 0) }
      }
      return ["changed": ServiceValue(changed)]
    }
  }

  /// `data.batch`: sets columns of all records that match a condition, or deletes them, on all
  /// devices (SPEC.md §14).
  public var batch: Service {
    Service(
      "data.batch", permission: "changes many rows at once",
      argument: .object([
        .required("table", Self.name), .required("where", .list(of: .any, max: 10_000)),
        .optional("set", .map(of: .any, max: 2_000)), .optional("delete", .bool),
      ]), result: .object([.required("matched", .anyInteger)])
    ) { [replica, access] call in
      let table = try access.table(call.argument["table"])
      let predicate = try PagePredicate.read(call.argument["where"])
      let deletes = call.argument["delete"]?.bool == true
      let columns = try await PageChange.columns(call.argument["set"], call.files)
      guard deletes == columns.isEmpty else {
        throw ServiceError("invalid_argument", "a batch has either “set” or “delete”")
      }
      let matched = try await replica.write { database in
        if deletes { return try database.batchDelete(table, where: predicate) }
        let values = Dictionary(columns.all.map { ($0.name, $0.value) }) { $1 }
        return try database.batch(table, where: predicate, set: values)
      }
      return ["matched": ServiceValue(matched)]
    }
  }
}
