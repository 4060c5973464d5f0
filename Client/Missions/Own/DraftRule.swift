import FerryCryptography
import FerryProtocol

/// Turns drafts into manifests.
enum DraftRule {
  /// The space of all composed missions; no server has it.
  static let space: SpaceName = {
    guard let name = SpaceName("own") else { preconditionFailure("the name is valid") }
    return name
  }()

  /// Returns the reason why a mission cannot be composed; `nil` if it can.
  static func fault(in document: Draft.Document, of id: MissionID) -> String? {
    for item in document.items {
      if item.sizeMax < 0 { return "item \(item.path): the largest size is negative" }
      if let size = item.size, size < 0 { return "item \(item.path): its size is negative" }
    }
    // Sizes and hashes are unknown yet: any will do. All addresses are checked, also those missing
    // from the later manifest.
    let hash = ContentHash(SHA256.digest(of: [UInt8]()))
    let items = document.items.compactMap { item in
      hash.map { MissionItem(item, size: 0, hash: $0, url: item.request.url) }
    }
    return manifest(document, of: id, version: 1, items).fault()
  }

  /// Returns the manifest of the fetched items, by their places. It does not have the cancelled
  /// items.
  static func manifest(
    _ document: Draft.Document, of id: MissionID, version: Int64, _ fetched: [Int: ContentFacts]
  ) -> MissionManifest {
    let items = document.items.enumerated().compactMap { place, item in
      fetched[place].map { facts in
        MissionItem(
          item, size: facts.size, hash: facts.hash, chunks: facts.parts,
          url: item.request.isPlain ? item.request.url : nil)
      }
    }
    return manifest(document, of: id, version: version, items)
  }

  private static func manifest(
    _ document: Draft.Document, of id: MissionID, version: Int64, _ items: [MissionItem]
  ) -> MissionManifest {
    MissionManifest(
      space: space, id: id, version: version, title: document.title, summary: document.summary,
      priority: document.priority, after: [], items: items)
  }

  /// Returns the record of a manifest. It has no signature: the manifest does not leave this device.
  static func record(
    of manifest: MissionManifest, _ document: [UInt8], at: Int64
  ) -> MissionRecord {
    guard let hash = ContentHash(SHA256.digest(of: document)) else {
      preconditionFailure("a digest is a content's hash")
    }
    return MissionRecord(
      of: manifest, hash: hash, manifestSize: Int64(document.count), signature: [], signer: [],
      publishedAt: at)
  }
}

extension MissionItem {
  /// Creates the manifest's entry for an item of a draft.
  fileprivate init(
    _ item: OwnItem, size: Int64, hash: ContentHash, chunks: [ContentHash] = [], url: String?
  ) {
    self.init(
      path: item.path, kind: item.kind, mediaType: item.mediaType, size: size, hash: hash,
      chunks: chunks, url: url, after: item.after)
  }
}
