import FerryCryptography
import FerryPlatform
import Foundation

/// A folder as a bundle, for developers: each page load shows the folder's content at that time.
///
/// A load keeps the files in memory, so an edit shows with the next load and never within one. If
/// the folder's present content has failed or cannot be read, the last good content is shown.
public actor DirectoryBundle: BundleSource {
  /// The most files of a folder.
  static let filesMax = 4_096
  /// The most bytes of all files.
  static let bytesMax = 64 << 20

  private struct Snapshot: Sendable {
    let version: PageVersion
    let files: [BundlePath: [UInt8]]
  }

  private let directory: URL
  private let executor = ThreadExecutor(name: "ferry-bundle")
  /// The contents that page loads may still read, newest last.
  private var snapshots: [Snapshot] = []
  /// How many page loads have a content.
  private var loads: [PageVersion: Int] = [:]
  /// Working contents, the latest one last.
  private var worked: [PageVersion] = []
  private var failed: [PageVersion: PageFailure] = [:]
  private let report: @Sendable (String) -> Void

  /// The most contents, beside those of page loads.
  private static let snapshotsMax = 4

  /// Names a folder with a `ferry-bundle.json`.
  ///
  /// - Parameter report: receives lines for the developer.
  public init(_ path: String, report: @escaping @Sendable (String) -> Void = { _ in }) {
    directory = URL(fileURLWithPath: path, isDirectory: true)
    self.report = report
  }

  public func next() async throws(BundleSourceError) -> PageVersion {
    do throws(BundleSourceError) {
      let snapshot = try await read()
      let version = snapshot.version
      if let failure = failed[version], !worked.isEmpty {
        throw BundleSourceError(
          "version \(version.version) of \(version.name) failed", reason: failure.description,
          next: "correct the files; the next page load reads them again")
      }
      remember(snapshot)
      loads[version, default: 0] += 1
      return version
    } catch {
      guard let good = worked.last else { throw error }
      report("\(error.event): \(error.reason); version \(good.version) is shown")
      loads[good, default: 0] += 1
      return good
    }
  }

  public func left(_ version: PageVersion) async {
    guard let count = loads[version] else { return }
    loads[version] = count > 1 ? count - 1 : nil
    dropOldest()
  }

  public func file(
    _ path: BundlePath, of version: PageVersion
  ) async throws(BundleSourceError) -> ServedContent? {
    guard let snapshot = snapshots.first(where: { $0.version == version }) else {
      throw BundleSourceError(
        "version \(version.version) is no longer kept", reason: "later versions replaced it",
        next: "load the page again")
    }
    return snapshot.files[path].map { ServedContent($0, mediaType: WebMediaType.of(path)) }
  }

  public func confirm(_ version: PageVersion) async {
    failed[version] = nil
    guard worked.last != version else { return }
    worked.removeAll { $0 == version }
    worked.append(version)
    report("version \(version.version) of \(version.name) works")
  }

  public func fail(_ version: PageVersion, _ failure: PageFailure) async -> Bool {
    failed[version] = failure
    worked.removeAll { $0 == version }
    report("version \(version.version) of \(version.name) failed: \(failure)")
    return !worked.isEmpty
  }

  private func remember(_ snapshot: Snapshot) {
    snapshots.removeAll { $0.version == snapshot.version }
    snapshots.append(snapshot)
    dropOldest()
  }

  /// Drops contents over the limit. The last two working ones stay however many follow, and so do
  /// those of page loads.
  private func dropOldest() {
    while snapshots.count(where: { loads[$0.version] == nil }) > Self.snapshotsMax,
      let oldest = snapshots.firstIndex(where: {
        loads[$0.version] == nil && !worked.suffix(2).contains($0.version)
      })
    {
      snapshots.remove(at: oldest)
    }
  }

  private func read() async throws(BundleSourceError) -> Snapshot {
    let result: Result<Snapshot, BundleSourceError>
    do {
      result = try await executor.run { [directory] in
        do throws(BundleSourceError) {
          return .success(try Self.snapshot(of: directory))
        } catch {
          return .failure(error)
        }
      }
    } catch {
      throw Self.fault(String(describing: error))
    }
    return try result.get()
  }

  private static func snapshot(of directory: URL) throws(BundleSourceError) -> Snapshot {
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: directory.path, isDirectory: &isFolder),
      isFolder.boolValue
    else {
      throw BundleSourceError(
        "\(directory.path) cannot be shown", reason: "there is no such folder",
        next: "name the folder of an app, which has a file \(FolderDeclaration.fileName)")
    }
    let files = try contents(of: directory)
    guard let json = BundlePath(FolderDeclaration.fileName).flatMap({ files[$0] }) else {
      throw BundleSourceError(
        "the folder \(directory.path) cannot be shown",
        reason: "it has no file \(FolderDeclaration.fileName), which declares its app",
        next: "write that file with {\"name\":\"board\",\"version\":\"1\"} into the app's folder")
    }
    let description = try FolderDeclaration(json: json)
    if let minShell = description.minShell, minShell > Shell.version {
      throw BundleSourceError(
        "version \(description.version) needs another program",
        reason: "it runs on shells from \(minShell) on, and this one is \(Shell.version)",
        next: "update the program")
    }
    guard files[description.entry] != nil else {
      throw fault("its first page \(description.entry) does not exist")
    }
    var hash = SHA256()
    for (path, bytes) in files.sorted(by: { $0.key < $1.key }) {
      hash.update(Array("\(path.text.utf8.count):\(path)\(bytes.count):".utf8))
      hash.update(bytes)
    }
    let version = PageVersion(
      name: description.name.value, version: description.version.description,
      entry: description.entry, services: description.services,
      content: Base64URL.encode(hash.finish()))
    return Snapshot(version: version, files: files)
  }

  private static func contents(of directory: URL) throws(BundleSourceError) -> [BundlePath: [UInt8]]
  {
    let root = directory.resolvingSymlinksInPath().path
    let keys: Set<URLResourceKey> = [.isRegularFileKey, .isSymbolicLinkKey, .fileSizeKey]
    guard
      let walk = FileManager.default.enumerator(
        at: URL(fileURLWithPath: root), includingPropertiesForKeys: Array(keys),
        options: .skipsHiddenFiles)
    else { throw fault("the folder \(root) cannot be read") }
    var files: [BundlePath: [UInt8]] = [:]
    var bytes = 0
    for case let url as URL in walk {
      guard let values = try? url.resourceValues(forKeys: keys), values.isRegularFile == true,
        values.isSymbolicLink != true
      else { continue }
      let folder = root.utf8.count + (root.ends(with: "/") ? 0 : 1)
      let relative = Substring(url.path.utf8.dropFirst(folder))
      guard let path = BundlePath(relative) else {
        throw fault("\(relative) is no path that a page can use")
      }
      bytes += values.fileSize ?? 0
      guard files.count < filesMax, bytes <= bytesMax else {
        throw fault("the folder has more than \(filesMax) files or \(bytesMax >> 20) MiB")
      }
      do {
        files[path] = Array(try Data(contentsOf: url))
      } catch {
        throw fault("\(path) cannot be read: \(error.localizedDescription)")
      }
    }
    return files
  }

  private static func fault(_ reason: String) -> BundleSourceError {
    BundleSourceError(
      "the folder cannot be shown", reason: reason,
      next: "correct the folder, and load the page again")
  }
}
