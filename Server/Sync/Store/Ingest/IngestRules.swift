import FerryProtocol

/// The rules that decide about the operations of a packet.
struct IngestRules {
  private let schema: SpaceSchema?
  /// True if the packet is an authority's.
  var isAuthority = false
  /// The rules for authorities, by table.
  private var relaxed: [Name: TableRules] = [:]

  init(_ schema: SpaceSchema?) { self.schema = schema }

  /// Returns the rules for a table.
  mutating func rules(for table: Name) -> TableRules {
    guard let declared = schema?.tables[table] else { return .standard }
    guard isAuthority else { return declared }
    if let known = relaxed[table] { return known }
    let rules = declared.forAuthority
    relaxed[table] = rules
    return rules
  }
}

extension Packet {
  /// Returns `true` if the space's rules give way to the operations.
  ///
  /// - Parameter role: the sender's, when the packet came in.
  func isAuthority(_ role: Role) -> Bool { isAuthoritative && role >= .admin }
}
