// The parts of few operations: increments and originals for some policies, and reasons (SPEC.md §4).

extension SyncOperation {
  /// Returns the former value of `column` in the author's row; `nil` if the operation does not
  /// contain it.
  package func original(of column: Name) -> Value? {
    originals.isEmpty ? nil : originals.first { $0.name == column }?.value
  }

  /// Bytes of all values in it.
  package var valueBytes: Int {
    originals.reduce(columns.reduce(0) { $0 + $1.value.byteCount }) { $0 + $1.value.byteCount }
  }

  /// The fault of increments, originals or a reason that do not fit the rest; `nil` if they do.
  var policyFault: String? {
    if batch != nil && reason != nil { return "a batch has no reason" }
    if increments.isEmpty && originals.isEmpty { return nil }
    if kind != .update { return "only an update has adds or originals" }
    var summands = increments
    var written = Set<Name>(minimumCapacity: columns.count)
    for column in columns {
      written.insert(column.name)
      guard summands.remove(column.name) != nil else { continue }
      guard case .integer = column.value else {
        return "adds names \(column.name), which is no integer"
      }
    }
    if let name = summands.min() { return "adds names \(name), which is not written" }
    guard let other = originals.first(where: { !written.contains($0.name) }) else { return nil }
    return "originals names \(other.name), which is not written"
  }
}

extension JSONWriter {
  /// Writes the names of an operation's increment columns, sorted.
  package mutating func increments(_ names: Set<Name>) {
    array(of: names.sorted())
  }
}

extension SyncOperation {
  /// Reads the output of ``JSONWriter/increments(_:)``.
  package static func increments(
    from reader: inout JSONReader, limits: Limits
  ) throws(MalformedMessage) -> Set<Name> {
    var names: Set<Name> = []
    try reader.array { (reader) throws(MalformedMessage) in
      guard names.count < limits.columns else { throw reader.malformed("too many adds") }
      let name = try reader.name()
      guard names.insert(name).inserted else {
        throw reader.malformed("adds names \(name.text.prefix(40)) twice")
      }
    }
    return names
  }

  /// Reads why an author overrules values, in the words for their authors.
  static func reason(
    from reader: inout JSONReader, limits: Limits
  ) throws(MalformedMessage) -> String {
    let reason = try reader.string()
    let count = reason.utf8.count
    guard (1...limits.reasonBytes).contains(count) else {
      throw reader.malformed("a reason has \(count) bytes; 1 to \(limits.reasonBytes) are allowed")
    }
    return reason
  }
}
