import FerryProtocol

/// A mission before the hashing of the files: a publisher's document, or a folder's files; pure.
package struct MissionDraft: Sendable, Equatable {
  /// The source of an item's content.
  package enum Source: Sendable, Equatable {
    /// A file here, by a path relative to the draft's folder.
    case file(String)
    /// Elsewhere on the web, or on the server already: the digest is known.
    case known(FileDigest, isHosted: Bool)
  }

  /// An item before a look at the content.
  package struct Item: Sendable, Equatable {
    /// See ``MissionPath``.
    package var path: String
    package var type: (kind: MissionItemKind?, mediaType: String?)
    package var source: Source
    package var url: String?
    package var after: [String]

    package init(
      path: String, kind: MissionItemKind? = nil, mediaType: String? = nil, source: Source,
      url: String? = nil, after: [String] = []
    ) {
      self.path = path
      type = (kind, mediaType)
      self.source = source
      self.url = url
      self.after = after
    }

    package static func == (one: Item, other: Item) -> Bool {
      one.path == other.path && one.type == other.type && one.source == other.source
        && one.url == other.url && one.after == other.after
    }
  }

  /// `nil` if the publisher has given none.
  package var id: MissionID?
  package var title = ""
  package var summary = ""
  package var priority: Int64 = 0
  package var after: [MissionID] = []
  package var chunkSize = MissionManifest.chunkSizeDefault
  package var items: [Item]
  /// Makes it a bundle; `nil` for an ordinary mission.
  package var bundle: BundleDeclaration?

  package init(items: [Item]) { self.items = items }

  /// Creates a draft with all files of a folder as items of the same path, in the order of their
  /// paths.
  package init(files: [String]) {
    items = files.sorted().map { Item(path: $0, source: .file($0)) }
  }

  /// Files to hash, each once, in order.
  package var files: [String] {
    var (files, seen) = ([String](), Set<Name>())
    for case .file(let path) in items.map(\.source) where seen.insert(Name(path)).inserted {
      files.append(path)
    }
    return files
  }

  /// Returns the mission with the hashes of all files.
  ///
  /// - Parameter digests: By path, of each of ``files``.
  package func manifest(
    in space: SpaceName, as id: MissionID, digests: [Name: FileDigest]
  ) -> Result<MissionManifest, MissionDraftError> {
    var found: [MissionItem] = []
    for item in items {
      let guess = MediaType(ofPath: item.path)
      let (digest, isHosted): (FileDigest, Bool)
      switch item.source {
      case .known(let known, let hosted): (digest, isHosted) = (known, hosted)
      case .file(let path):
        guard let read = digests[Name(path)] else {
          return .failure(MissionDraftError("item \(item.path): its file was not read"))
        }
        (digest, isHosted) = (read, true)
      }
      found.append(
        MissionItem(
          path: item.path, kind: item.type.kind ?? guess.kind,
          mediaType: item.type.mediaType ?? guess.name, size: digest.size, hash: digest.hash,
          chunks: digest.chunks, url: item.url, isHosted: isHosted, after: item.after))
    }
    let manifest = MissionManifest(
      space: space, id: id, version: 1, title: title, summary: summary, priority: priority,
      after: after, chunkSize: chunkSize, items: found, bundle: bundle)
    if let fault = manifest.fault() { return .failure(MissionDraftError(fault)) }
    return .success(manifest)
  }

  /// Returns the reason why the draft cannot become a mission, found before the files are read.
  ///
  /// - Parameter sizes: Bytes of files, by path; 0 if unknown.
  package func fault(sizes: [Name: Int64] = [:]) -> String? {
    guard let space = SpaceName("x"), let name = id ?? MissionID("x") else { return nil }
    var sample = self
    // One more than permitted is a fault already, so no further one is made.
    var chunksLeft = Int64(MissionLimits.standard.chunks) + 1
    for index in sample.items.indices {
      guard case .file(let path) = sample.items[index].source else { continue }
      let size = sizes[Name(path)] ?? 0
      let parts = chunkSize > 0 ? (max(size, 1) - 1) / chunkSize + 1 : 1
      let chunks = parts > 1 ? min(parts, chunksLeft) : 0
      chunksLeft -= chunks
      // Files of different sizes have different hashes.
      let hash = ContentHash(of: size > 0 ? Array(path.utf8) : [])
      sample.items[index].source = .known(
        FileDigest(
          size: size, hash: hash, chunks: [ContentHash](repeating: hash, count: Int(chunks))),
        isHosted: true)
    }
    if case .failure(let error) = sample.manifest(in: space, as: name, digests: [:]) {
      return error.reason
    }
    return nil
  }
}

/// The reason why a draft is no mission. It names the item if it is about one.
package struct MissionDraftError: Error, Sendable, Equatable, CustomStringConvertible {
  package let reason: String
  /// The place in the manifest's text; `nil` if it is about the whole or about files.
  package let place: TextPlace?

  package init(_ reason: String, at place: TextPlace? = nil) {
    (self.reason, self.place) = (reason, place)
  }

  package var description: String { place.map { "\($0): \(reason)" } ?? reason }
}
