#if SystemLibraries && !canImport(Darwin)

  /// Reads head lines from curl, one at a time, over several responses in a row.
  struct ResponseHeadParser {
    private let followsRedirects: Bool
    private var current: ResponseHead?
    /// True if body bytes belong to a redirect.
    private(set) var isPassing = false
    /// Why the heads of this exchange exceed the limits; `nil` if they do not.
    private(set) var fault: String?
    private var bytes = 0
    private var lines = 0

    /// The most bytes of all heads of one exchange, redirects and interim responses included.
    static let bytesMax = 256 << 10
    static let linesMax = 2_000

    init(followsRedirects: Bool) { self.followsRedirects = followsRedirects }

    /// Reads one line with or without the line end.
    ///
    /// Returns the final head at the closing empty line. Trailers are not part of a head.
    mutating func feed(_ line: some Collection<UInt8>) -> ResponseHead? {
      bytes += line.count
      lines += 1
      guard bytes <= Self.bytesMax, lines <= Self.linesMax else {
        fault =
          "the answer's header is larger than \(Self.bytesMax) bytes or has more than "
          + "\(Self.linesMax) lines"
        current = nil
        return nil
      }
      let line = Self.trimmed(line)
      if line.starts(with: Array("HTTP/".utf8)) {
        current = ResponseHead(status: Self.status(line))
        return nil
      }
      guard var head = current else { return nil }
      if line.isEmpty {
        current = nil
        isPassing = head.isPassing(followsRedirects: followsRedirects)
        return isPassing ? nil : head
      }
      if line.first == UInt8(ascii: " ") || line.first == UInt8(ascii: "\t") {
        head.headers.extendLast(with: Self.text(line))
      } else if let colon = line.firstIndex(of: UInt8(ascii: ":")) {
        let value = line[line.index(after: colon)...]
        head.headers.add(Self.text(line[..<colon]), Self.text(value))
      }
      current = head
      return nil
    }

    private static func status(_ line: ArraySlice<UInt8>) -> Int {
      let words = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: true)
      return words.count > 1 ? Int(text(words[1])) ?? 0 : 0
    }

    private static func trimmed(_ line: some Collection<UInt8>) -> ArraySlice<UInt8> {
      var line = Array(line)[...]
      while let last = line.last, last == UInt8(ascii: "\r") || last == UInt8(ascii: "\n") {
        line.removeLast()
      }
      return line
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
      var bytes = bytes
      let isBlank: (UInt8) -> Bool = { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
      while let first = bytes.first, isBlank(first) { bytes.removeFirst() }
      while let last = bytes.last, isBlank(last) { bytes.removeLast() }
      return String(decoding: bytes, as: UTF8.self)
    }
  }
#endif
