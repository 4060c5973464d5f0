extension JSONWriter {
  /// Writes a definition in canonical form: equal definitions give equal bytes.
  mutating func declaredTable(_ table: DeclaredTable) {
    object { json in
      json.key("key")
      json.declaredKey(table.key)
      json.key("columns")
      json.array { json in
        for column in table.columns {
          json.element()
          json.declaredColumn(column)
        }
      }
      json.lists("unique", table.unique)
      if !table.references.isEmpty {
        json.key("references")
        json.array { json in
          for reference in table.references {
            json.element()
            json.declaredReference(reference)
          }
        }
      }
      json.lists("indexes", table.indexes)
      if table.isStrict { json.member("strict", true) }
      if table.isWithoutRowID { json.member("withoutRowID", true) }
      if table.isAutoincrement { json.member("autoincrement", true) }
      if !table.keyPlaces.isEmpty, table.keyPlaces != Array(table.keyPlaces.indices) {
        json.key("keyPlaces")
        json.array(of: table.keyPlaces) { json, place in json.number(Int64(place)) }
      }
    }
  }

  private mutating func declaredKey(_ key: DeclaredKey) {
    switch key {
    case .text(let name): string(name)
    case .mapped(let name): object { $0.member("mapped", name) }
    case .value(let columns):
      object { json in
        json.key("value")
        json.array(of: columns) { json, column in
          json.object { json in
            json.member("name", column.name)
            json.member("type", column.affinity.rawValue)
          }
        }
      }
    }
  }

  private mutating func declaredColumn(_ column: DeclaredColumn) {
    object { json in
      json.member("name", column.name)
      json.member("type", column.affinity.rawValue)
      if column.isRequired { json.member("required", true) }
      if column.defaultValue != .null { json.member("default", column.defaultValue) }
      if let now = column.now { json.member("now", now.rawValue) }
    }
  }

  private mutating func declaredReference(_ reference: DeclaredReference) {
    object { json in
      json.key("columns")
      json.array(of: reference.columns)
      json.member("table", reference.table)
      if !reference.to.isEmpty {
        json.key("to")
        json.array(of: reference.to)
      }
      if reference.onDelete != .none { json.member("onDelete", reference.onDelete.rawValue) }
      if reference.onUpdate != .none { json.member("onUpdate", reference.onUpdate.rawValue) }
      if reference.isDeferred { json.member("deferred", true) }
    }
  }

  private mutating func lists(_ name: StaticString, _ lists: [[Name]]) {
    if lists.isEmpty { return }
    key(name)
    array(of: lists) { json, list in json.array(of: list) }
  }
}

extension JSONReader {
  /// Reads and checks a definition.
  mutating func declaredTable(
    _ place: String, _ limits: Limits
  ) throws(MalformedMessage) -> DeclaredTable {
    var key: DeclaredKey?
    var table = DeclaredTable(key: "", columns: [])
    var seen = NamesSeen(
      place: place,
      known: "key, columns, unique, references, indexes, strict, withoutRowID, autoincrement, "
        + "keyPlaces")
    try expect(0x7B, at: place, "an object")
    try object { (member, reader) throws(MalformedMessage) in
      try seen.add(member, reader)
      switch member {
      case "key": key = try reader.declaredKey("\(place).key", limits)
      case "columns":
        table.columns = try reader.list("\(place).columns", max: limits.columns) {
          (reader) throws(MalformedMessage) in
          try reader.declaredColumn("\(place).columns", limits)
        }
      case "unique": table.unique = try reader.nameLists("\(place).unique", limits)
      case "indexes": table.indexes = try reader.nameLists("\(place).indexes", limits)
      case "references":
        table.references = try reader.list("\(place).references", max: declaredListsMax) {
          (reader) throws(MalformedMessage) in
          try reader.declaredReference("\(place).references", limits)
        }
      case "strict": table.isStrict = try reader.truth("\(place).strict")
      case "withoutRowID": table.isWithoutRowID = try reader.truth("\(place).withoutRowID")
      case "autoincrement": table.isAutoincrement = try reader.truth("\(place).autoincrement")
      case "keyPlaces":
        table.keyPlaces = try reader.list("\(place).keyPlaces", max: limits.columns) {
          (reader) throws(MalformedMessage) in try reader.count()
        }
      default: throw seen.unknown(member, reader)
      }
    }
    guard let key else { throw malformed("\(place): the key is missing") }
    table.key = key
    if table.keyPlaces == Array(key.names.indices) { table.keyPlaces = [] }
    if let fault = table.fault(limits: limits) { throw malformed("\(place): \(fault)") }
    return table
  }

