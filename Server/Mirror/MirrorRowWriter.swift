import FerryPersistence
import FerryProtocol

/// Applies single writes of programs to the replica, within a transaction of it.
struct MirrorRowWriter {
  let file: MirrorFile
  let database: Database

  /// Frees the unique values written by an update.
  func empty(_ write: CapturedWrite) throws {
    guard [.update, .slice].contains(write.kind), let table = file.plan.table(write.table)
    else { return }
    let names = Set(write.names.map { Name($0) })
    let columns = table.columns.filter { names.contains($0.name) }
    try empty(table, try table.values(ofKey: write.key), columns)
  }

  /// Frees the unique values of a row.
  private func empty(
    _ table: MirrorTable, _ key: [Value], _ columns: [MirrorColumn]
  ) throws {
    let unique = Set(table.unique.joined())
    for column in columns where unique.contains(column.name) {
      let value =
        !column.isRequired ? "NULL" : column.affinity == .text ? "hex(randomblob(16))" : "random()"
      try database.execute(
        repeated: """
          UPDATE \(quoted(table.name)) SET \(quoted(column.name)) = \(value)
          WHERE \(Self.hasKey(table))
          """, key)
    }
  }

  private static func hasKey(_ table: MirrorTable) -> String {
    table.key.map { "\(quoted($0.name)) = ?" }.joined(separator: " AND ")
  }

  /// Applies a captured write to the replica, which sends it as a separate operation. Returns
  /// `true` if there was such a row.
  ///
  /// - Parameter changes: programs' changes of an unsent row that the space lacks, for a retry of it.
  func apply(_ write: CapturedWrite, making changes: [UnsentChange] = []) throws -> Bool {
    guard let table = file.plan.table(write.table) else { return true }
    let key = try table.values(ofKey: write.key)
    if write.kind == .unfit {
      let part = write.values.first?.flatMap(\.self) ?? "the row"
      throw MirrorFault(description: "devices cannot hold the value of \(part)")
    }
    // A program has dropped the others since.
    let write = write.limited { table.column(Name($0)) != nil }
    let columns = write.names.compactMap { table.column(Name($0)) }
    if write.kind == .update, columns.isEmpty { return true }
    let values = try zip(columns, write.values).map { try $0.value(of: $1) }
    switch write.kind {
    case .delete:
      if !write.former.isEmpty, try !has(try table.values(ofKey: write.former), table) {
        return true
      }
      let name = quoted(table.name)
      return try database.execute(
        repeated: "DELETE FROM \(name) WHERE \(Self.hasKey(table))", key) > 0
    case .slice: try insert(write, table, key, columns, values, making: changes)
    case .insert:
      try insert(table, key, columns, values)
      if !isExact(columns, values, write) { try file.mark(table, key, database) }
    case .unfit: break
    case .answer: try answer(write, table, key, columns, values)
    case .update: return try update(write, table, key, columns, values)
    case .rekey:
      let former = try table.values(ofKey: write.former)
      guard file.isParentRekey(write) else {
        try rekey(table, from: former, to: key, columns, values)
        break
      }
      // The record of before is deleted at the end of the transaction.
      if write.tries > 0, try has(key, table) { break }
      try empty(table, former, columns)
      try insert(table, key, columns, values)
    }
    return true
  }

  /// Returns the key of another row with a unique value of a write; `nil` if there is none.
  func holder(of write: CapturedWrite) throws -> [String?]? {
    guard let table = file.plan.table(write.table) else { return nil }
    let key = try table.values(ofKey: write.key)
    let row = try database.query(
      repeated: "SELECT * FROM \(quoted(table.name)) WHERE \(Self.hasKey(table))", key
    ).first
    var values = Dictionary(uniqueKeysWithValues: zip(table.key.map(\.name), key))
    for (name, text) in zip(write.names, write.values) {
      if let column = table.column(Name(name)) { values[column.name] = try column.value(of: text) }
    }
    let keys = table.key.map { quoted($0.name) }.joined(separator: ", ")
    for unique in table.unique {
      let wanted = unique.map { values[$0] ?? row?[$0.text] ?? .null }
      let equal = unique.map { "\(quoted($0)) = ?" }.joined(separator: " AND ")
      let found = try database.query(
        repeated:
          "SELECT \(keys) FROM \(quoted(table.name)) WHERE \(equal) AND NOT (\(Self.hasKey(table)))",
        wanted + key)
      guard let found = found.first else { continue }
      return try? table.texts(ofKey: table.key.map { found[$0.name.text] })
    }
    return nil
  }

  private func insert(
    _ table: MirrorTable, _ key: [Value], _ columns: [MirrorColumn], _ values: [Value]
  ) throws {
    let names = (table.key + columns).map { quoted($0.name) }
    let marks = names.map { _ in "?" }.joined(separator: ", ")
    let sets = columns.map {
      "\(quoted($0.name)) = excluded.\(quoted($0.name))"
    }
    let action = sets.isEmpty ? "NOTHING" : "UPDATE SET " + sets.joined(separator: ", ")
    try database.execute(
      repeated: """
        INSERT INTO \(quoted(table.name))(\(names.joined(separator: ", "))) VALUES (\(marks))
        ON CONFLICT(\(MirrorFile.keys(table, ""))) DO \(action)
        """, key + values)
  }

