// People write the schema document. So an error contains the place of the fault and the correction,
// and unknown members are refused: a misspelt rule would be no rule.

extension SpaceSchema {
  /// Returns the document in canonical form: equal schemas give equal bytes.
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 64 + tables.count * 128)
    json.object { json in
      json.member("version", version)
      json.member("minimumProtocol", minimumProtocol)
      if requiresCursor { json.member("requireCursor", true) }
      json.key("tables")
      json.object(of: tables) { json, rules in json.tableRules(rules) }
    }
    return json.finish()
  }

  /// Reads and checks a document, as `ferry schema apply` takes it.
  ///
  /// - Throws: `MalformedMessage` with the place and the correction.
  public init(json text: String) throws(MalformedMessage) {
    try self.init(decoding: Array(text.utf8))
  }

  /// Reads and checks a document of at most ``Limits/schemaBytes``.
  package init(
    decoding bytes: [UInt8], limits: Limits = .standard
  ) throws(MalformedMessage) {
    guard bytes.count <= limits.schemaBytes else {
      throw MalformedMessage(
        reason: "the schema has \(bytes.count) bytes; \(limits.schemaBytes) are allowed", offset: 0)
    }
    self = try decode(bytes, depth: limits.depth) { (reader) throws(MalformedMessage) in
      try reader.schema(limits)
    }
  }
}

extension JSONWriter {
  fileprivate mutating func tableRules(_ rules: TableRules) {
    object { json in
      if rules.policy != .lastWriterWins { json.member("policy", rules.policy.rawValue) }
      if rules.deletes != .deleteWins { json.member("deletes", rules.deletes.rawValue) }
      if rules.write != .writer { json.member("write", rules.write.rawValue) }
      if !rules.columns.isEmpty {
        json.key("columns")
        json.object(of: rules.columns) { json, column in json.columnRules(column) }
      }
      if !rules.unique.isEmpty {
        json.key("unique")
        json.array(of: rules.unique) { json, key in json.array(of: key) }
      }
      json.clashes(rules.clashes)
      json.aliases(rules.aliases)
      if let definition = rules.definition {
        json.key("definition")
        json.declaredTable(definition)
      }
    }
  }

  private mutating func columnRules(_ rules: ColumnRules) {
    let impliedType: ColumnType = rules.policy == .counter ? .integer : .any
    let isPolicyAlone =
      rules.type == impliedType && !rules.isRequired && rules.aliases.isEmpty
    if let policy = rules.policy, isPolicyAlone {
      return string(policy.rawValue)
    }
    object { json in
      json.member("policy", ifPresent: rules.policy?.rawValue)
      if rules.type != impliedType { json.member("type", rules.type.rawValue) }
      if rules.isRequired { json.member("required", true) }
      json.aliases(rules.aliases)
    }
  }

  private mutating func aliases(_ names: [Name]) {
    if names.isEmpty { return }
    key("aliases")
    array(of: names)
  }
}

extension JSONReader {
  fileprivate mutating func schema(_ limits: Limits) throws(MalformedMessage) -> SpaceSchema {
    var schema = SpaceSchema()
    var seen = NamesSeen(
      place: "the schema", known: "version, minimumProtocol, requireCursor, tables")
    try object { (key, reader) throws(MalformedMessage) in
      try seen.add(key, reader)
      switch key {
      case "version":
        schema.version = try reader.whole("version", in: 0...exactIntegers.upperBound)
      case "minimumProtocol":
        schema.minimumProtocol = Int(try reader.whole("minimumProtocol", in: 1...1_000_000))
      case "requireCursor": schema.requiresCursor = try reader.truth("requireCursor")
      case "tables": schema.tables = try reader.tables(limits)
      default: throw seen.unknown(key, reader)
      }
    }
    return schema
  }

  private mutating func tables(
    _ limits: Limits
  ) throws(MalformedMessage) -> [Name: TableRules] {
    var tables: [Name: TableRules] = [:]
    try expect(0x7B, at: "tables", "an object of the tables' rules by name")
    try object { (key, reader) throws(MalformedMessage) in
      let name = try reader.name(key, of: "tables", limits)
      if NameRule.isReserved(table: name) {
        throw reader.malformed(
          "tables: \(name) belongs to the server; names that begin with ferry_ or sqlite_ "
            + "take no rules")
      }
      guard tables.count < limits.schemaTables else {
        throw reader.malformed("tables: more than \(limits.schemaTables) of them")
      }
      let rules = try reader.tableRules("tables.\(name)", limits)
      guard tables.updateValue(rules, forKey: name) == nil else {
        throw reader.malformed("tables: \(name) is a duplicate")
      }
      if let alias = rules.aliases.first(where: { NameRule.isReserved(table: $0) }) {
        throw reader.malformed("tables.\(name).aliases: \(alias) is reserved")
      }
    }
    try checkAliases(
      tables.sorted { $0.key < $1.key }.map { ($0.key, $0.value.aliases) }, at: "tables")
    return tables
  }

