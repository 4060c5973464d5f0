import FerryProtocol

extension Table {
  /// Inserts a record; returns the row's number, also the value of an integer key.
  ///
  /// Any record will do: the table uses the columns it has.
  ///
  /// - Throws: ``RecordError`` if a value cannot be stored, or no column is the table's;
  ///   ``DatabaseError`` with `isConstraint` true if the table rejects the values.
  @discardableResult
  public func insert(_ record: some VirtualRecord, in database: Database) throws -> Int64 {
    try insert(record: record, in: database)
  }

  private func insert(record: some VirtualRecord, in database: Database) throws -> Int64 {
    try database.typed {
      var action = try action(.insert, record, database)
      try database.intercept(.before, &action, with: interceptors)
      guard !action.columns.isEmpty else {
        throw RecordError(
          .invalid, table: name,
          "the record has no value for a column of table \(name), which has "
            + action.table.columns.map(\.name.text).joined(separator: ", "))
      }
      try database.atomically(layout.isDivided) { try layout.insert(action.columns, database) }
      let row = database.connection.lastInsertedRow
      try database.intercept(.after, &action, with: interceptors)
      return row
    }
  }

  /// Inserts values: `insert(["id": "t1", "title": "Milk"], in: database)`.
  @discardableResult
  public func insert(_ columns: RecordColumns, in database: Database) throws -> Int64 {
    try insert(record: columns, in: database)
  }

  /// Inserts records in their order.
  public func insert(contentsOf records: some Sequence<some VirtualRecord>, in database: Database)
    throws
  {
    for record in records { try insert(record, in: database) }
  }

  /// Updates the row with the record's key, also with NULLs. Other columns keep their values.
  /// Returns true if there is such a row.
  ///
  /// - Throws: ``RecordError`` if the table has no key, or the record has no value for it.
  @discardableResult
  public func update(_ record: some VirtualRecord, in database: Database) throws -> Bool {
    try update(record: record, in: database)
  }

  private func update(record: some VirtualRecord, in database: Database) throws -> Bool {
    try database.typed {
      var action = try action(.update, record, database)
      try database.intercept(.before, &action, with: interceptors)
      let key = try key(of: action.columns, action.table)
      let values = action.columns.filter { key[$0] == nil }
      let isFound = try database.atomically(layout.isDivided) {
        try layout.update(key, values, database)
      }
      guard isFound else { return false }
      try database.intercept(.after, &action, with: interceptors)
      return true
    }
  }

  /// Updates columns of the row with this key: `update(["id": "t1", "done": true], in: database)`.
  @discardableResult
  public func update(_ columns: RecordColumns, in database: Database) throws -> Bool {
    try update(record: columns, in: database)
  }

  /// Updates the row with the record's key, or inserts the record if there is none. Returns true if
  /// it inserted.
  @discardableResult
  public func upsert(_ record: some VirtualRecord, in database: Database) throws -> Bool {
    try database.typed {
      let action = try action(.update, record, database)
      let names = try action.table.checkedKey()
      let isComplete = names.allSatisfy { (action.columns[$0] ?? .null) != .null }
      if isComplete {
        let key = try key(of: action.columns, action.table)
        if try layout.part(with: key, database) != nil {
          return try !update(record, in: database)
        }
      }
      try insert(record, in: database)
      return true
    }
  }

  /// Deletes the row with the record's key. Returns true if there was one.
  @discardableResult
  public func delete(_ record: some VirtualRecord, in database: Database) throws -> Bool {
    try database.typed {
      var action = try action(.delete, record, database)
      action.columns = try key(of: action.columns, action.table)
      try database.intercept(.before, &action, with: interceptors)
      let key = try key(of: action.columns, action.table)
      let isFound = try database.atomically(layout.isDivided) { try layout.delete(key, database) }
      guard isFound else { return false }
      try database.intercept(.after, &action, with: interceptors)
      return true
    }
  }

  /// Deletes the row with a key. Returns true if there was one.
  @discardableResult
  public func delete(key: any ColumnValue..., in database: Database) throws -> Bool {
    try database.typed {
      try delete(columns(ofKey: key, in: database), in: database)
    }
  }

  /// Creates the table, all parts and indexes if they are absent. The first write does this, too.
  public func create(in database: Database) throws {
    try database.typed { try layout.create(in: database) }
  }

  // MARK: Parts

  private func action(
    _ action: RecordAction, _ record: some VirtualRecord, _ database: Database
  ) throws -> Interception {
    try layout.create(in: database)
    let info = try layout.info(in: database)
    return Interception(action: action, table: info, columns: try record.columns(for: info))
  }

  private func key(of columns: RecordColumns, _ info: TableInfo) throws -> RecordColumns {
    let names = try info.checkedKey()
    var key = RecordColumns(capacity: names.count)
    for name in names {
      guard let value = columns[name], value != .null else {
        throw RecordError(
          .noKey, table: info.name, column: name,
          "table \(info.name): the record has no value for the key \(name)")
      }
      key.append(name, value)
    }
    return key
  }
}

extension TableRecord {
  /// Returns the row with a key; `nil` if there is none.
  public static func find(_ key: any ColumnValue, in database: Database) throws -> Self? {
    try table.find(key, in: database)
  }

  /// Inserts the record into the table.
  @discardableResult
  public func insert(in database: Database) throws -> Int64 {
    try Self.table.insert(self, in: database)
  }

  /// Updates the record's row. Returns true if there is one.
  @discardableResult
  public func update(in database: Database) throws -> Bool {
    try Self.table.update(self, in: database)
  }

  /// Updates the record's row, or inserts it. Returns true if it inserted.
  @discardableResult
  public func upsert(in database: Database) throws -> Bool {
    try Self.table.upsert(self, in: database)
  }

  /// Deletes the record's row. Returns true if there was one.
  @discardableResult
  public func delete(in database: Database) throws -> Bool {
    try Self.table.delete(self, in: database)
  }
}
