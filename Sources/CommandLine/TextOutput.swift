import Foundation

/// A destination of a command's lines.
///
/// It buffers nothing between calls: a written line has left the process, even if the process is
/// killed right after. Do not mix with `print`.
package struct TextOutput: Sendable {
  private let sink: @Sendable (String) throws(OutputError) -> Void

  /// Creates an output of any kind, such as one to collect text for a test.
  package init(_ sink: @escaping @Sendable (String) throws(OutputError) -> Void) {
    self.sink = sink
  }

  /// Writes UTF-8 to an open file descriptor, which stays open.
  package init(descriptor: Int32) {
    sink = { (text: String) throws(OutputError) in try writeFully(Array(text.utf8), to: descriptor)
    }
  }

  /// Descriptor 1.
  package static let standardOutput = TextOutput(descriptor: 1)
  /// Descriptor 2, for messages: with the characters of the locale.
  package static let standardError = {
    let plain = TextOutput(descriptor: 2)
    return TextOutput { (text: String) throws(OutputError) in
      try plain.write(text.drawn(with: .current))
    }
  }()

  /// Writes the text as it is.
  package func write(_ text: String) throws(OutputError) { try sink(text) }

  /// Writes the text and a newline in one piece. Characters that could drive the terminal are
  /// escaped, except newlines and tabs.
  package func line(_ text: String) throws(OutputError) { try sink(text.safeLines + "\n") }

  /// Writes many lines, as ``line(_:)`` does, in pieces of about 64 KiB.
  package func lines(_ lines: some Sequence<String>) throws(OutputError) {
    var piece = ""
    for line in lines {
      piece += line.safeLines
      piece += "\n"
      if piece.utf8.count >= 65_536 {
        try sink(piece)
        piece = ""
      }
    }
    if !piece.isEmpty { try sink(piece) }
  }
}

/// The reason why output could not be written.
package enum OutputError: CommandFailureConvertible, Sendable, Equatable {
  /// The reader has gone, as in `ferry log | head`. `CommandRunner` ends quietly with 141.
  case closed
  /// Another error, with the `errno` (a full disk).
  case failed(Int32)

  /// The explanation; `closed` is never shown by `CommandRunner`.
  package var commandFailure: CommandFailure {
    switch self {
    case .closed:
      CommandFailure(
        "the output was closed", why: "the program reading it has ended", next: "",
        code: "output_closed")
    case .failed(let number):
      CommandFailure(
        "the output could not be written", why: String(cString: strerror(number)),
        next: "check where the output goes, and run it again", code: "output_failed")
    }
  }
}

private func writeFully(_ bytes: [UInt8], to descriptor: Int32) throws(OutputError) {
  var rest = bytes[...]
  while !rest.isEmpty {
    let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    if count >= 0 {
      rest = rest.dropFirst(count)
      continue
    }
    switch errno {
    case EINTR: continue
    case EAGAIN:
      var poller = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      _ = poll(&poller, 1, -1)
    case EPIPE: throw .closed
    case let number: throw .failed(number)
    }
  }
}
