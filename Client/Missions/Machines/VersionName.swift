import FerryProtocol

/// What a version is called by on this device.
///
/// That is its number. Where a server was set back to an earlier state and has published a number
/// once more, with another content, the later one has a name of its own, so that the former stays
/// as it is for whoever reads it: a negative number, which no version has.
enum VersionName {
  /// The name for another version of that number.
  ///
  /// - Parameter rows: versions that are complete.
  static func next(for number: Int64, beside rows: [MissionRow]) -> Int64 {
    let names = rows.map(\.version.version)
    return names.contains(number) ? min(0, names.min() ?? 0) - 1 : number
  }

  /// The folder of a version: `7`, or `again-1` where its number is another's.
  static func folder(_ name: Int64) -> String {
    name < 0 ? "again\(name)" : "\(name)"
  }

  /// The name that a folder stands for; `nil` for other folders.
  static func name(ofFolder folder: some StringProtocol) -> Int64? {
    let number = folder.hasPrefix("again") ? Int64(folder.dropFirst(5)) : Int64(folder)
    guard let number, Self.folder(number) == folder else { return nil }
    return number
  }
}

/// A complete version in use, as far as asking for another one goes.
struct HeldVersion: Sendable, Equatable {
  var version: Int64
  var manifest: ContentHash

  init(_ record: MissionRecord) { (version, manifest) = (record.version, record.manifest) }

  /// Whether the catalogue has nothing newer. The same number with another manifest is: a server
  /// that was set back has counted once more.
  func isCurrent(_ record: MissionRecord) -> Bool {
    version > record.version || version == record.version && manifest == record.manifest
  }
}

extension MissionRecord {
  /// Whether it speaks of the same document.
  func isSame(as other: MissionRecord) -> Bool {
    version == other.version && manifest == other.manifest
  }
}
