/// The end of a file's name, for its type: the extension of the URL, the file's key.
///
/// Decides by bytes: the key may be any text.
enum FileSuffix {
  /// The most bytes after the dot.
  private static let bytesMax = 12

  /// Returns the end of a key's path, such as `.mp4`; an empty text if it shows no type.
  static func of(_ key: String) -> String {
    var bytes = Array(key.utf8)[...]
    if let end = bytes.firstIndex(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }) {
      bytes = bytes[..<end]
    }
    if let start = authority(in: bytes) {
      guard let slash = bytes[start...].firstIndex(of: UInt8(ascii: "/")) else { return "" }
      bytes = bytes[slash...]
    }
    if let slash = bytes.lastIndex(of: UInt8(ascii: "/")) { bytes = bytes[(slash + 1)...] }
    guard let dot = bytes.lastIndex(of: UInt8(ascii: ".")), dot > bytes.startIndex else {
      return ""
    }
    let suffix = String(decoding: bytes[dot...], as: UTF8.self)
    return isValid(suffix) ? suffix : ""
  }

  /// Returns true if a text may end a file's name: empty, or a dot with ASCII letters and digits.
  static func isValid(_ suffix: String) -> Bool {
    let bytes = suffix.utf8
    guard let first = bytes.first else { return true }
    return first == UInt8(ascii: ".") && (2...bytesMax + 1).contains(bytes.count)
      && bytes.dropFirst().allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "a")...UInt8(ascii: "z"):
          true
        default: false
        }
      }
  }

  /// Returns the index after the `://` of a URL; `nil` without one.
  private static func authority(in bytes: ArraySlice<UInt8>) -> Int? {
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
      bytes[colon...].starts(with: "://".utf8)
    else { return nil }
    return colon + 3
  }
}
