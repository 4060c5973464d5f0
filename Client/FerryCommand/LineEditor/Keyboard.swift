import FerryPlatform

/// The characters that arrive at a terminal, until it ends or another thread closes this object.
final class Keyboard: Sendable {
  private let descriptor: Int32
  /// A pipe: `close()` writes to it and so ends a wait.
  private let wakeup: (reader: Int32, writer: Int32)

  /// - Parameter descriptor: an open descriptor, which stays the caller's.
  init(descriptor: Int32) throws(LineEditorError) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else {
      throw LineEditorError(description: "no pipe: \(String(cString: strerror(errno)))")
    }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    self.descriptor = descriptor
    wakeup = (ends[0], ends[1])
  }

  deinit {
    Platform.closeDescriptor(wakeup.reader)
    Platform.closeDescriptor(wakeup.writer)
  }

  /// Ends the waits of all threads, from now on.
  func close() {
    var byte: UInt8 = 0
    _ = write(wakeup.writer, &byte, 1)
  }

  /// Returns the next character, `nil` at the end. Invalid UTF-8 is U+FFFD.
  func next() -> Unicode.Scalar? {
    guard let first = byte() else { return nil }
    let length = Self.length(first)
    var bytes = [first]
    while bytes.count < length, let byte = byte() { bytes.append(byte) }
    return String(decoding: bytes, as: UTF8.self).unicodeScalars.first
  }

  /// Returns the number of bytes of a character in UTF-8 (RFC 3629 §3), by the first one.
  private static func length(_ first: UInt8) -> Int {
    switch first {
    case 0xC2...0xDF: 2
    case 0xE0...0xEF: 3
    case 0xF0...0xF4: 4
    default: 1
    }
  }

  /// Returns the next byte, `nil` at the end.
  private func byte() -> UInt8? {
    while true {
      var waits = [
        pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
        pollfd(fd: wakeup.reader, events: Int16(POLLIN), revents: 0),
      ]
      if poll(&waits, nfds_t(waits.count), -1) < 0 {
        if errno == EINTR { continue }
        return nil
      }
      if waits[1].revents != 0 { return nil }
      var byte: UInt8 = 0
      let count = read(descriptor, &byte, 1)
      if count < 0 && (errno == EINTR || errno == EAGAIN) { continue }
      return count == 1 ? byte : nil
    }
  }
}
