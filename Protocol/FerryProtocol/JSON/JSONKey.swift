/// A member's name as in the message: compared without making a string.
package struct JSONKey {
  let span: JSONSpan

  @inline(__always)
  init(_ span: JSONSpan) throws(MalformedMessage) {
    self.span = span
    if span.isEscaped || !span.isASCII { try Self.check(span) }
  }

  /// Checks an unusual name. An unknown one is UTF-8, too (RFC 8259 §8.1). Otherwise a broken byte
  /// in a known name would only make the member vanish.
  private static func check(_ span: JSONSpan) throws(MalformedMessage) {
    if span.isEscaped {
      _ = try unescape(span.content)
    } else if !isValidUTF8(span.content) {
      throw MalformedMessage(reason: "a member's name is not valid UTF-8", offset: 0)
    }
  }

  @inline(__always)
  package static func ~= (name: StaticString, key: JSONKey) -> Bool {
    let content = key.span.content
    if key.span.isEscaped { return isEqual(name, unescaping: content) }
    return content.isEqual(to: name)
  }

  /// Escapes do not change a name's meaning (RFC 8259 §8.3).
  private static func isEqual(
    _ name: StaticString, unescaping content: UnsafeBufferPointer<UInt8>
  ) -> Bool {
    (try? unescape(content)) == name.description
  }

  /// Returns the member's name as a name from outside, escapes resolved.
  package func name() throws(MalformedMessage) -> Name { Name(try text()) }

  /// Returns the name as a string, escapes resolved.
  package func text() throws(MalformedMessage) -> String { try span.text() }
}
