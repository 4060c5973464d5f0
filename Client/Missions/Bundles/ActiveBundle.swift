import FerryProtocol

/// A version of a bundle in use, with all files.
///
/// The value stays the same when another version is put in use: a shell keeps it from one page load
/// to the next. The files stay as long as the value, however many versions any process confirms
/// meanwhile. Every returned byte is checked against the signed manifest.
///
/// ```swift
/// if let board = try await bundles.active("board") {
///   let page = try await board.open(board.entry)
///   print(page.mediaType, try await page.readAll().count)
/// }
/// ```
public struct ActiveBundle: Sendable {
  public let name: BundleName
  public let version: BundleVersion
  /// The path of the page to open first.
  public let entry: String
  /// The services needed by the page.
  public let services: [BundleService]
  /// The oldest shell for this version; `nil` for any.
  public let minShell: BundleVersion?
  /// True if a page of this version has confirmed that it works.
  public let isConfirmed: Bool
  /// The paths of all files, sorted.
  public let paths: [String]
  /// The folder with the files under their paths; `nil` if they are encrypted at rest. Bytes read
  /// from it are not checked.
  public let folder: String?

  /// The hash of the signed manifest, an identifier for the content of the version.
  public var manifest: ContentHash { key.manifest }

  let key: BundleKey
  private let files: [String: MissionItem]
  private let missions: MissionManager
  /// The lock on the files; the operating system releases it when the process ends.
  private var lease: FileLock?

  init(
    _ manifest: MissionManifest, _ bundle: BundleDeclaration, key: BundleKey, isConfirmed: Bool,
    folder: String?, missions: MissionManager, lease: FileLock?
  ) {
    self.lease = lease
    (name, version) = (bundle.id.name, bundle.id.version)
    (entry, services, minShell) = (bundle.entry, bundle.services, bundle.minShell)
    (self.key, self.isConfirmed, self.folder, self.missions) = (key, isConfirmed, folder, missions)
    files = Dictionary(manifest.items.map { ($0.path, $0) }) { first, _ in first }
    paths = files.keys.sorted()
  }

  /// Returns the same version without the lease: the files may be removed.
  package func released() -> ActiveBundle {
    var bundle = self
    bundle.lease = nil
    return bundle
  }

  /// Opens a file.
  ///
  /// - Parameter path: as in the published folder, without a slash before it.
  /// - Throws: ``BundleError/Kind/notFound`` if the version has no such file, and
  ///   ``BundleError/Kind/mission`` if the content is missing or damaged.
  public func open(_ path: String) async throws(BundleError) -> BundleFile {
    // A Swift text equals another one with the same visible form; a path is a sequence of bytes.
    guard let item = files[path], item.path.utf8.elementsEqual(path.utf8) else {
      throw BundleError(.notFound, "bundle \(name) \(version) has no file “\(path.prefix(80))”")
    }
    do throws(MissionError) {
      let mission = BundleID(name, version).mission
      let content = try await missions.content(of: path, in: mission)
      guard content.hash == item.hash else {
        throw MissionError(.damaged, item: path, "another version of the mission is in use")
      }
      return BundleFile(path: item.path, mediaType: item.mediaType, content: content)
    } catch {
      throw BundleError(error)
    }
  }
}

/// A file of a bundle, open for reads at any offset.
public struct BundleFile: Sendable {
  public let path: String
  /// The media type (RFC 6838).
  public let mediaType: String
  /// The SHA-256; it is sufficient as an entity tag.
  public var hash: ContentHash { content.hash }
  /// Bytes.
  public var size: Int64 { content.size }
  private let content: MissionContent

  init(path: String, mediaType: String, content: MissionContent) {
    (self.path, self.mediaType, self.content) = (path, mediaType, content)
  }

  /// Reads up to `count` bytes from an offset; fewer at the end.
  ///
  /// - Throws: ``BundleError/Kind/mission`` if the content differs from the published one.
  public func read(from offset: Int64, count: Int) async throws(BundleError) -> [UInt8] {
    do throws(MissionError) {
      return try await content.read(from: offset, count: count)
    } catch {
      throw BundleError(error)
    }
  }

  /// Reads the whole file into memory.
  public func readAll() async throws(BundleError) -> [UInt8] {
    try await read(from: 0, count: Int(size))
  }
}
