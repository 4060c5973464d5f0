/// The members of one object: each call reads or writes one, or notices that it is missing.
package struct JSONMembers {
  private enum Step { case write, read, list, end }

  package let rules: ReadingRules
  let strictness: MemberStrictness
  private var step: Step
  private var writer = JSONWriter()
  private var reader = JSONReader(UnsafeRawBufferPointer(start: nil, count: 0))
  /// The member to read; `nil` after it was read.
  private var key: JSONKey?
  /// The place of the next call, as a bit.
  private var place: UInt64 = 1
  /// The places of the members read.
  private var seen: UInt64 = 0
  private var names: [String] = []

  init(_ rules: ReadingRules, _ strictness: MemberStrictness) {
    (self.rules, self.strictness, step) = (rules, strictness, .read)
  }

  // MARK: Steps

  /// Reads one member; returns `false` if the message does not name it.
  mutating func read(
    _ key: JSONKey, of message: inout some JSONMessage, from reader: inout JSONReader
  ) throws(MalformedMessage) -> Bool {
    (self.key, self.reader, step, place) = (key, reader, .read, 1)
    try message.members(&self)
    reader = self.reader
    return self.key == nil
  }

  /// Lists the members' names.
  mutating func names(of message: inout some JSONMessage) throws(MalformedMessage) -> [String] {
    step = .list
    try message.members(&self)
    return names
  }

  /// Checks a message after the last member.
  mutating func end(
    _ message: inout some JSONMessage, at reader: JSONReader
  ) throws(MalformedMessage) {
    (self.reader, step, place) = (reader, .end, 1)
    try message.members(&self)
  }

  static func write(_ message: inout some JSONMessage, to json: inout JSONWriter) {
    var members = JSONMembers(.standard, .lenient)
    members.step = .write
    // The bytes move: a copy would cost all of them.
    swap(&members.writer, &json)
    members.writer.beginObject()
    do throws(MalformedMessage) {
      try message.members(&members)
    } catch {
      preconditionFailure("a message is written without errors: \(error)")
    }
    members.writer.endObject()
    swap(&members.writer, &json)
  }

  // MARK: Members

  /// True in the call after the last member was read.
  var isRead: Bool { step == .end }

  /// A member of every message.
  ///
  /// - Parameters:
  ///   - isGiven: Whether it may be absent when it is read.
  ///   - missing: The error without it.
  package mutating func required<T>(
    _ name: StaticString, _ value: inout T, as form: JSONForm<T>, unless isGiven: Bool = false,
    missing: String? = nil
  ) throws(MalformedMessage) {
    try visit(name, &value, form, isWritten: true)
    if step == .end, !isGiven, !wasSeen {
      throw reader.malformed(missing ?? "“\(name)” is missing")
    }
  }

  /// A member that is always written, and may be absent when it is read.
  package mutating func defaulted<T>(
    _ name: StaticString, _ value: inout T, as form: JSONForm<T>
  ) throws(MalformedMessage) {
    try visit(name, &value, form, isWritten: true)
  }

  /// A member that is absent if it has this value.
  package mutating func omitting<T: Equatable>(
    _ name: StaticString, _ value: inout T, _ omitted: T, as form: JSONForm<T>
  ) throws(MalformedMessage) {
    try visit(name, &value, form, isWritten: step == .write && value != omitted)
  }

  /// A member that is absent without a value.
  package mutating func optional<T>(
    _ name: StaticString, _ value: inout T?, as form: JSONForm<T>
  ) throws(MalformedMessage) {
    try visit(name, &value, form.optional, isWritten: value != nil)
  }

  /// A member that is null without a value, and may be absent when it is read.
  package mutating func nullable<T>(
    _ name: StaticString, _ value: inout T?, as form: JSONForm<T>
  ) throws(MalformedMessage) {
    try visit(name, &value, form.nullable, isWritten: true)
  }

  /// A member that has no meaning for a reader.
  package mutating func written(_ name: StaticString, _ value: (some JSONWritable)?) {
    if step == .write, let value { writer.member(name, value) }
  }

  /// A number that names the format of a document.
  package mutating func format(
    _ number: Int64, unless isGiven: Bool = false
  ) throws(MalformedMessage) {
    var value = number
    try visit("format", &value, .value, isWritten: true)
    if value != number || step == .end && !isGiven && !wasSeen {
      throw reader.malformed("the format is not \(number)")
    }
  }

  /// Throws an error if there is a fault, after all members were read.
  ///
  /// - Parameter name: The member with the fault.
  package func check(
    _ fault: @autoclosure () -> String?, at name: StaticString? = nil
  ) throws(MalformedMessage) {
    guard step == .end, let fault = fault() else { return }
    let error = reader.malformed(fault)
    throw name.map { error.within($0.description) } ?? error
  }

  /// Throws an error unless the condition holds, after all members were read.
  package func check(
    _ isRight: @autoclosure () -> Bool, _ fault: @autoclosure () -> String
  ) throws(MalformedMessage) {
    if step == .end, !isRight() { throw reader.malformed(fault()) }
  }

  // MARK: One member

  /// True if the member of the last call was in the message.
  private var wasSeen: Bool { seen & place >> 1 != 0 }

  private mutating func visit<T>(
    _ name: StaticString, _ value: inout T, _ form: JSONForm<T>, isWritten: Bool
  ) throws(MalformedMessage) {
    defer { place <<= 1 }
    switch step {
    case .end: return
    case .list: names.append(name.description)
    case .write:
      guard isWritten else { return }
      writer.key(name)
      form.write(&writer, value)
    case .read:
      guard let key, name ~= key else { return }
      guard strictness == .lenient || seen & place == 0 else {
        throw reader.malformed("\(name) is a duplicate")
      }
      self.key = nil
      seen |= place
      do throws(MalformedMessage) {
        value = try form.read(&reader, rules)
      } catch {
        throw error.within(name.description)
      }
    }
  }
}

// Members whose types have one form.
extension JSONMembers {
  package mutating func required<T: JSONValue>(
    _ name: StaticString, _ value: inout T, unless isGiven: Bool = false, missing: String? = nil
  ) throws(MalformedMessage) {
    try required(name, &value, as: .value, unless: isGiven, missing: missing)
  }

  package mutating func defaulted<T: JSONValue>(
    _ name: StaticString, _ value: inout T
  ) throws(MalformedMessage) {
    try defaulted(name, &value, as: .value)
  }

  package mutating func omitting<T: JSONValue & Equatable>(
    _ name: StaticString, _ value: inout T, _ omitted: T
  ) throws(MalformedMessage) {
    try omitting(name, &value, omitted, as: .value)
  }

  package mutating func optional<T: JSONValue>(
    _ name: StaticString, _ value: inout T?
  ) throws(MalformedMessage) {
    try optional(name, &value, as: .value)
  }

  package mutating func nullable<T: JSONValue>(
    _ name: StaticString, _ value: inout T?
  ) throws(MalformedMessage) {
    try nullable(name, &value, as: .value)
  }
}