  private mutating func declaredKey(
    _ place: String, _ limits: Limits
  ) throws(MalformedMessage) -> DeclaredKey {
    if try peek() == UInt8(ascii: "\"") { return .text(try declaredName(place, limits)) }
    var key: DeclaredKey?
    var seen = NamesSeen(place: place, known: "mapped, value")
    try expect(0x7B, at: place, "a name or an object")
    try object { (member, reader) throws(MalformedMessage) in
      try seen.add(member, reader)
      guard key == nil else {
        throw reader.malformed("\(place): mapped and value exclude each other")
      }
      switch member {
      case "mapped": key = .mapped(try reader.declaredName("\(place).mapped", limits))
      case "value":
        key = .value(
          try reader.list("\(place).value", max: limits.columns) {
            (reader) throws(MalformedMessage) in
            let column = try reader.declaredColumn("\(place).value", limits)
            guard column == DeclaredColumn(column.name, column.affinity) else {
              throw reader.malformed("\(place).value: a column has a name and a type")
            }
            return DeclaredKeyColumn(column.name, column.affinity)
          })
      default: throw seen.unknown(member, reader)
      }
    }
    guard let key else { throw malformed("\(place): it names neither mapped nor value") }
    return key
  }

  private mutating func declaredColumn(
    _ place: String, _ limits: Limits
  ) throws(MalformedMessage) -> DeclaredColumn {
    var name: Name?
    var column = DeclaredColumn("", .blob)
    var seen = NamesSeen(place: place, known: "name, type, required, default, now")
    try expect(0x7B, at: place, "an object")
    try object { (member, reader) throws(MalformedMessage) in
      try seen.add(member, reader)
      switch member {
      case "name": name = try reader.declaredName("\(place).name", limits)
      case "type": column.affinity = try reader.choice(place, "type")
      case "required": column.isRequired = try reader.truth("\(place).required")
      case "default": column.defaultValue = try reader.value(limits: limits)
      case "now": column.now = try reader.choice(place, "now")
      default: throw seen.unknown(member, reader)
      }
    }
    guard let name else { throw malformed("\(place): a column has no name") }
    column.name = name
    return column
  }

  private mutating func declaredReference(
    _ place: String, _ limits: Limits
  ) throws(MalformedMessage) -> DeclaredReference {
    var table: Name?
    var reference = DeclaredReference([], to: "")
    var seen = NamesSeen(place: place, known: "columns, table, to, onDelete, onUpdate, deferred")
    try expect(0x7B, at: place, "an object")
    try object { (member, reader) throws(MalformedMessage) in
      try seen.add(member, reader)
      switch member {
      case "columns": reference.columns = try reader.names("\(place).columns", limits)
      case "table": table = try reader.declaredName("\(place).table", limits)
      case "to": reference.to = try reader.names("\(place).to", limits)
      case "onDelete": reference.onDelete = try reader.choice(place, "onDelete")
      case "onUpdate": reference.onUpdate = try reader.choice(place, "onUpdate")
      case "deferred": reference.isDeferred = try reader.truth("\(place).deferred")
      default: throw seen.unknown(member, reader)
      }
    }
    guard let table, !NameRule.isReserved(table: table) else {
      throw malformed("\(place): a reference names no table that may be tracked")
    }
    reference.table = table
    return reference
  }

  private mutating func nameLists(
    _ place: String, _ limits: Limits
  ) throws(MalformedMessage) -> [[Name]] {
    try list(place, max: declaredListsMax) { (reader) throws(MalformedMessage) in
      try reader.names(place, limits)
    }
  }

  mutating func names(
    _ place: String, _ limits: Limits
  ) throws(MalformedMessage) -> [Name] {
    try list(place, max: limits.columns) { (reader) throws(MalformedMessage) in
      try reader.declaredName(place, limits)
    }
  }

  mutating func list<T>(
    _ place: String, max: Int, _ element: (inout JSONReader) throws(MalformedMessage) -> T
  ) throws(MalformedMessage) -> [T] {
    var list: [T] = []
    try expect(0x5B, at: place, "a list")
    try array { (reader) throws(MalformedMessage) in
      guard list.count < max else { throw reader.malformed("\(place): more than \(max) of them") }
      list.append(try element(&reader))
    }
    return list
  }

  private mutating func declaredName(
    _ place: String, _ limits: Limits
  ) throws(MalformedMessage) -> Name {
    try expect(0x22, at: place, "a name")
    let name = try name()
    if let fault = NameRule.fault(in: name, limits: limits) {
      throw malformed("\(place): \(fault)")
    }
    return name
  }
}

/// References, indexes and unique keys of one definition.
private let declaredListsMax = 64
