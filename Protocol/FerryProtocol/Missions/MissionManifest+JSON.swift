import FerryPlatform

extension MissionManifest {
  /// Returns the document in canonical form: equal manifests give equal bytes.
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 256 + items.count * 200)
    json.object { json in
      json.member("format", 1)
      json.member("space", space.value)
      json.member("mission", id.value)
      json.member("version", version)
      json.member("title", title)
      json.member("summary", summary)
      json.member("priority", priority)
      json.key("after")
      json.array(of: after.map(\.value))
      json.member("chunkSize", chunkSize)
      json.member("bundle", ifPresent: bundle)
      json.key("items")
      json.array(of: items) { json, item in json.missionItem(item) }
    }
    return json.finish()
  }

  /// Reads a document and checks it whole, as ``fault(limits:)`` does. Skips unknown members;
  /// another `format` is refused.
  package init(
    decoding bytes: [UInt8], limits: MissionLimits = .standard
  ) throws(MalformedMessage) {
    guard bytes.count <= limits.manifestBytes else {
      throw MalformedMessage(
        reason: "the manifest has \(bytes.count) bytes; \(limits.manifestBytes) are allowed",
        offset: 0)
    }
    self = try decode(bytes, depth: 4) { (reader) throws(MalformedMessage) in
      try reader.missionManifest(limits)
    }
    if let fault = fault(limits: limits) { throw MalformedMessage(reason: fault, offset: 0) }
  }

  /// Reads a publisher's request: the document, in which `format`, `space`, `mission` and `version`
  /// may be missing. Present members have to fit. A missing version is 0 in the result: the next
  /// one.
  package static func publication(
    decoding bytes: [UInt8], in space: SpaceName, as id: MissionID,
    limits: MissionLimits = .standard
  ) throws(MalformedMessage) -> MissionManifest {
    var manifest = try decode(bytes, depth: 4) { (reader) throws(MalformedMessage) in
      try reader.missionManifest(limits, published: (space, id))
    }
    guard manifest.space == space, manifest.id == id else {
      throw MalformedMessage(
        reason: "the document is mission \(manifest.id) of space \(manifest.space)", offset: 0)
    }
    let version = manifest.version
    manifest.version = max(1, version)
    if let fault = manifest.fault(limits: limits) {
      throw MalformedMessage(reason: fault, offset: 0)
    }
    manifest.version = version
    return manifest
  }
}

extension JSONWriter {
  fileprivate mutating func missionItem(_ item: MissionItem) {
    object { json in
      json.member("path", item.path)
      json.member("kind", item.kind.rawValue)
      json.member("mediaType", item.mediaType)
      json.member("size", item.size)
      json.member("sha256", item.hash.description)
      if !item.chunks.isEmpty {
        json.key("chunks")
        json.array(of: item.chunks.lazy.map(\.description))
      }
      json.member("url", ifPresent: item.url)
      if !item.isHosted { json.member("hosted", false) }
      if !item.after.isEmpty {
        json.key("after")
        json.array(of: item.after)
      }
    }
  }
}

extension JSONReader {
  fileprivate mutating func missionManifest(
    _ limits: MissionLimits, published: (space: SpaceName, id: MissionID)? = nil
  ) throws(MalformedMessage) -> MissionManifest {
    var (format, version): (Int64?, Int64?) = published == nil ? (nil, nil) : (1, 0)
    var (space, id): (SpaceName?, MissionID?) = (published?.space, published?.id)
    var items: [MissionItem]?
    var (title, summary, priority) = ("", "", Int64(0))
    var (after, chunkSize) = ([MissionID](), MissionManifest.chunkSizeDefault)
    var bundle: BundleDeclaration?
    try object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "format": format = try reader.integer()
      case "space": space = SpaceName(try reader.string())
      case "mission": id = try reader.missionID()
      case "version": version = try reader.integer()
      case "title": title = try reader.string()
      case "summary": summary = try reader.string()
      case "priority": priority = try reader.integer()
      case "after":
        try reader.array { (reader) throws(MalformedMessage) in
          guard after.count < limits.after else {
            throw reader.malformed("it waits for more than \(limits.after) missions")
          }
          after.append(try reader.missionID())
        }
      case "chunkSize": chunkSize = try reader.integer()
      case "bundle": bundle = try reader.bundleDeclaration(isStrict: false)
      case "items": items = try reader.missionItems(limits)
      default: try reader.skip()
      }
    }
    guard format == 1 else { throw malformed("this is not a mission manifest of format 1") }
    guard let space, let id, let version, let items else {
      throw malformed("space, mission, version or items is missing or malformed")
    }
    return MissionManifest(
      space: space, id: id, version: version, title: title, summary: summary, priority: priority,
      after: after, chunkSize: chunkSize, items: items, bundle: bundle)
  }

  package mutating func missionID() throws(MalformedMessage) -> MissionID {
    let text = try string()
    guard let id = MissionID(text) else {
      throw malformed("“\(text.prefix(40))” is no mission's name")
    }
    return id
  }

  private mutating func missionItems(
    _ limits: MissionLimits
  ) throws(MalformedMessage) -> [MissionItem] {
    var items: [MissionItem] = []
    try array { (reader) throws(MalformedMessage) in
      guard items.count < limits.items else {
        throw reader.malformed("more than \(limits.items) items")
      }
      items.append(try reader.missionItem(limits))
    }
    return items
  }

  private mutating func missionItem(
    _ limits: MissionLimits
  ) throws(MalformedMessage) -> MissionItem {
    var (path, url): (String?, String?)
    var (size, hash): (Int64?, ContentHash?)
    var (kind, mediaType) = (MissionItemKind.file, "application/octet-stream")
    var (chunks, after, isHosted) = ([ContentHash](), [String](), true)
    try object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "path": path = try reader.string()
      // An unknown kind is a file like any other.
      case "kind": kind = MissionItemKind(rawValue: try reader.string()) ?? .file
      case "mediaType": mediaType = try reader.string()
      case "size": size = try reader.integer()
      case "sha256": hash = try reader.contentHash()
      case "chunks":
        try reader.array { (reader) throws(MalformedMessage) in
          chunks.append(try reader.contentHash())
        }
      case "url": url = try reader.string()
      case "hosted": isHosted = try reader.bool()
      case "after":
        after = try reader.missionItemPaths(limits)
      default: try reader.skip()
      }
    }
    guard let path, let size, let hash else {
      throw malformed("an item has path, size and sha256")
    }
    return MissionItem(
      path: path, kind: kind, mediaType: mediaType, size: size, hash: hash, chunks: chunks,
      url: url, isHosted: isHosted, after: after)
  }

  /// Reads the paths, and refuses them as soon as they are too many: a document could hold millions
  /// of empty ones.
  private mutating func missionItemPaths(
    _ limits: MissionLimits
  ) throws(MalformedMessage) -> [String] {
    var paths: [String] = []
    try array { (reader) throws(MalformedMessage) in
      guard paths.count < limits.after else {
        throw reader.malformed("an item waits for more than \(limits.after) items")
      }
      paths.append(try reader.string())
    }
    return paths
  }

  package mutating func contentHash() throws(MalformedMessage) -> ContentHash {
    let text = try string()
    guard let hash = ContentHash(text) else {
      if ContentHash(text.lowercasedASCII) != nil {
        throw malformed("a SHA-256 is written in lower case: “\(text.lowercasedASCII)”")
      }
      throw malformed("not a SHA-256 of 64 lower-case hexadecimal digits")
    }
    return hash
  }
}
