import FerryPersistence
import FerryProtocol

/// One write of a page, by a ``Table``.
struct PageChange: Sendable {
  private enum Action: String { case insert, update, upsert, delete }

  static let changesMax = 1_000
  static let schema = ValueSchema.object([
    .required("table", DataServices.name),
    .required("action", .choice(["insert", "update", "upsert", "delete"])),
    .required("values", .map(of: .any, max: 2_000)),
  ])

  private let table: Name
  private let action: Action
  private let columns: RecordColumns

  /// Reads a change in the form of ``schema``.
  init(_ value: ServiceValue, in access: DataAccess, _ files: PageFiles) async throws {
    table = try access.table(value["table"])
    action = Action(rawValue: value["action"]?.text ?? "") ?? .insert
    columns = try await Self.columns(value["values"], files)
  }

  /// Returns the columns of an object.
  static func columns(_ value: ServiceValue?, _ files: PageFiles) async throws -> RecordColumns {
    var columns: RecordColumns = [:]
    guard case .object(let members) = value else { return columns }
    for (name, value) in members.sorted(by: { $0.key < $1.key }) {
      columns[name] = try await value.columnValue(files)
    }
    return columns
  }

  /// Makes the change. Returns true if a row was there, or is new.
  func make(_ database: Database) throws -> Bool {
    let table = Table<RecordColumns>(table)
    switch action {
    case .insert:
      try table.insert(columns, in: database)
      return true
    case .update: return try table.update(columns, in: database)
    case .upsert:
      try table.upsert(columns, in: database)
      return true
    case .delete: return try table.delete(columns, in: database)
    }
  }
}
