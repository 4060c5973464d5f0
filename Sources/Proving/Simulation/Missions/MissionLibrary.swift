import FerryConformance
import FerryCryptography
import FerryProtocol

/// The content of publishers.
///
/// Missions are made of a few contents in repeated use. Some of them have a change in one place, so
/// versions and missions share files and parts of files.
final class MissionLibrary {
  /// Bytes of a file: none, some, and those around the ends of chunks.
  private static let sizes = [0, 900, 65_536, 65_537, 150_000, 260_000, 400_000, 400_000]
  private static let paths = ["a.bin", "media/b.bin", "media/c/d.bin", "notes.json"]
  private static let chunkSize: Int64 = 64 << 10

  private let seed: UInt64
  private let contents: Int
  private var bytes: [ContentHash: [UInt8]] = [:]
  private var items: [Int: MissionItem] = [:]

  init(seed: UInt64, missions: Int) {
    (self.seed, contents) = (seed, 3 + missions)
  }

  static func id(_ mission: Int) -> MissionID {
    guard let id = MissionID("mission-\(mission)") else { preconditionFailure("not a name") }
    return id
  }

  /// Returns the manifest of a publication; the version is 0, for whichever comes next.
  func manifest(_ planned: PlannedMission, in space: SpaceName, spaces: Int) -> MissionManifest {
    var random = SeededRandom(planned.seed, "manifest")
    var manifest = MissionManifest(
      space: space, id: Self.id(planned.mission), version: 0,
      title: "Mission \(planned.mission)", priority: Int64(random.below(3)),
      chunkSize: Self.chunkSize, items: [])
    for path in Self.paths.prefix(1 + random.below(Self.paths.count)) {
      let change = random.chance(1, in: 3) ? 1 + random.below(2) : 0
      var item = self.item(random.below(contents), change: change)
      item.path = path
      if let first = manifest.items.first, random.chance(1, in: 4) { item.after = [first.path] }
      manifest.items.append(item)
    }
    if planned.mission >= spaces, random.chance(1, in: 4) {
      manifest.after = [Self.id(planned.mission - spaces)]
    }
    return manifest
  }

  /// Returns the bytes of content named by a manifest of this library.
  func bytes(of hash: ContentHash) -> [UInt8] { bytes[hash] ?? [] }

  private func item(_ content: Int, change: Int) -> MissionItem {
    let key = content * 3 + change
    if let item = items[key] { return item }
    let made = Self.make(content, change: change, seed: seed)
    let chunk = Int(Self.chunkSize)
    let chunks = stride(from: 0, to: made.count, by: chunk).map {
      Self.hash(Array(made[$0..<min($0 + chunk, made.count)]))
    }
    let hash = Self.hash(made)
    let item = MissionItem(
      path: "", size: Int64(made.count), hash: hash, chunks: chunks.count > 1 ? chunks : [])
    bytes[hash] = made
    items[key] = item
    return item
  }

  private static func make(_ content: Int, change: Int, seed: UInt64) -> [UInt8] {
    var random = SeededRandom(seed, "content-\(content)")
    let size = sizes[random.below(sizes.count)]
    var bytes = SeededContent.draw(size, from: &random)
    if size > 0, change > 0 { bytes[random.below(size)] ^= UInt8(change) }
    return bytes
  }

  static func hash(_ bytes: [UInt8]) -> ContentHash {
    guard let hash = ContentHash(SHA256.digest(of: bytes)) else {
      preconditionFailure("SHA-256 has 32 bytes")
    }
    return hash
  }
}
