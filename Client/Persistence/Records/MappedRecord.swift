import FerryProtocol

/// A record with a list of columns and properties, without further code. For objects with an
/// identity, for view models, and for column names checked by the compiler.
///
/// ```swift
/// final class Profile: MappedRecord {
///   var id = ""
///   var name: String?
///   static var fields: [RecordField<Profile>] {
///     [RecordField("id", \.id), RecordField("name", \.name)]
///   }
/// }
///
/// let ada = Profile()
/// try ada.merge(["id": "1", "name": "Ada"] as RecordColumns)
/// let condition = Field(\Profile.name) == "Ada"
/// ```
public protocol MappedRecord: VirtualRecord {
  /// The columns and their properties.
  static var fields: [RecordField<Self>] { get }
}

/// A column of a ``MappedRecord`` and the property for it.
public struct RecordField<R> {
  /// The column's name.
  public let name: Name
  let path: AnyKeyPath
  let get: (R) throws -> Value
  let set: (inout R, Value) throws -> Void

  /// Joins a column and a property. The stored forms are those of ``Record``.
  public init<Property: Codable>(_ name: Name, _ path: WritableKeyPath<R, Property>) {
    self.name = name
    self.path = path
    get = { record in
      do { return try ColumnEncoder.value(record[keyPath: path]) } catch let error
        as UnstorableValue
      {
        throw RecordError.unstorable(error.description, table: "", column: name)
      }
    }
    set = { record, value in
      let row = RecordRow(names: [name], values: [value])
      record[keyPath: path] = try row.decode(Property.self, name)
    }
  }
}

extension MappedRecord {
  private func mappedColumns(for table: TableInfo) throws -> RecordColumns {
    let fields = Self.fields
    var columns = RecordColumns(capacity: fields.count)
    for field in fields where table.accepts(field.name) {
      columns[field.name] = try field.get(self)
    }
    return columns
  }

  /// Sets the properties of the present columns; the others keep their values.
  private mutating func fillMapped(_ columns: RecordColumns) throws {
    for field in Self.fields {
      if let value = columns[field.name] { try field.set(&self, value) }
    }
  }

  public func columns(for table: TableInfo) throws -> RecordColumns {
    try mappedColumns(for: table)
  }

  public mutating func fill(from columns: RecordColumns) throws { try fillMapped(columns) }
}

// The fields come before the forms of `Codable` types and of other records.

extension MappedRecord where Self: Record {
  public mutating func fill(from columns: RecordColumns) throws { try fillMapped(columns) }
}

extension MappedRecord where Self: Record & AnyObject {
  public mutating func fill(from columns: RecordColumns) throws { try fillMapped(columns) }
}

extension MappedRecord where Self: Record & Encodable {
  public func columns(for table: TableInfo) throws -> RecordColumns {
    try mappedColumns(for: table)
  }
}

extension Field {
  /// Names the column of a property. The compiler checks the property's name.
  ///
  /// ```swift
  /// let condition = Field(\Profile.name) == "Ada"
  /// ```
  ///
  /// A property outside of the fields makes the query throw ``RecordError``.
  public init<R: MappedRecord, Property>(_ path: KeyPath<R, Property>) {
    self.init(R.fields.first { $0.path == path }?.name ?? Name("\(path)"))
  }

  /// Names the column of a coding key. The compiler checks the key's name.
  ///
  /// ```swift
  /// struct Note: Codable, Sendable, TableRecord {
  ///   enum CodingKeys: String, CodingKey { case id, title }
  ///   var id: String
  ///   var title: String
  ///   static let table = Table<Note>("notes", [.text("id").primaryKey(), .text("title")])
  /// }
  /// let notes = try Note.all.where(Field(Note.CodingKeys.title) == "Milk").fetch(database)
  /// ```
  public init(_ key: some CodingKey) { self.init(Name(key.stringValue)) }
}
