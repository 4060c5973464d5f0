import FerryProtocol

/// Any value or object that returns columns for a table and is filled from a row.
///
/// A `Codable` type needs no code: each property is the column of its coding key. Properties
/// without a column are left out, so one record can span several tables, and several records can
/// make one row.
///
/// | property | column |
/// |---|---|
/// | integers, `Double`, `String`, `Data`, `[UInt8]` | their storage class |
/// | `Bool` | 0 or 1 |
/// | `Date` | text in UTC with milliseconds: `2026-11-23T14:05:09.250Z` |
/// | `UUID`, `URL` | text |
/// | `Decimal` | text with all digits; it does not sort as a number |
/// | enums with a raw value | the raw value |
/// | other `Codable` values, such as lists and structs | JSON text |
/// | `nil` | NULL |
///
/// ```swift
/// struct Note: Codable, Sendable, TableRecord {
///   var id: String
///   var title: String
///   var done = false
///   static let table = Table<Note>(
///     "notes", [.text("id").primaryKey(), .text("title").notNull(), .integer("done")])
/// }
/// ```
public protocol Record: VirtualRecord, SendableMetatype {
  /// Creates a record from the current row of a result.
  ///
  /// - Throws: ``RecordError`` if a column is absent or a value does not fit.
  init(row: RecordRow) throws
}

extension Record {
  /// Replaces the record by a new one with these columns.
  public mutating func fill(from columns: RecordColumns) throws {
    self = try Self(row: RecordRow(columns))
  }
}

extension Record where Self: AnyObject {
  // A new object would leave the receiver of `merge` as it was.
  @available(
    *, unavailable,
    message: "an object keeps its identity: write fill(from:), or conform to MappedRecord"
  )
  public func fill(from columns: RecordColumns) throws {
    throw RecordError(.invalid, table: "", "\(Self.self) has no fill(from:)")
  }
}

extension Record where Self: Decodable {
  @inlinable
  public init(row: RecordRow) throws {
    do { self = try Self(from: RowDecoder(row: row)) } catch let error as DecodingError {
      throw row.error(for: error)
    }
  }
}

extension Record where Self: Encodable {
  public func columns(for table: TableInfo) throws -> RecordColumns {
    try ColumnsEncoder(table: table).columns(of: self)
  }
}

/// A record with its own table.
///
/// ```swift
/// let urgent = try Note.all.where(Field("done") == false).limit(10).fetch(database)
/// ```
public protocol TableRecord: Record {
  /// The table of these records.
  static var table: Table<Self> { get }
}

extension TableRecord {
  public static var tableNames: [Name] { [table.name] }

  /// All rows of the record's table, as a query to refine.
  public static var all: TableQuery<Self> { table.all }
}
