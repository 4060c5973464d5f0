extension DeclaredTable: JSONMessage {
  package static var blank: Self { Self(key: "", columns: []) }
  package static var strictness: MemberStrictness { .strict }
  /// References, indexes and unique keys of one definition.
  private static let listsMax = 64

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    let limits = json.rules.sync
    let columnsMax = limits.columns
    let lists = JSONForm<Name>.column.list(max: columnsMax).list(max: Self.listsMax)
    try json.required("key", &key, missing: "the key is missing")
    try json.defaulted("columns", &columns, as: .list(max: columnsMax))
    try json.omitting("unique", &unique, [], as: lists)
    try json.omitting("references", &references, [], as: .list(max: Self.listsMax))
    try json.omitting("indexes", &indexes, [], as: lists)
    try json.omitting("strict", &isStrict, false)
    try json.omitting("withoutRowID", &isWithoutRowID, false)
    try json.omitting("autoincrement", &isAutoincrement, false)
    // Columns of a key that come first need no places.
    let first = Array(key.names.indices)
    let omitted = keyPlaces == first ? first : []
    try json.omitting("keyPlaces", &keyPlaces, omitted, as: .list(max: columnsMax))
    if json.isRead, keyPlaces == first { keyPlaces = [] }
    try json.check(fault(limits: limits))
  }
}

/// A text key's name, or an object.
extension DeclaredKey: JSONValue {
  private struct Members: JSONMessage {
    var mapped: Name?
    var value: [DeclaredColumn]?

    static var blank: Self { Self() }
    static var strictness: MemberStrictness { .strict }

    mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
      try json.optional("mapped", &mapped, as: .column)
      try json.optional("value", &value, as: JSONForm.keyColumn.list(max: json.rules.sync.columns))
      try json.check(mapped != nil || value != nil, "it names neither mapped nor value")
      try json.check(mapped == nil || value == nil, "mapped and value exclude each other")
    }
  }

  package init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage) {
    if try reader.peek() == 0x22 {
      self = .text(try JSONForm.column.read(&reader, rules))
      return
    }
    try reader.require(0x7B, "a name or an object")
    let read = try Members(from: &reader, rules)
    let columns = (read.value ?? []).map { DeclaredKeyColumn($0.name, $0.affinity) }
    self = read.mapped.map { .mapped($0) } ?? .value(columns)
  }

  package func write(to json: inout JSONWriter) {
    switch self {
    case .text(let name): name.write(to: &json)
    case .mapped(let name): Members(mapped: name).write(to: &json)
    case .value(let columns):
      Members(value: columns.map { DeclaredColumn($0.name, $0.affinity) }).write(to: &json)
    }
  }
}

extension JSONForm<DeclaredColumn> {
  /// A column of a key.
  fileprivate static var keyColumn: JSONForm {
    value.checked { column, _ in
      column == DeclaredColumn(column.name, column.affinity)
        ? nil : "a column has a name and a type"
    }
  }
}

extension DeclaredColumn: JSONMessage {
  package static var blank: Self { Self("", .blob) }
  package static var strictness: MemberStrictness { .strict }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("name", &name, as: .column, missing: "a column has no name")
    try json.defaulted("type", &affinity)
    try json.omitting("required", &isRequired, false)
    try json.omitting("default", &defaultValue, .null)
    try json.optional("now", &now)
  }
}

extension DeclaredReference: JSONMessage {
  package static var blank: Self { Self([], to: "") }
  package static var strictness: MemberStrictness { .strict }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    let names = JSONForm<Name>.column.list(max: json.rules.sync.columns)
    let fault = "a reference names no table that may be tracked"
    try json.defaulted("columns", &columns, as: names)
    try json.required("table", &table, as: .column, missing: fault)
    try json.omitting("to", &to, [], as: names)
    try json.omitting("onDelete", &onDelete, .none)
    try json.omitting("onUpdate", &onUpdate, .none)
    try json.omitting("deferred", &isDeferred, false)
    try json.check(!NameRule.isReserved(table: table), fault)
  }
}
