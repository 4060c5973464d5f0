import FerryPlatform
import FerryProtocol

/// The name of a version on this device.
///
/// The name is the version's number, with one exception: a rolled-back server may publish a number
/// again with other content (SPEC.md §21). Then the later version gets a different name, a negative
/// number; no published version has one. So the former version stays unchanged for readers.
enum VersionName {
  /// Returns the name of another version with the same number.
  ///
  /// - Parameter rows: complete versions.
  static func next(for number: Int64, beside rows: [MissionRow]) -> Int64 {
    let names = rows.map(\.version.version)
    return names.contains(number) ? min(0, names.min() ?? 0) - 1 : number
  }

  /// Returns the folder of a version: `7`, or `again-1` if the number is another version's.
  static func folder(_ name: Int64) -> String {
    name < 0 ? "again\(name)" : "\(name)"
  }

  /// Returns the name of the version in a folder; `nil` for other folders.
  static func name(ofFolder folder: some StringProtocol) -> Int64? {
    let number = Int64(folder.rest(after: "again") ?? folder[...])
    guard let number, Self.folder(number) == folder else { return nil }
    return number
  }
}

/// A complete version in use, with the facts for a new request.
struct HeldVersion: Sendable, Equatable {
  var version: Int64
  var manifest: ContentHash

  init(_ record: MissionRecord) { (version, manifest) = (record.version, record.manifest) }

  /// Returns true if the catalogue has no newer version. The same number with another manifest
  /// counts as newer: a rolled-back server has used it again.
  func isCurrent(_ record: MissionRecord) -> Bool {
    version > record.version || version == record.version && manifest == record.manifest
  }
}

extension MissionRecord {
  /// Returns true if both records have the same document.
  func isSame(as other: MissionRecord) -> Bool {
    version == other.version && manifest == other.manifest
  }
}
