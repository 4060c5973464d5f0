/// Where a value comes from.
package enum ValueSource: Sendable, Equatable {
  case commandLine
  /// The named variable.
  case environment(String)
  case defaultValue
}

/// A command line that fits the declaration. Names are those of the declaration; a request for an
/// undeclared one is a programmer's error and stops the process.
package struct ParsedArguments: Sendable, Equatable {
  struct Entry: Sendable, Equatable {
    /// The name in messages: `--limit` or `TABLE`.
    var label: String
    var values: [String]
    var source: ValueSource?
  }

  /// The command from the root down: `["ferryd", "token", "create"]`.
  package let path: [String]
  let entries: [String: Entry]
  let flags: [String: Int]

  /// Returns the value of an option or argument.
  /// - Throws: `UsageError` when it has none and no default.
  package func string(_ name: String) throws(UsageError) -> String {
    try present(name, stringIfPresent(name))
  }

  /// Returns the value of an option or argument, `nil` when it has none and no default.
  package func stringIfPresent(_ name: String) -> String? { entry(name).values.last }

  /// Returns all values of a repeated option or argument, in their order.
  package func strings(_ name: String) -> [String] { entry(name).values }

  /// Returns a whole number within `range`.
  /// - Throws: `UsageError` when it is absent, no number, or out of range.
  package func integer(
    _ name: String, in range: ClosedRange<Int> = Int.min...Int.max
  ) throws(UsageError) -> Int {
    try present(name, integerIfPresent(name, in: range))
  }

  /// Returns a whole number within `range`, `nil` when absent.
  /// - Throws: `UsageError` when it is no number or out of range.
  package func integerIfPresent(
    _ name: String, in range: ClosedRange<Int> = Int.min...Int.max
  ) throws(UsageError) -> Int? {
    try read(name, as: .integer(range)) { Int($0) }
  }

  /// Returns an amount of time such as `30s`, `500ms`, `1h30m`.
  /// - Throws: `UsageError` when it is absent or no such amount.
  package func duration(_ name: String) throws(UsageError) -> Duration {
    try present(name, durationIfPresent(name))
  }

  /// Returns an amount of time, `nil` when absent.
  /// - Throws: `UsageError` when it is no such amount.
  package func durationIfPresent(_ name: String) throws(UsageError) -> Duration? {
    try read(name, as: .duration) { Duration(commandLine: $0) }
  }

  /// Returns a number of bytes, written as `65536` or `4MiB`.
  /// - Throws: `UsageError` when it is absent or no such size.
  package func byteSize(_ name: String) throws(UsageError) -> Int {
    try present(name, byteSizeIfPresent(name))
  }

  /// Returns a number of bytes, `nil` when absent.
  /// - Throws: `UsageError` when it is no such size.
  package func byteSizeIfPresent(_ name: String) throws(UsageError) -> Int? {
    try read(name, as: .byteSize) { ByteSize(commandLine: $0)?.bytes }
  }

  /// Returns whether a flag is on.
  package func flag(_ name: String) -> Bool { count(name) > 0 }

  /// Returns the number of a flag's occurrences (`-vv` is 2).
  package func count(_ name: String) -> Int {
    guard let count = flags[name] else { preconditionFailure("flag \(name) is not declared") }
    return count
  }

  /// Returns the source of the value, `nil` if it has none.
  package func source(_ name: String) -> ValueSource? { entry(name).source }

  private func entry(_ name: String) -> Entry {
    guard let entry = entries[name] else { preconditionFailure("\(name) is not declared") }
    return entry
  }

  private func present<Value>(_ name: String, _ value: Value?) throws(UsageError) -> Value {
    if let value { return value }
    let label = entry(name).label
    throw UsageError(
      .missingOption, "\(label) is missing",
      why: "`\(path.joined(separator: " "))` needs it", next: "add \(label)")
  }

  private func read<Value>(
    _ name: String, as kind: ValueKind, _ convert: (String) -> Value?
  ) throws(UsageError) -> Value? {
    let entry = entry(name)
    guard let text = entry.values.last else { return nil }
    guard kind.accepts(text), let value = convert(text) else {
      throw .invalidValue(
        text, of: entry.label, source: entry.source ?? .commandLine,
        expectation: kind.expectation ?? "another value")
    }
    return value
  }
}