  private mutating func tableRules(
    _ place: String, _ limits: Limits
  ) throws(MalformedMessage) -> TableRules {
    var rules = TableRules()
    var seen = NamesSeen(
      place: place,
      known: "policy, deletes, write, columns, unique, clashes, aliases, definition")
    try expect(0x7B, at: place, "an object of rules")
    try object { (key, reader) throws(MalformedMessage) in
      try seen.add(key, reader)
      switch key {
      case "policy": rules.policy = try reader.choice(place, "policy")
      case "deletes": rules.deletes = try reader.choice(place, "deletes")
      case "write": rules.write = try reader.choice(place, "write", among: [.writer, .admin])
      case "columns": rules.columns = try reader.columnRules("\(place).columns", limits)
      case "unique": rules.unique = try reader.uniqueKeys("\(place).unique", limits)
      case "clashes": rules.clashes = try reader.clashes("\(place).clashes", limits)
      case "aliases": rules.aliases = try reader.aliases("\(place).aliases", limits)
      case "definition":
        rules.definition = try reader.declaredTable("\(place).definition", limits)
      default: throw seen.unknown(key, reader)
      }
    }
    for key in rules.unique {
      for column in key where rules.policy(of: column).makesValues {
        throw malformed(
          "\(place).unique: column \(column) is \(rules.policy(of: column).rawValue), which makes "
            + "values that nobody wrote; a unique key takes other policies")
      }
    }
    if let fault = rules.typeFault { throw malformed("\(place): \(fault)") }
    return rules
  }

  private mutating func columnRules(
    _ place: String, _ limits: Limits
  ) throws(MalformedMessage) -> [Name: ColumnRules] {
    var columns: [Name: ColumnRules] = [:]
    try expect(0x7B, at: place, "an object of the columns' rules by name")
    try object { (key, reader) throws(MalformedMessage) in
      let name = try reader.name(key, of: place, limits)
      guard columns.count < limits.columns else {
        throw reader.malformed("\(place): more than \(limits.columns) of them")
      }
      let rules = try reader.columnRule("\(place).\(name)", limits)
      guard columns.updateValue(rules, forKey: name) == nil else {
        throw reader.malformed("\(place): \(name) is a duplicate")
      }
    }
    try checkAliases(
      columns.sorted { $0.key < $1.key }.map { ($0.key, $0.value.aliases) }, at: place)
    return columns
  }

  /// Returns a policy's name, or an object.
  private mutating func columnRule(
    _ place: String, _ limits: Limits
  ) throws(MalformedMessage) -> ColumnRules {
    if try peek() == 0x22 { return ColumnRules(policy: try choice(place)) }
    var policy: ConflictPolicy?
    var type: ColumnType?
    var isRequired = false
    var aliases: [Name] = []
    var seen = NamesSeen(place: place, known: "policy, type, required, aliases")
    try expect(0x7B, at: place, "a policy's name or an object")
    try object { (key, reader) throws(MalformedMessage) in
      try seen.add(key, reader)
      switch key {
      case "policy": policy = try reader.choice(place, "policy")
      case "type": type = try reader.choice(place, "type")
      case "required": isRequired = try reader.truth("\(place).required")
      case "aliases": aliases = try reader.aliases("\(place).aliases", limits)
      default: throw seen.unknown(key, reader)
      }
    }
    if let policy, let type, let right = policy.typesAdmitted, !right.contains(type) {
      let names = right.map(\.rawValue).joined(separator: " or ")
      throw malformed("\(place): a column that is \(policy.rawValue) has type \(names)")
    }
    return ColumnRules(policy: policy, type: type, isRequired: isRequired, aliases: aliases)
  }

  /// Reads the other names of a table or column.
  private mutating func aliases(
    _ place: String, _ limits: Limits
  ) throws(MalformedMessage) -> [Name] {
    var aliases: [Name] = []
    try expect(0x5B, at: place, "a list of names")
    try array { (reader) throws(MalformedMessage) in
      try reader.expect(0x22, at: place, "a name")
      let name = try reader.name()
      if let fault = NameRule.fault(in: name, limits: limits) {
        throw reader.malformed("\(place): \(fault)")
      }
      aliases.append(name)
      if aliases.count > aliasesMax {
        throw reader.malformed("\(place): at most \(aliasesMax) of them")
      }
    }
    return aliases
  }

