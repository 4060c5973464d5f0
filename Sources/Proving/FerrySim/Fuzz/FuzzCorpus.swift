import Foundation

/// All inputs that were ever interesting: one file for each target, one input a line.
///
/// A line is the kind of the result, a tab, and the input. Bytes that are not printable ASCII, and
/// backslashes, are written as `\xNN`.
struct FuzzCorpus {
  let folder: URL

  /// Returns the kept inputs of a target; none if it has no file.
  func inputs(of target: String) throws -> [(kind: String, bytes: [UInt8])] {
    let file = folder.appending(path: "\(target).txt")
    guard FileManager.default.fileExists(atPath: file.path) else { return [] }
    return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").compactMap { line in
      let parts = line.split(separator: "\t", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, let bytes = Self.bytes(parts[1]) else { return nil }
      return (String(parts[0]), bytes)
    }
  }

  /// Adds inputs, one of each kind, and writes the file in order.
  func add(_ added: [(kind: String, bytes: [UInt8])], to target: String) throws {
    var lines: [String: String] = [:]
    for input in added + (try inputs(of: target)) {
      lines[input.kind] = "\(input.kind)\t\(Self.text(input.bytes))"
    }
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let text = lines.sorted { $0.key < $1.key }.map { $0.value + "\n" }.joined()
    try Data(text.utf8).write(to: folder.appending(path: "\(target).txt"))
  }

  // MARK: Writing

  static func text(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    for byte in bytes {
      if (0x20...0x7E).contains(byte), byte != UInt8(ascii: "\\") {
        text.append(byte)
      } else {
        text += [
          UInt8(ascii: "\\"), UInt8(ascii: "x"), digits[Int(byte >> 4)], digits[Int(byte & 15)],
        ]
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  static func bytes(_ text: some StringProtocol) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "\\") else {
        bytes.append(byte)
        continue
      }
      let code = String(decoding: rest.dropFirst().prefix(2), as: UTF8.self)
      guard rest.first == UInt8(ascii: "x"), let value = UInt8(code, radix: 16) else { return nil }
      bytes.append(value)
      rest = rest.dropFirst(3)
    }
    return bytes
  }
}
