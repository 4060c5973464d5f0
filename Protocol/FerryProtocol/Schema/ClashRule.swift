/// The rule for a row whose parent another device has deleted meanwhile (SPEC.md §28).
public enum ClashRule: String, Sendable, CaseIterable {
  /// The parent comes back with its former values.
  case parentReturns = "parent-returns"
  /// The row is deleted, too. The device keeps the row as a conflict.
  case childGoes = "child-goes"
  /// The parent comes back, and the device that restored it asks the user.
  case ask
}

/// The rule of one foreign key, as a space's schema declares it.
///
/// ```swift
/// schema.tables["tasks", default: .standard].clashes = [DeclaredClash(["list"], .parentReturns)]
/// ```
public struct DeclaredClash: Sendable, Equatable {
  /// The columns of the foreign key: 1 to 16.
  public var columns: [Name]
  /// The rule.
  public var rule: ClashRule

  /// Creates a declaration from the given parts.
  public init(_ columns: [Name], _ rule: ClashRule) {
    (self.columns, self.rule) = (columns, rule)
  }
}

extension JSONWriter {
  mutating func clashes(_ clashes: [DeclaredClash]) {
    if clashes.isEmpty { return }
    key("clashes")
    array(of: clashes) { json, clash in
      json.object { json in
        json.key("columns")
        json.array(of: clash.columns)
        json.member("rule", clash.rule.rawValue)
      }
    }
  }
}

extension JSONReader {
  /// Reads and checks at most 64 rules.
  mutating func clashes(
    _ place: String, _ limits: Limits
  ) throws(MalformedMessage) -> [DeclaredClash] {
    let clashes = try list(place, max: 64) { (reader) throws(MalformedMessage) in
      try reader.clash(place, limits)
    }
    for (index, clash) in clashes.enumerated()
    where clashes[..<index].contains(where: { $0.columns == clash.columns }) {
      throw malformed("\(place): a foreign key is a duplicate")
    }
    return clashes
  }

  private mutating func clash(
    _ place: String, _ limits: Limits
  ) throws(MalformedMessage) -> DeclaredClash {
    var columns: [Name] = []
    var rule: ClashRule?
    var seen = NamesSeen(place: place, known: "columns, rule")
    try expect(0x7B, at: place, "an object")
    try object { (member, reader) throws(MalformedMessage) in
      try seen.add(member, reader)
      switch member {
      case "columns": columns = try reader.names("\(place).columns", limits)
      case "rule": rule = try reader.choice(place, "rule")
      default: throw seen.unknown(member, reader)
      }
    }
    guard let rule else { throw malformed("\(place): the rule is missing") }
    guard (1...16).contains(columns.count), Set(columns).count == columns.count else {
      throw malformed("\(place).columns: a foreign key has 1 to 16 different columns")
    }
    return DeclaredClash(columns, rule)
  }
}
