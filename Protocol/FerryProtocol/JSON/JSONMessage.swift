/// A value that reads and writes itself.
package protocol JSONValue: JSONWritable {
  /// The name of a document with it in errors, with an article.
  static var noun: String? { get }
  /// Nesting of JSON; `nil` is ``Limits/depth``.
  static var depth: Int? { get }
  /// Reads a value and checks it.
  init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage)
}

/// A rare message: an object whose members one function names, for reading and for writing.
///
/// ```swift
/// mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
///   try json.required("device", &device)
///   try json.nullable("name", &name)
/// }
/// ```
///
/// Packets, pages, states and values have codecs of their own, which are faster.
package protocol JSONMessage: JSONValue {
  /// The start of a reading: required members replace their values, absent members leave them.
  static var blank: Self { get }
  /// The treatment of members that are unknown, or duplicates.
  static var strictness: MemberStrictness { get }
  /// Names each member, in the order of the written form, and then checks the whole.
  mutating func members(_ json: inout JSONMembers) throws(MalformedMessage)
}

/// The treatment of an object's members that are unknown, or duplicates.
package enum MemberStrictness: Sendable {
  /// Unknown ones are skipped, and the last duplicate counts: a later version may add members.
  case lenient
  /// Unknown ones are skipped, and duplicates are refused.
  case once
  /// Both are refused: people write the document, and a misspelt rule would be no rule.
  case strict
}

/// The limits of a message, and of all messages in it.
package struct ReadingRules: Sendable {
  package var sync = Limits.standard
  package var missions = MissionLimits.standard
  package var bundles = BundleLimits.standard
  package var patches = PatchDocumentLimits.standard
  /// Refuses what ``MemberStrictness/strict`` refuses, in all objects.
  package var isStrict = false
  /// The given name of the bundle, which may be absent then.
  package var bundleName: BundleName?
  /// The given space and name of the mission, which may be absent then, like format and version.
  package var mission: (space: SpaceName, id: MissionID)?

  package static let standard = ReadingRules()

  package init() {}

  package init(_ limits: Limits) { sync = limits }
}

extension JSONValue {
  package static var noun: String? { nil }
  package static var depth: Int? { nil }

  /// Returns the message in canonical form: equal messages give equal bytes.
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 512)
    write(to: &json)
    return json.finish()
  }

  /// Reads and checks a message.
  package init(decoding bytes: [UInt8], limits: Limits = .standard) throws(MalformedMessage) {
    try self.init(decoding: bytes, ReadingRules(limits))
  }

  /// Reads and checks a message.
  ///
  /// - Parameter bytesMax: The size above which a document is refused.
  package init(
    decoding bytes: [UInt8], _ rules: ReadingRules, bytesMax: Int = .max
  ) throws(MalformedMessage) {
    guard bytes.count <= bytesMax else {
      let name = Self.noun ?? "the message"
      throw MalformedMessage(
        reason: "\(name) has \(bytes.count) bytes; \(bytesMax) are allowed", offset: 0)
    }
    let depth = Self.depth ?? rules.sync.depth
    self = try decode(bytes, depth: depth) { (reader) throws(MalformedMessage) in
      do throws(MalformedMessage) {
        return try Self(from: &reader, rules)
      } catch {
        throw Self.noun.map { error.within($0, isRoot: true) } ?? error
      }
    }
  }

}

extension JSONMessage {
  package static var strictness: MemberStrictness { .lenient }

  package init(from reader: inout JSONReader, _ rules: ReadingRules) throws(MalformedMessage) {
    try self.init(membersFrom: &reader, rules)
  }

  package func write(to json: inout JSONWriter) { writeMembers(to: &json) }

  /// Reads an object's members.
  package init(
    membersFrom reader: inout JSONReader, _ rules: ReadingRules
  ) throws(MalformedMessage) {
    var message = Self.blank
    var json = JSONMembers(rules, rules.isStrict ? .strict : Self.strictness)
    var unknown = Set<[UInt8]>()
    try reader.object { (key, reader) throws(MalformedMessage) in
      guard try !json.read(key, of: &message, from: &reader) else { return }
      switch json.strictness {
      case .lenient: try reader.skip()
      case .once: try reader.skipUnknown(key, &unknown)
      case .strict:
        let names = try json.names(of: &message).joined(separator: ", ")
        throw reader.malformed("'\(try key.text().prefix(40))' is none of \(names)")
      }
    }
    try json.end(&message, at: reader)
    self = message
  }

  /// Writes an object's members.
  package func writeMembers(to json: inout JSONWriter) {
    var message = self
    JSONMembers.write(&message, to: &json)
  }
}
