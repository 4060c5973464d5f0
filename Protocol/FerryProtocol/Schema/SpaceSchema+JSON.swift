// People write the schema document. So an error contains the place of the fault and the correction,
// and unknown members are refused: a misspelt rule would be no rule.

extension SpaceSchema {
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
    try self.init(decoding: bytes, ReadingRules(limits), bytesMax: limits.schemaBytes)
  }
}

extension SpaceSchema: JSONMessage {
  package static var noun: String? { "the schema" }
  package static var blank: Self { .empty }
  package static var strictness: MemberStrictness { .strict }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.defaulted(
      "version", &version, as: .integer(in: 0...exactIntegers.upperBound))
    var oldest = Int64(minimumProtocol)
    try json.defaulted("minimumProtocol", &oldest, as: .integer(in: 1...1_000_000))
    minimumProtocol = Int(oldest)
    try json.omitting("requireCursor", &requiresCursor, false)
    try json.defaulted("tables", &tables, as: Self.tables(json.rules))
  }

  private static func tables(_ rules: ReadingRules) -> JSONForm<[Name: TableRules]> {
    JSONForm.value.named(
      max: rules.sync.schemaTables, as: "an object of the tables' rules by name"
    ) { name in
      !NameRule.isReserved(table: name)
        ? nil
        : "\(name) belongs to the server; names that begin with ferry_ or sqlite_ take no rules"
    }.checkedAliases(\.aliases) {
      NameRule.isReserved(table: $0) ? "\($0) is reserved" : nil
    }
  }
}

extension TableRules: JSONMessage {
  package static var blank: Self { .standard }
  package static var strictness: MemberStrictness { .strict }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.omitting("policy", &policy, .lastWriterWins)
    try json.omitting("deletes", &deletes, .deleteWins)
    try json.omitting("write", &write, .writer, as: .word(among: [.writer, .admin]))
    let byName = JSONForm<ColumnRules>.value.named(
      max: json.rules.sync.columns, as: "an object of the columns' rules by name")
    try json.omitting("columns", &columns, [:], as: byName.checkedAliases(\.aliases))
    try json.omitting("unique", &unique, [], as: Self.keys)
    try json.omitting("clashes", &clashes, [], as: .list(max: 64))
    try json.omitting("aliases", &aliases, [], as: .aliases)
    try json.optional("definition", &definition)
    let repeated = clashes.indices.contains { index in
      clashes[..<index].contains { $0.columns == clashes[index].columns }
    }
    try json.check(repeated ? "a foreign key is a duplicate" : nil, at: "clashes")
    try json.check(uniqueFault, at: "unique")
    try json.check(typeFault)
  }

  package init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage) {
    try reader.require(0x7B, "an object of rules")
    try self.init(membersFrom: &reader, rules)
  }

  /// The unique keys: at most 32 of 1 to 16 columns.
  private static var keys: JSONForm<[[Name]]> {
    JSONForm<Name>.named("a column's name").list(
      max: 16, "columns of a key", named: "a key that is a list of columns"
    )
    .checked { key, _ in
      if key.isEmpty { return "a key names at least one column" }
      let other = key.indices.first { key[..<$0].contains(key[$0]) }
      return other.map { "a key names \(key[$0]) twice" }
    }
    .list(max: 32, "keys of a table", named: "a list of keys, each a list of columns")
    .checked { keys, _ in Set(keys).count == keys.count ? nil : "a key is a duplicate" }
  }

  private var uniqueFault: String? {
    for column in unique.joined() where policy(of: column).makesValues {
      return "column \(column) is \(policy(of: column).rawValue), which makes values that nobody "
        + "wrote; a unique key takes other policies"
    }
    return nil
  }
}

/// A policy's name, or an object.
extension ColumnRules: JSONValue {
  private struct Members: JSONMessage {
    var policy: ConflictPolicy?
    var type: ColumnType?
    var isRequired = false
    var aliases: [Name] = []

    static var blank: Self { Self() }
    static var strictness: MemberStrictness { .strict }

    mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
      try json.optional("policy", &policy)
      try json.optional("type", &type)
      try json.omitting("required", &isRequired, false)
      try json.omitting("aliases", &aliases, [], as: .aliases)
      guard let policy, let type, let right = policy.typesAdmitted else { return }
      try json.check(
        right.contains(type),
        "a column that is \(policy.rawValue) has type "
          + right.map(\.rawValue).joined(separator: " or "))
    }
  }

  package init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage) {
    if try reader.peek() == 0x22 {
      self.init(policy: try ConflictPolicy(from: &reader, rules))
      return
    }
    try reader.require(0x7B, "a policy's name or an object")
    let read = try Members(from: &reader, rules)
    self.init(
      policy: read.policy, type: read.type, isRequired: read.isRequired, aliases: read.aliases)
  }

  package func write(to json: inout JSONWriter) {
    let isImplied = type == (policy == .counter ? .integer : .any)
    if let policy, isImplied, !isRequired, aliases.isEmpty { return policy.write(to: &json) }
    Members(
      policy: policy, type: isImplied ? nil : type, isRequired: isRequired, aliases: aliases
    ).write(to: &json)
  }
}

extension JSONForm<[Name]> {
  /// The other names of a table or column: at most 16.
  fileprivate static var aliases: JSONForm {
    JSONForm<Name>.column.list(max: 16, named: "a list of names")
  }
}

extension JSONForm {
  /// The same form with a check that each name on a device stands for one name of the space.
  fileprivate func checkedAliases<Rules>(
    _ aliases: @escaping (Rules) -> [Name], _ fault: @escaping (Name) -> String? = { _ in nil }
  ) -> JSONForm where T == [Name: Rules] {
    JSONForm(
      read: { (reader, rules) throws(MalformedMessage) in
        let values = try read(&reader, rules)
        var seen = Set(values.keys.map(\.folded))
        for (name, rules) in values.sorted(by: { $0.key < $1.key }) {
          for alias in aliases(rules) {
            let isNew = seen.insert(alias.folded).inserted
            let other = isNew ? nil : "\(alias) stands for another one, or is one itself"
            guard let fault = fault(alias) ?? other else { continue }
            throw reader.malformed(fault).within("aliases").within(name.text)
          }
        }
        return values
      }, write: write)
  }
}

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
