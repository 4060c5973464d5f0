import FerryPlatform
import FerryProtocol

/// The name of a version on this device.
///
/// That is its number, with one exception: a server that was rolled back may publish a number again
/// with other content (SPEC.md §21). Then the later version gets a name of its own, a negative
/// number, which no published version has. So the former version stays unchanged for its readers.
enum VersionName {
  /// Returns the name of another version with that number.
  ///
  /// - Parameter rows: versions that are complete.
  static func next(for number: Int64, beside rows: [MissionRow]) -> Int64 {
    let names = rows.map(\.version.version)
    return names.contains(number) ? min(0, names.min() ?? 0) - 1 : number
  }

  /// Returns the folder of a version: `7`, or `again-1` if its number is another's.
  static func folder(_ name: Int64) -> String {
    name < 0 ? "again\(name)" : "\(name)"
  }

  /// Returns the name that a folder belongs to; `nil` for other folders.
  static func name(ofFolder folder: some StringProtocol) -> Int64? {
    let number = Int64(folder.rest(after: "again") ?? folder[...])
    guard let number, Self.folder(number) == folder else { return nil }
    return number
  }
}

/// A complete version in use, with the facts that a new request needs.
struct HeldVersion: Sendable, Equatable {
  var version: Int64
  var manifest: ContentHash

  init(_ record: MissionRecord) { (version, manifest) = (record.version, record.manifest) }

  /// Whether the catalogue has no newer version. The same number with another manifest counts as
  /// newer: a rolled-back server has used it again.
  func isCurrent(_ record: MissionRecord) -> Bool {
    version > record.version || version == record.version && manifest == record.manifest
  }
}

extension MissionRecord {
  /// Whether both records have the same document.
  func isSame(as other: MissionRecord) -> Bool {
    version == other.version && manifest == other.manifest
  }
}
