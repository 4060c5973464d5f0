import FerryPersistence
import FerryPlatform
import FerryProtocol

/// A page's query on one table.
struct PageQuery: Sendable {
  static let rowsMax: Int64 = 10_000
  private static let rowsUsual = 1_000
  /// About the most bytes of one result, without BLOBs sent by address.
  private static let bytesMax = 8 << 20

  static let schema = ValueSchema.object([
    .required("table", DataServices.name), .optional("where", .list(of: .any, max: 10_000)),
    .optional("columns", .list(of: DataServices.name, max: 256)),
    .optional("order", .list(of: DataServices.name, max: 16)),
    .optional("limit", .integer(1...rowsMax)), .optional("offset", .integer(0...1_000_000_000)),
  ])
  static let result = ValueSchema.list(of: .map(of: .any, max: 2_000), max: Int(rowsMax))

  let table: Name
  private let predicate: RecordPredicate
  private var query = Query()

  /// Reads a query in the form of ``schema``.
  init(_ argument: ServiceValue, in access: DataAccess) throws(ServiceError) {
    table = try access.table(argument["table"])
    predicate = try PagePredicate.read(argument["where"])
    query.selection = (argument["columns"]?.list ?? []).compactMap { $0.text.map { Name($0) } }
    // A hyphen before a column: the largest value first.
    query.ordering = (argument["order"]?.list ?? []).compactMap(\.text).map { text in
      text.begins(with: "-")
        ? Field(Name(text.dropFirst())).descending : Field(Name(text)).ascending
    }
    query.limit = argument["limit"]?.integer.map { Int($0) } ?? Self.rowsUsual
    query.offset = argument["offset"]?.integer.map { Int($0) } ?? 0
  }

  /// Returns the rows.
  func rows(_ database: Database) throws -> [RecordColumns] {
    let (source, query) = try prepared(database)
    var size = ResultSize()
    var rows: [RecordColumns] = []
    try source.all.applying(query).forEach(database) { row in
      for column in row.all { size.add(column.value) }
      guard size.inline <= Self.bytesMax, size.inFiles <= PageFiles.memoryBytesMax else {
        throw ServiceError("too_large", "the result is too large; use limit and offset")
      }
      rows.append(row)
    }
    return rows
  }

  /// Returns the number of rows, without limit and offset.
  func count(_ database: Database) throws -> Int {
    var (source, query) = try prepared(database)
    (query.limit, query.offset, query.ordering) = (nil, 0, [])
    return try source.all.applying(query).count(database)
  }

  private func prepared(_ database: Database) throws -> (Table<RecordColumns>, Query) {
    let source = Table<RecordColumns>(table)
    let key = try source.info(in: database).key
    var query = query
    query.condition = try PagePredicate.condition(predicate, key: key.count == 1 ? key[0] : nil)
    return (source, query)
  }

  /// Returns rows as a result.
  static func value(_ rows: [RecordColumns], _ files: PageFiles) -> ServiceValue {
    .list(
      rows.map { row in
        .object(
          Dictionary(row.all.map { ($0.name, ServiceValue($0.value, files: files)) }) { $1 })
      })
  }
}

/// About the bytes of a query's result.
private struct ResultSize {
  /// Bytes within the message.
  var inline = 0
  /// Bytes of the BLOBs sent by address.
  var inFiles = 0

  mutating func add(_ value: Value) {
    switch value {
    case .text(let text): inline += text.utf8.count
    case .blob(let bytes) where bytes.count <= ServiceValue.inlineBytesMax: inline += bytes.count
    case .blob(let bytes):
      inline += 16
      inFiles += bytes.count
    case .null, .integer, .real: inline += 16
    }
  }
}
