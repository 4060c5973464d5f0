import FerryConformance
import FerryProtocol

/// The web apps of publishers, and the behaviour of their pages.
///
/// Versions share some files, so a mix of two of them could look whole.
final class BundleLibrary {
  /// The behaviour of a version's pages.
  enum Behaviour: Sendable {
    /// They work.
    case working
    /// They never report success.
    case silent
    /// Their script throws an error.
    case throwing
    /// Their process ends.
    case vanishing
  }

  /// In the order of their publication.
  static let versions = ["1", "1.1", "1.2", "2", "2.0.1", "2.1"].map { made(BundleVersion($0)) }
  private static let chunkSize: Int64 = 64 << 10

  private let seed: UInt64
  private var bytes: [ContentHash: [UInt8]] = [:]
  private var manifests: [BundleID: MissionManifest] = [:]

  init(seed: UInt64) { self.seed = seed }

  static func name(_ bundle: Int) -> BundleName { made(BundleName("app-\(bundle)")) }

  static func id(_ bundle: Int, _ version: Int) -> BundleID {
    BundleID(name(bundle), versions[version])
  }

  private static func made<T>(_ value: T?) -> T {
    guard let value else { preconditionFailure("not a name") }
    return value
  }

  /// Returns the manifest of a version; the number is 0, for whichever comes next.
  func manifest(_ id: BundleID, in space: SpaceName) -> MissionManifest {
    if let manifest = manifests[id] { return manifest }
    var random = SeededRandom(seed, "bundle-\(id)")
    let shell = random.chance(1, in: 6) ? BundleVersion(2) : nil
    var items = [item("index.html", "page-\(id)", size: 200 + random.below(4_000))]
    for path in ["app.js", "style/app.css", "media/photo.bin"] where random.chance(3, in: 4) {
      let size = path == "media/photo.bin" ? 70_000 : 3_000
      items.append(item(path, "\(id.name)-\(path)-\(random.below(2))", size: size))
    }
    let manifest = MissionManifest(
      space: space, id: id.mission, version: 0, title: "Bundle \(id)", chunkSize: Self.chunkSize,
      items: items, bundle: BundleDeclaration(id, minShell: shell))
    manifests[id] = manifest
    return manifest
  }

  private func item(_ path: String, _ content: String, size: Int) -> MissionItem {
    let made = SeededContent.bytes(SeededRandom(seed, content), count: size)
    let chunk = Int(Self.chunkSize)
    let chunks = stride(from: 0, to: made.count, by: chunk).map {
      MissionLibrary.hash(Array(made[$0..<min($0 + chunk, made.count)]))
    }
    let hash = MissionLibrary.hash(made)
    bytes[hash] = made
    return MissionItem(
      path: path, size: Int64(made.count), hash: hash, chunks: chunks.count > 1 ? chunks : [])
  }

  /// Returns the bytes of content named by a manifest of this library.
  func bytes(of hash: ContentHash) -> [UInt8] { bytes[hash] ?? [] }

  /// Returns how the pages of a version behave on a device: some versions work nowhere, and some
  /// not everywhere.
  func behaviour(of id: BundleID, on device: String) -> Behaviour {
    var random = SeededRandom(seed, "behaviour-\(id)")
    let (isBroken, isBrokenEverywhere) = (random.chance(1, in: 2), random.chance(1, in: 2))
    let behaviour: [Behaviour] = [.silent, .throwing, .vanishing]
    let kind = behaviour[random.below(behaviour.count)]
    var own = SeededRandom(seed, "behaviour-\(id)-\(device)")
    return isBroken && (isBrokenEverywhere || own.chance(1, in: 2)) ? kind : .working
  }

  /// Returns the version of a device's shell.
  static func shell(of device: String, seed: UInt64) -> BundleVersion {
    var random = SeededRandom(seed, "shell-\(device)")
    return made(BundleVersion(1 + random.below(2)))
  }
}
