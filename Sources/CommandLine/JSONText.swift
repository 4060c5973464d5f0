/// A JSON value with ordered members, for the one-line output of `--json`.
package enum JSONText: Sendable {
  case null
  case bool(Bool)
  /// Written with all digits, also beyond 2^53.
  case int(Int64)
  /// The shortest text that reads back the same; NaN and infinities become `null`.
  case double(Double)
  case string(String)
  case array([JSONText])
  /// Members in the order they are written; keys are not checked for duplicates.
  case object([(String, JSONText)])

  /// Returns an `Int` as `.int`.
  package static func int(_ value: Int) -> JSONText { .int(Int64(value)) }

  /// Returns the string, or `null` when there is none.
  package static func string(orNull value: String?) -> JSONText {
    value.map(JSONText.string) ?? .null
  }

  /// Returns the integer, or `null` when there is none.
  package static func int(orNull value: Int64?) -> JSONText { value.map { .int($0) } ?? .null }

  /// The value on one line, without spaces. Control and bidirectional characters are escaped, so
  /// the text is safe to show in a terminal and never holds a raw newline.
  package var text: String {
    var result = ""
    write(to: &result)
    return result
  }

  private func write(to result: inout String) {
    switch self {
    case .null: result += "null"
    case .bool(let value): result += value ? "true" : "false"
    case .int(let value): result += String(value)
    case .double(let value): result += value.isFinite ? value.description : "null"
    case .string(let value): Self.writeQuoted(value, to: &result)
    case .array(let elements):
      result += "["
      for (index, element) in elements.enumerated() {
        if index > 0 { result += "," }
        element.write(to: &result)
      }
      result += "]"
    case .object(let members):
      result += "{"
      for (index, (key, value)) in members.enumerated() {
        if index > 0 { result += "," }
        Self.writeQuoted(key, to: &result)
        result += ":"
        value.write(to: &result)
      }
      result += "}"
    }
  }

  private static func writeQuoted(_ value: String, to result: inout String) {
    result += "\""
    for scalar in value.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case _ where scalar.isUnsafeInTerminal:
        let hex = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: max(0, 4 - hex.count)) + hex
      default: result.unicodeScalars.append(scalar)
      }
    }
    result += "\""
  }
}

extension JSONText: Equatable {
  /// Returns true if the encoded texts are equal: the order of members counts.
  package static func == (left: JSONText, right: JSONText) -> Bool { left.text == right.text }
}