  /// Writes a whole row. If it was unsent, devices may have written to the space's row meanwhile:
  /// the changes are added to it, and the table gets the row again.
  private func insert(
    _ write: CapturedWrite, _ table: MirrorTable, _ key: [Value], _ columns: [MirrorColumn],
    _ values: [Value], making changes: [UnsentChange]
  ) throws {
    let name = quoted(table.name)
    let row =
      try changes.isEmpty
      ? nil
      : database.query(repeated: "SELECT * FROM \(name) WHERE \(Self.hasKey(table))", key).first
    guard let row else { return try insert(table, key, columns, values) }
    let merged = zip(columns, values).map { column, value in
      changes.value(of: column, in: value, over: row[column.name.text])
    }
    try insert(table, key, columns, merged)
    if merged != values { try file.mark(table, key, database) }
  }

  private func update(
    _ write: CapturedWrite, _ table: MirrorTable, _ key: [Value], _ columns: [MirrorColumn],
    _ values: [Value]
  ) throws -> Bool {
    let name = quoted(table.name)
    let row = try database.query(repeated: "SELECT * FROM \(name) WHERE \(Self.hasKey(table))", key)
      .first
    guard let row else { throw MirrorFault.deleted }
    let former = try zip(columns, write.former).map { try $0.value(of: $1) }
    let merged = zip(zip(columns, values), former).map { column, old in
      column.0.merged(column.1, over: row[column.0.name.text], from: old)
    }
    let sets = columns.map { "\(quoted($0.name)) = ?" }.joined(separator: ", ")
    try database.execute(
      repeated: "UPDATE \(name) SET \(sets) WHERE \(Self.hasKey(table))", merged + key)
    if write.isOverwritten || !isExact(columns, merged, write) {
      try file.mark(table, key, database)
    }
    return true
  }

  /// Gives a row the values of PostgreSQL, as far as the row still has the step's values.
  /// A later change of it comes with the next step.
  private func answer(
    _ write: CapturedWrite, _ table: MirrorTable, _ key: [Value], _ columns: [MirrorColumn],
    _ values: [Value]
  ) throws {
    let name = quoted(table.name)
    let row = try database.query(repeated: "SELECT * FROM \(name) WHERE \(Self.hasKey(table))", key)
      .first
    if write.answersDelete {
      if row == nil, !write.isAbsent { try insert(table, key, columns, values) }
      return
    }
    guard let row else { return }
    let isSame = zip(columns, write.former).map { column, former in
      // PostgreSQL cannot hold other values.
      (try? column.text(of: row[column.name.text])).map { $0 == former } ?? true
    }
    if write.isAbsent {
      guard !isSame.contains(false) else { return }
      try database.execute(repeated: "DELETE FROM \(name) WHERE \(Self.hasKey(table))", key)
      return
    }
    var (sets, new): ([String], [Value]) = ([], [])
    for (place, column) in columns.enumerated() {
      let present = row[column.name.text]
      guard isSame[place] || column.policy == .counter || column.policy == .textMerge else {
        continue
      }
      let former = isSame[place] ? present : try column.value(of: write.former[place])
      if column.isExact(former, write.values[place]) { continue }
      sets.append("\(quoted(column.name)) = ?")
      new.append(column.merged(values[place], over: present, from: former))
    }
    if sets.isEmpty { return }
    try database.execute(
      repeated: "UPDATE \(name) SET \(sets.joined(separator: ", ")) WHERE \(Self.hasKey(table))",
      new + key)
  }

  /// Returns `true` if PostgreSQL has the values of a write already. If so, the row is not brought
  /// back: a program that writes to it all the time would delay each step.
  private func isExact(
    _ columns: [MirrorColumn], _ values: [Value], _ write: CapturedWrite
  ) -> Bool {
    zip(zip(columns, values), write.values).allSatisfy { $0.0.isExact($0.1, $1) }
  }

  func remove(_ key: [Value], from table: MirrorTable) throws {
    try database.execute(
      repeated: "DELETE FROM \(quoted(table.name)) WHERE \(Self.hasKey(table))", key)
  }

  func has(_ key: [Value], _ table: MirrorTable) throws -> Bool {
    let name = quoted(table.name)
    return try !database.query(repeated: "SELECT 1 FROM \(name) WHERE \(Self.hasKey(table))", key)
      .isEmpty
  }

  /// Changes the key of a row.
  private func rekey(
    _ table: MirrorTable, from former: [Value], to key: [Value], _ columns: [MirrorColumn],
    _ values: [Value]
  ) throws {
    let name = quoted(table.name)
    if try !has(key, table) {
      let sets = (table.key + columns).map { "\(quoted($0.name)) = ?" }
      let count = try database.execute(
        repeated: "UPDATE \(name) SET \(sets.joined(separator: ", ")) WHERE \(Self.hasKey(table))",
        key + values + former)
      if count > 0 { return }
    } else {
      try database.execute(
        repeated: "DELETE FROM \(name) WHERE \(Self.hasKey(table))", former)
    }
    try insert(table, key, columns, values)
  }
}

extension MirrorFault {
  static let deleted = MirrorFault(description: "the space has deleted the record")
  static let restored = MirrorFault(
    description: "the tables lack former steps: they were restored")
  static let exchange = MirrorFault(description: "the values cannot be exchanged")
}
