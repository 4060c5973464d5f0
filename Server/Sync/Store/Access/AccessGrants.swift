import FerryProtocol

/// The permissions of a principal: a role for each space or set of spaces. The strongest role
/// counts.
///
/// An admin of `*` is a server-wide admin. Only a server-wide admin manages tokens with owners,
/// reads the audit log and renews the key that signs missions.
package struct AccessGrants: Sendable, Equatable {
  /// Patterns at most.
  package static let countMax = 100

  /// Each pattern once.
  package let roles: [SpacePattern: Role]
  /// The patterns for more than one space, which are compared one by one.
  private let broad: [SpacePattern]

  /// Creates grants; `nil` for none and for more than ``countMax``.
  package init?(_ roles: [SpacePattern: Role]) {
    guard !roles.isEmpty, roles.count <= Self.countMax else { return nil }
    self.init(known: roles)
  }

  private init(known roles: [SpacePattern: Role]) {
    self.roles = roles
    broad = roles.keys.filter { $0.space == nil }.sorted()
  }

  /// No permissions: those of a user who is a member of spaces at most.
  package static let none = AccessGrants(known: [:])

  /// Creates grants of one role for one space.
  package init(_ space: SpaceName, _ role: Role) {
    self.init(known: [SpacePattern(space): role])
  }

  /// Creates grants of one role for every space.
  package init(everywhere role: Role) { self.init(known: [.everything: role]) }

  /// Returns the role in a space; `nil` if none is granted.
  package func role(in space: SpaceName) -> Role? {
    let pattern = SpacePattern(space)
    var role = roles[pattern]
    for other in broad where other.covers(pattern) {
      role = max(role ?? .reader, roles[other] ?? .reader)
    }
    return role
  }

  /// True if the server itself may be administered.
  package var isServerAdmin: Bool { roles[.everything] == .admin }

  /// Returns whether every space of a pattern may be administered.
  package func administers(_ pattern: SpacePattern) -> Bool {
    roles.contains { $0.value == .admin && $0.key.covers(pattern) }
  }

  /// Returns whether every space of the other grants may be administered. Grants without a space
  /// belong to a user, whom only an admin of the server administers.
  package func administers(_ other: AccessGrants) -> Bool {
    !other.roles.isEmpty && other.roles.keys.allSatisfy { administers($0) }
  }

  /// The space, if the grants are for only one.
  package var onlySpace: SpaceName? { roles.count == 1 ? roles.keys.first?.space : nil }

  /// True if any space may be administered.
  package var administersAny: Bool { roles.values.contains(.admin) }

  /// The patterns in order, each with a role.
  package var list: [(pattern: SpacePattern, role: Role)] {
    roles.keys.sorted().compactMap { pattern in roles[pattern].map { (pattern, $0) } }
  }

  /// For people: `writer of notes, reader of list-*`.
  package var text: String {
    if roles.isEmpty { return "as a member" }
    return list.map { pattern, role in
      "\(role.rawValue) of \(pattern == .everything ? "all spaces" : pattern.text)"
    }.joined(separator: ", ")
  }
}

/// As JSON: `{"list-7":"writer","*":"reader"}`.
extension AccessGrants: JSONValue {
  /// Stands for grants that are read next.
  static var blank: Self { .none }

  package func write(to json: inout JSONWriter) {
    json.object { json in
      for (pattern, role) in list {
        json.key(named: pattern.text)
        json.string(role.rawValue)
      }
    }
  }

  /// Reads the JSON object; a pattern twice and an unknown role are refused.
  package init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage) {
    var roles: [SpacePattern: Role] = [:]
    try reader.object { (key, reader) throws(MalformedMessage) in
      let text = try key.text()
      guard let pattern = SpacePattern(text) else {
        throw reader.malformed(
          "'\(text.prefix(80))' is neither a space's name nor the beginning of names and *")
      }
      guard let role = Role(rawValue: try reader.string()) else {
        throw reader.malformed("a role is reader, writer or admin")
      }
      guard roles.updateValue(role, forKey: pattern) == nil else {
        throw reader.malformed("\(pattern) twice")
      }
      guard roles.count <= Self.countMax else {
        throw reader.malformed("more than \(Self.countMax) spaces")
      }
    }
    self.init(known: roles)
  }

  /// Reads grants as a store holds them; `nil` for text of another form.
  init?(stored text: String) {
    guard let read = try? Self(decoding: Array(text.utf8)) else { return nil }
    self = read
  }
}
