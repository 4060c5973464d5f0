import FerryNetworking
import FerryPlatform

/// The directives of `Cache-Control` (RFC 9111 §5.2), of requests and of responses.
package struct CacheControl: Sendable, Equatable {
  /// Arguments by lower-case name, if there are any; of a repeated directive the first.
  private var directives: [String: String?] = [:]

  /// Reads all lines of the field; without one, `Pragma: no-cache` counts as `no-cache` (§5.4).
  package init(_ headers: TransportHeaders) {
    for value in headers.values(of: "Cache-Control") {
      for part in FieldList.members(of: value) { add(part) }
    }
    if directives.isEmpty, headers["Pragma"]?.lowercasedASCII.has("no-cache") == true {
      directives["no-cache"] = .some(nil)
    }
  }

  /// Returns true if the directive is present, with or without an argument. A `no-cache` with field
  /// names counts for the whole answer, as §5.2.2.4 permits.
  package func has(_ name: String) -> Bool { directives[name] != nil }

  /// Returns the directive's argument in seconds; `nil` without the directive. An argument other
  /// than a number counts as zero and makes an answer stale (§4.2.1).
  package func seconds(_ name: String) -> Int64? {
    guard let argument = directives[name] else { return nil }
    return argument.flatMap(DeltaSeconds.parse) ?? 0
  }

  /// How many seconds an answer may exceed its lifetime for this request; any number if `max-stale`
  /// has no argument (§5.2.1.2).
  package var maxStale: Int64 {
    guard let argument = directives["max-stale"] else { return 0 }
    return argument == nil ? DeltaSeconds.greatest : seconds("max-stale") ?? 0
  }

  private mutating func add(_ part: String) {
    let halves = part.parts(at: "=", most: 2)
    let name = FieldList.trimmed(halves[0]).lowercasedASCII
    guard !name.isEmpty, directives[name] == nil else { return }
    let argument = halves.count > 1 ? FieldList.unquoted(FieldList.trimmed(halves[1])) : nil
    directives[name] = .some(argument)
  }
}

/// Times in header fields (RFC 9111 §1.2.2).
package enum DeltaSeconds {
  /// The value of all greater numbers.
  package static let greatest: Int64 = 1 << 31

  /// Reads digits; `nil` for any other text.
  package static func parse(_ text: String) -> Int64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ 48...57 ~= $0 }) else { return nil }
    return min(Int64(text) ?? greatest, greatest)
  }
}

/// Comma-separated field values (RFC 9110 §5.6.1).
package enum FieldList {
  /// Returns the members without surrounding blanks; omits empty ones. Commas in quotes do not
  /// count.
  package static func members(of value: String) -> [String] {
    var members: [String] = []
    var member: [UInt8] = []
    var isQuoted = false
    var isEscaped = false
    for byte in value.utf8 {
      if byte == UInt8(ascii: ",") && !isQuoted {
        members.append(trimmed(String(decoding: member, as: UTF8.self)))
        member = []
        continue
      }
      if byte == UInt8(ascii: "\"") && !isEscaped { isQuoted.toggle() }
      isEscaped = isQuoted && !isEscaped && byte == UInt8(ascii: "\\")
      member.append(byte)
    }
    members.append(trimmed(String(decoding: member, as: UTF8.self)))
    return members.filter { !$0.isEmpty }
  }

  /// Returns the text without surrounding spaces and tabs.
  package static func trimmed(_ text: some StringProtocol) -> String {
    var bytes = Array(text.utf8)[...]
    while let first = bytes.first, first == 0x20 || first == 0x09 { bytes.removeFirst() }
    while let last = bytes.last, last == 0x20 || last == 0x09 { bytes.removeLast() }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Returns the content of a quoted string; other text unchanged (RFC 9110 §5.6.4).
  package static func unquoted(_ text: String) -> String {
    guard text.utf8.count >= 2, text.begins(with: "\""), text.ends(with: "\"") else { return text }
    var plain: [UInt8] = []
    var isEscaped = false
    for byte in text.utf8.dropFirst().dropLast() {
      if byte == UInt8(ascii: "\\") && !isEscaped {
        isEscaped = true
      } else {
        plain.append(byte)
        isEscaped = false
      }
    }
    return String(decoding: plain, as: UTF8.self)
  }
}
