/// A service of the shell, needed by a bundle.
public struct BundleService: Hashable, Sendable {
  /// Characters of a service's name.
  public static let nameBytesMax = 64

  /// 1 to 64 characters of `A–Z a–z 0–9 . _ -`, the first one a letter or digit.
  public internal(set) var name: String
  /// The oldest suitable version of the service; `nil` for any.
  public internal(set) var version: BundleVersion?

  init(unchecked name: String) { self.name = name }

  /// `nil` if the name breaks the rule.
  public init?(_ name: String, version: BundleVersion? = nil) {
    // The rule is the one for missions' names, with a smaller limit.
    guard name.utf8.count <= Self.nameBytesMax, MissionID(name) != nil else { return nil }
    self.name = name
    self.version = version
  }
}

/// The part of a mission's manifest for a bundle: a web app shown by a shell (SPEC.md §31).
public struct BundleDeclaration: Sendable, Equatable {
  public var id: BundleID
  /// The path of the first page in a shell.
  public var entry: String
  /// The needed services.
  public var services: [BundleService]
  /// The oldest supported shell; `nil` for any.
  public var minShell: BundleVersion?

  public init(
    _ id: BundleID, entry: String = "index.html", services: [BundleService] = [],
    minShell: BundleVersion? = nil
  ) {
    self.id = id
    self.entry = entry
    self.services = services
    self.minShell = minShell
  }

  /// Returns the reason why a mission with this declaration is no bundle; `nil` if it is one.
  func fault(in manifest: MissionManifest, limits: BundleLimits = .standard) -> String? {
    if manifest.id != id.mission {
      return "bundle \(id) is mission \(id.mission), not \(manifest.id)"
    }
    if !manifest.after.isEmpty { return "a bundle waits for no mission" }
    if services.count > limits.services {
      return "it needs \(services.count) services; \(limits.services) are allowed"
    }
    if Set(services.map(\.name)).count < services.count { return "a service is named twice" }
    if manifest.items.count > limits.files {
      return "a bundle has at most \(limits.files) files, not \(manifest.items.count)"
    }
    if let item = manifest.items.first(where: { !$0.isHosted || $0.url != nil }) {
      return "item \(item.path): the server has the files of a bundle, and they have no url"
    }
    if let item = manifest.items.first(where: { $0.size > limits.fileBytes }) {
      return "item \(item.path) has \(item.size) bytes; \(limits.fileBytes) are allowed"
    }
    if manifest.size > limits.bytes {
      return "the files have \(manifest.size) bytes; \(limits.bytes) are allowed"
    }
    // Swift compares texts by their visible form, and file systems by their bytes.
    guard let page = manifest.items.first(where: { $0.path.utf8.elementsEqual(entry.utf8) }) else {
      return "its entry “\(entry.prefix(80))” is not among its files"
    }
    return fault(inEntry: page, limits)
  }

  /// Returns the reason why a shell cannot show the first page; `nil` if it can. The path of the
  /// page is a part of the page's address.
  private func fault(inEntry page: MissionItem, _ limits: BundleLimits) -> String? {
    if page.size > limits.entryBytes {
      return "its entry has \(page.size) bytes; \(limits.entryBytes) are allowed"
    }
    let names = MissionPath.names(in: page.path)
    if names.first?.isSame(as: "-") == true {
      return "its entry is in the folder “-”, which is the shell's own"
    }
    if names.contains(where: { $0.utf8.first == UInt8(ascii: ".") }) {
      return "a name in the path of its entry begins with a dot"
    }
    if names.contains(where: { $0.utf8.count > limits.entryNameBytes }) {
      return "a name in the path of its entry has more than \(limits.entryNameBytes) bytes"
    }
    return nil
  }
}

/// The limits of a bundle, beside those of missions.
public struct BundleLimits: Sendable, Equatable {
  /// Files of a version.
  public var files = 10_000
  /// Bytes of a file.
  public var fileBytes: Int64 = 256 << 20
  /// Bytes of the first page, which a shell changes before it shows it.
  public var entryBytes: Int64 = 4 << 20
  /// Bytes of a name in the first page's path.
  public var entryNameBytes = 128
  /// Bytes of all files of a version.
  public var bytes: Int64 = 1 << 30
  /// Services needed by a bundle.
  public var services = 100
  /// Bytes of `ferry-bundle.json`.
  public var declarationBytes = 64 << 10

  public init() {}

  public static let standard = BundleLimits()
}
