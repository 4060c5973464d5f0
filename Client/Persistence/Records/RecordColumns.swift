import FerryProtocol

/// Values by the names of their columns, in order; also a record for every table.
///
/// ```swift
/// let columns: RecordColumns = ["id": "t1", "done": true]
/// try Note.table.update(columns, in: database)
/// ```
public struct RecordColumns: Sendable, Equatable {
  /// The names and values; each name once, with ASCII letters in either case as equal.
  public private(set) var all: [Column] = []

  init(capacity: Int) { all.reserveCapacity(capacity) }

  /// Creates columns from all values of a record, for all tables of the record.
  public init(of record: some VirtualRecord) throws { self = try record.allColumns() }

  /// The names, in order.
  public var names: [Name] { all.map(\.name) }

  /// True if there is none.
  public var isEmpty: Bool { all.isEmpty }

  /// The value of a column; `nil` if it is absent. Setting `nil` removes it.
  public subscript(name: Name) -> FerryProtocol.Value? {
    get { place(of: name).map { all[$0].value } }
    set {
      switch (place(of: name), newValue) {
      case (let place?, let value?): all[place] = Column(all[place].name, value)
      case (let place?, nil): all.remove(at: place)
      case (nil, let value?): all.append(Column(name, value))
      case (nil, nil): break
      }
    }
  }

  /// Returns the values of both. Without `override` own values stay, and an own NULL or an absent
  /// column gives way to the other's. With `override` the other's win, NULLs included.
  public func merged(with other: RecordColumns, override: Bool = false) -> RecordColumns {
    var merged = self
    for column in other.all where override || (merged[column.name] ?? .null) == .null {
      merged[column.name] = column.value
    }
    return merged
  }

  /// Returns a record filled from these columns.
  ///
  /// - Throws: ``RecordError`` if a column is absent or a value does not fit.
  public func record<R: Record>(as type: R.Type) throws -> R { try R(row: RecordRow(self)) }

  /// Returns the columns accepted by `body`.
  func filter(_ body: (Name) -> Bool) -> RecordColumns {
    var copy = self
    copy.all.removeAll { !body($0.name) }
    return copy
  }

  /// Appends a column with a new name.
  mutating func append(_ name: Name, _ value: FerryProtocol.Value) {
    all.append(Column(name, value))
  }

  private func place(of name: Name) -> Int? {
    all.firstIndex { $0.name == name } ?? all.firstIndex { $0.name.folded == name.folded }
  }
}

extension RecordColumns: ExpressibleByDictionaryLiteral {
  /// Creates columns; of two equal names the later one wins.
  public init(dictionaryLiteral elements: (Name, any ColumnValue)...) {
    for (name, value) in elements { self[name] = value.columnValue }
  }
}

extension RecordColumns: Record {
  public init(row: RecordRow) throws { self = row.columns }

  public func columns(for table: TableInfo) throws -> RecordColumns { filter(table.accepts) }

  public mutating func fill(from columns: RecordColumns) throws { self = columns }
}
