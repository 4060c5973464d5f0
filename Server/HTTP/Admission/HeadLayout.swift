/// The places of a request's head in the receiving buffer. Pure.
///
/// libmicrohttpd 0.9.75 loses the value of a header with a folded line, and ends a value at a NUL.
/// Another server in front may read a different `Content-Length` there (RFC 9112 §5.2, §11.2). The
/// parts of such a head do not fill it, nor do lines that end with a bare LF.
///
///     var layout = HeadLayout(line: 0x1000, version: 0x1006, versionCount: 8)  // GET / HTTP/1.1
///     layout.append(name: 0x1010, nameCount: 4, value: 0x1016, valueCount: 1)  // Host: t
///     layout.fills(27)  // true
struct HeadLayout: Equatable {
  /// Bytes of the parts so far; `nil` if they are not in order.
  private var count: UInt?

  /// `line`, `version`: addresses in the request line.
  init(line: UInt, version: UInt, versionCount: Int) {
    count = version > line ? version - line + UInt(versionCount) + Self.lineEnd : nil
  }

  /// Appends a field line, by addresses and bytes. The value follows a colon and blanks.
  mutating func append(name: UInt, nameCount: Int, value: UInt, valueCount: Int) {
    guard let count, value > name, value - name > UInt(nameCount) else {
      self.count = nil
      return
    }
    // A sum beyond all numbers is no size of a head.
    let (sum, overflow) = count.addingReportingOverflow(value - name)
    self.count = overflow ? nil : sum + UInt(valueCount) + Self.lineEnd
  }

  /// Returns whether the parts and the empty line are all bytes of a head.
  func fills(_ bytes: Int) -> Bool { count.map { $0 + Self.lineEnd } == UInt(exactly: bytes) }

  private static let lineEnd: UInt = 2
}
