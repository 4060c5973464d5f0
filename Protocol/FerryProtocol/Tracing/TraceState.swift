/// The data of other tracing systems, which is passed on (W3C Trace Context §3.3).
package struct TraceState: Sendable, Equatable {
  /// Members of one header (§3.3.1.1).
  private static let membersMax = 32
  /// Bytes passed on (§3.3.1.5).
  private static let byteCountMax = 512
  /// Longer members are left out first.
  private static let longMember = 128
  /// Bytes of all header lines to read at most.
  private static let readBytesMax = 16 << 10

  /// The value of the header; empty for no members.
  package let text: String

  package static let none = TraceState(text: "")

  private init(text: String) { self.text = text }

  /// Reads the lines of the header, in their order. Returns `nil` if a member is malformed, a key
  /// is there twice, or there are too many members.
  package init?(_ lines: [String]) {
    guard lines.reduce(0, { $0 + $1.utf8.count }) <= Self.readBytesMax else { return nil }
    var members: [Substring.UTF8View] = []
    var keys = Set<String>()
    for line in lines {
      for part in line.utf8.split(separator: UInt8(ascii: ",")) {
        guard let member = Self.trimmed(part) else { continue }
        guard let equals = member.firstIndex(of: UInt8(ascii: "=")),
          Self.isKey(member[..<equals]), Self.isValue(member[member.index(after: equals)...]),
          keys.insert(String(Substring(member[..<equals]))).inserted, keys.count <= Self.membersMax
        else { return nil }
        members.append(member)
      }
    }
    text = Self.shortened(members).map { String(Substring($0)) }.joined(separator: ",")
  }

  /// Removes spaces and tabs around a member; `nil` if nothing is left.
  private static func trimmed(_ part: Substring.UTF8View) -> Substring.UTF8View? {
    let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
    guard let first = part.firstIndex(where: { !isBlank($0) }),
      let last = part.lastIndex(where: { !isBlank($0) })
    else { return nil }
    return part[first...last]
  }

  private static func isKey(_ key: Substring.UTF8View) -> Bool {
    guard let first = key.first, (0x61...0x7A).contains(first) || (0x30...0x39).contains(first),
      key.count <= 256
    else { return false }
    return key.allSatisfy { byte in
      switch byte {
      case 0x61...0x7A, 0x30...0x39: true
      default: "_-*/@".utf8.contains(byte)
      }
    }
  }

  private static func isValue(_ value: Substring.UTF8View) -> Bool {
    (1...256).contains(value.count)
      && value.allSatisfy { (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "=") }
  }

  /// Leaves out long members, and then the last ones, until the rest is short enough.
  private static func shortened(_ members: [Substring.UTF8View]) -> [Substring.UTF8View] {
    func length(_ members: [Substring.UTF8View]) -> Int {
      members.reduce(members.count - 1) { $0 + $1.count }
    }
    guard length(members) > byteCountMax else { return members }
    var members = members.filter { $0.count <= longMember }
    while length(members) > byteCountMax { members.removeLast() }
    return members
  }
}