  /// Checks that each name on a device stands for one name of the space.
  private func checkAliases(
    _ names: [(name: Name, aliases: [Name])], at place: String
  ) throws(MalformedMessage) {
    var seen = Set(names.map(\.name.folded))
    for (name, aliases) in names {
      for alias in aliases where !seen.insert(alias.folded).inserted {
        throw malformed(
          "\(place).\(name).aliases: \(alias) stands for another one, or is one itself")
      }
    }
  }

  private mutating func uniqueKeys(
    _ place: String, _ limits: Limits
  ) throws(MalformedMessage) -> [[Name]] {
    var keys: [[Name]] = []
    try expect(0x5B, at: place, "a list of keys, each a list of columns")
    try array { (reader) throws(MalformedMessage) in
      var key: [Name] = []
      try reader.expect(0x5B, at: place, "a key that is a list of columns")
      try reader.array { (reader) throws(MalformedMessage) in
        try reader.expect(0x22, at: place, "a column's name")
        let name = try reader.name()
        if let fault = NameRule.fault(in: name, limits: limits) {
          throw reader.malformed("\(place): \(fault)")
        }
        if key.contains(name) { throw reader.malformed("\(place): a key names \(name) twice") }
        key.append(name)
        if key.count > uniqueColumnsMax {
          throw reader.malformed("\(place): a key has at most \(uniqueColumnsMax) columns")
        }
      }
      if key.isEmpty { throw reader.malformed("\(place): a key names at least one column") }
      if keys.contains(key) { throw reader.malformed("\(place): a key is a duplicate") }
      keys.append(key)
      if keys.count > uniqueKeysMax {
        throw reader.malformed("\(place): a table has at most \(uniqueKeysMax) keys")
      }
    }
    return keys
  }

  // MARK: Parts

  mutating func expect(
    _ byte: UInt8, at place: String, _ what: String
  ) throws(MalformedMessage) {
    guard try peek() == byte else { throw malformed("\(place): \(what) was expected") }
  }

  mutating func truth(_ place: String) throws(MalformedMessage) -> Bool {
    guard [0x74, 0x66].contains(try peek()) else {
      throw malformed("\(place): true or false was expected")
    }
    return try bool()
  }

  private mutating func whole(
    _ place: String, in range: ClosedRange<Int64>
  ) throws(MalformedMessage) -> Int64 {
    let first = try peek()
    guard first == 0x2D || (0x30...0x39).contains(first) else {
      throw malformed("\(place): a number was expected")
    }
    let value = try integer()
    guard range.contains(value) else {
      throw malformed(
        "\(place): \(value) is not within \(range.lowerBound) and \(range.upperBound)")
    }
    return value
  }

  private func name(
    _ key: JSONKey, of place: String, _ limits: Limits
  ) throws(MalformedMessage) -> Name {
    let name = try key.name()
    if let fault = NameRule.fault(in: name, limits: limits) {
      throw malformed("\(place): \(fault)")
    }
    return name
  }

  /// Reads one of a few words.
  mutating func choice<T: RawRepresentable<String> & CaseIterable & Equatable>(
    _ place: String, _ member: String? = nil, among allowed: [T] = Array(T.allCases)
  ) throws(MalformedMessage) -> T {
    let place = member.map { "\(place).\($0)" } ?? place
    let words = allowed.map(\.rawValue).joined(separator: ", ")
    guard try peek() == 0x22 else { throw malformed("\(place): one of \(words) was expected") }
    let text = try string()
    guard let value = T(rawValue: text), allowed.contains(value) else {
      throw malformed("\(place): '\(text.prefix(40))' is not one of \(words)")
    }
    return value
  }
}

/// Columns of one unique key.
private let uniqueColumnsMax = 16
/// Unique keys of one table.
private let uniqueKeysMax = 32
/// Other names of one table or column.
private let aliasesMax = 16

extension ConflictPolicy {
  /// The permitted declared types of a column with this policy; `nil` is every type.
  fileprivate var typesAdmitted: [ColumnType]? {
    switch self {
    case .counter: [.integer]
    case .setUnion, .textMerge: [.text, .any]
    default: nil
    }
  }
}

/// The members of one object read so far; none is a duplicate.
struct NamesSeen {
  let place: String
  let known: String
  var names: Set<Name> = []

  mutating func add(_ key: JSONKey, _ reader: JSONReader) throws(MalformedMessage) {
    let name = try key.name()
    guard names.insert(name).inserted else {
      throw reader.malformed("\(place): \(name.text.prefix(40)) is a duplicate")
    }
  }

  func unknown(_ key: JSONKey, _ reader: JSONReader) -> MalformedMessage {
    let name = (try? key.text()) ?? "?"
    return reader.malformed("\(place): '\(name.prefix(40))' is none of \(known)")
  }
}
