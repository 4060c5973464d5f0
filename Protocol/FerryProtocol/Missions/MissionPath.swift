import FerryPlatform

/// The rule for paths of items in a bundle. It is strict enough for every possible file system of a
/// device: nothing in a manifest can leave the store or overwrite another item.
public enum MissionPath {
  /// Bytes of a whole path.
  public static let bytesMax = 1_024
  /// Bytes of one name in it.
  public static let nameBytesMax = 200
  /// Names in it.
  public static let depthMax = 16

  /// Returns the reason why `path` cannot be an item's, or `nil` if it can.
  ///
  /// A path is relative, with `/` between the names. A name
  ///
  /// - is neither empty nor `.` nor `..`, and does not end in a dot or blank;
  /// - holds no control character, and none that turns the direction of text (a name could pass for
  ///   another one, of another kind);
  /// - holds none of `\ : * ? " < > |`;
  /// - is not a device's name of Windows.
  public static func fault(in path: String) -> String? {
    let count = path.utf8.count
    if count == 0 { return "a path is empty" }
    if count > bytesMax { return "a path has \(count) bytes; \(bytesMax) are allowed" }
    if path.utf8.first == 0x2F { return "path “\(path)” is absolute" }
    let names = names(in: path)
    if names.count > depthMax { return "path “\(path)” is nested deeper than \(depthMax)" }
    for name in names {
      if let fault = fault(inName: name) { return "path “\(path)”: \(fault)" }
    }
    return nil
  }

  /// Returns the names of a path, split at the byte of a slash, as file systems do. To Swift, a
  /// slash and a combining mark behind it are one character, and no slash.
  public static func names(in path: String) -> [Substring] {
    path.utf8.split(separator: 0x2F, omittingEmptySubsequences: false).map(Substring.init)
  }

  /// Returns the path without case, which two items of one bundle may not share: file systems may
  /// take their paths for the same. Strings compare by their visible form (Unicode's canonical
  /// equivalence), so composed and decomposed letters are the same, too.
  public static func folded(_ path: String) -> String {
    // text: file systems fold the case of all scripts
    path.lowercased()
  }

  /// Returns whether it is one of Unicode's bidirectional controls (UAX #9 §2).
  private static func isDirection(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x061C, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069: true
    default: false
    }
  }

  private static func fault(inName name: Substring) -> String? {
    let bytes = name.utf8
    if bytes.isEmpty { return "a name in it is empty" }
    if name == "." || name == ".." { return "“\(name)” leads elsewhere" }
    if bytes.count > nameBytesMax {
      return "a name in it has \(bytes.count) bytes; \(nameBytesMax) are allowed"
    }
    if bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) { return "it holds a control character" }
    if name.unicodeScalars.contains(where: isDirection) {
      return "it holds a character that turns the direction of text"
    }
    if let mark = name.unicodeScalars.first(where: { "\\:*?\"<>|".unicodeScalars.contains($0) }) {
      return "“\(mark)” is not allowed in a name"
    }
    if bytes.last == 0x2E || bytes.last == 0x20 { return "a name ends in a dot or a blank" }
    let stem = String(name.unicodeScalars.prefix { $0 != "." }).lowercasedASCII
    let isPort = stem.count == 4 && (stem.begins(with: "com") || stem.begins(with: "lpt"))
    if ["con", "prn", "aux", "nul"].contains(stem)
      || isPort && (0x30...0x39).contains(stem.utf8.last ?? 0)
    {
      return "“\(name)” is the name of a device"
    }
    return nil
  }
}
