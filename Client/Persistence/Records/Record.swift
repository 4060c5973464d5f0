import FerryProtocol

/// Any value or object that hands over its columns for a table and is filled from a row.
///
/// A `Codable` type needs no code: each property is the column of its coding key. Properties without
/// a column are left out, so one record can span several tables, and several records can make one
/// row.
///
/// | property | column |
/// |---|---|
/// | integers, `Bool`, `Double`, `String`, `Data`, `[UInt8]` | their storage class; `Bool` as 0 or 1 |
/// | `Date` | text in UTC with milliseconds: `2026-11-23T14:05:09.250Z` |
/// | `UUID`, `URL` | text |
/// | enums with a raw value | the raw value |
/// | other `Codable` values | JSON text |
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
public protocol Record: SendableMetatype {
  /// Creates a record from the current row of a result.
  ///
  /// - Throws: ``RecordError`` if a column is absent or its value does not fit.
  init(row: RecordRow) throws

  /// Returns the values for the columns of `table`, and no others. See ``TableInfo/accepts(_:)``.
  ///
  /// - Throws: ``RecordError`` if a value cannot be stored.
  func columns(for table: TableInfo) throws -> RecordColumns

  /// Takes over the values of `columns`: its own, merged with those of another record. A class
  /// implements it to keep its identity in `merge(_:override:)`.
  mutating func fill(from columns: RecordColumns) throws
}

extension Record {
  /// Replaces the record by a new one with these columns.
  public mutating func fill(from columns: RecordColumns) throws {
    self = try Self(row: RecordRow(columns))
  }

  /// Joins the columns of another record to this one and returns the receiver, so that calls chain.
  /// A value returns its changed copy.
  ///
  /// ```swift
  /// let note = try draft.merge(defaults).merge(edits, override: true)
  /// ```
  ///
  /// - Parameter override: without it, own values stay, and a nil on either side gives way to the
  ///   other side's value. With it, the other's values win, its nils included.
  /// - Throws: ``RecordError`` if the receiver cannot take a value.
  public func merge(_ other: some Record, override: Bool = false) throws -> Self {
    try joined(with: other, override)
  }

  private func joined(with other: some Record, _ override: Bool) throws -> Self {
    let own = try columns(for: .unrestricted)
    var receiver = self
    try receiver.fill(
      from: own.merged(with: try other.columns(for: .unrestricted), override: override))
    return receiver
  }
}

extension Record where Self: AnyObject {
  /// Joins the columns of another record to this object and returns the object itself.
  @discardableResult
  public func merge(_ other: some Record, override: Bool = false) throws -> Self {
    try joined(with: other, override)
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

/// A record with a table of its own.
///
/// ```swift
/// let urgent = try Note.all.where(Field("done") == false).limit(10).fetch(database)
/// ```
public protocol TableRecord: Record {
  /// The table of these records.
  static var table: Table<Self> { get }
}

extension TableRecord {
  /// All rows of the record's table, as a query to refine.
  public static var all: TableQuery<Self> { table.all }
}
