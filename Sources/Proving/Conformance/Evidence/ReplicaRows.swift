import FerryProtocol

/// The rows of one replica's tracked tables, in one snapshot of the file.
package struct ReplicaRows: Sendable, Equatable {
  /// By name, ascending.
  package var tables: [TableRows]

  package init(_ tables: [TableRows] = []) { self.tables = tables }

  /// Creates rows by table, by record, by column. Rows of one table may name different columns; an
  /// unnamed column of a row is NULL.
  package init(_ nested: [Name: [Name: [Name: Value]]]) {
    tables = nested.keys.sorted().map { name in
      let rows = nested[name] ?? [:]
      let columns = Set(rows.values.flatMap(\.keys)).sorted()
      var table = TableRows(name: name, columns: columns)
      for record in rows.keys.sorted() {
        table.append(record, columns.map { rows[record]?[$0] ?? .null })
      }
      return table
    }
  }

  /// One table's rows; `nil` if the table is not tracked.
  package subscript(table: Name) -> TableRows? { tables.first { $0.name == table } }
}

/// The rows of one table. The values are in one flat array: a run looks at hundreds of thousands of
/// rows.
package struct TableRows: Sendable, Equatable {
  package var name: Name
  /// In the order of the schema, without the key.
  package private(set) var columns: [Name]
  /// The keys, ascending by their bytes.
  package private(set) var records: [Name]
  /// Row by row.
  package private(set) var values: [Value]

  package init(name: Name, columns: [Name]) {
    self.name = name
    self.columns = columns
    records = []
    values = []
  }

  /// Adds a row after all others.
  package mutating func append(_ record: Name, _ row: some Sequence<Value>) {
    records.append(record)
    values.append(contentsOf: row)
  }

  /// Begins a row after all others; ``append(_:)`` adds the values.
  mutating func begin(_ record: Name) { records.append(record) }

  mutating func append(_ value: Value) { values.append(value) }

  /// Returns a row's place; `nil` when there is no such record.
  package func place(of record: Name) -> Int? {
    let place = records.partitioningIndex { $0 >= record }
    return place < records.count && records[place] == record ? place : nil
  }

  /// Returns a column's place; `nil` if the schema has none with this name.
  package func place(ofColumn column: Name) -> Int? { columns.firstIndex(of: column) }

  /// Returns the value in a row and a column, by their places.
  package func value(_ row: Int, _ column: Int) -> Value { values[row * columns.count + column] }

  /// The value of a record's column; `nil` when there is no such row or column.
  package subscript(record: Name, column: Name) -> Value? {
    guard let row = place(of: record), let column = place(ofColumn: column) else { return nil }
    return value(row, column)
  }
}
