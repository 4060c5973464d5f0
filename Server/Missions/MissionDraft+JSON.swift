import FerryProtocol

extension MissionDraft {
  /// Reads a publisher's document: the members of a manifest (SPEC.md §19). In it an item names a
  /// `file`, relative to the document, or has a `url` with `sha256` and `size`. Unknown members are
  /// refused: the publisher may have meant one to count.
  package init(decoding bytes: [UInt8]) throws(MissionDraftError) {
    do {
      self = try FerryProtocol.decode(bytes, depth: 4) { (reader) throws(MalformedMessage) in
        try MissionDraft(from: &reader)
      }
    } catch {
      throw MissionDraftError(error.reason, at: TextPlace(ofByte: error.offset, in: bytes))
    }
    if let fault = fault() { throw MissionDraftError(fault) }
  }

  private init(from reader: inout JSONReader) throws(MalformedMessage) {
    self.init(items: [])
    var hasItems = false
    try reader.object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "format":
        guard try reader.integer() == 1 else {
          throw reader.malformed("this is not a mission manifest of format 1")
        }
      // The server counts the versions, and the publisher names the space.
      case "space", "version": try reader.skip()
      case "mission": id = try MissionID(from: &reader, .standard)
      case "title": title = try reader.string()
      case "summary": summary = try reader.string()
      case "priority": priority = try reader.integer()
      case "after":
        after = try [MissionID](from: &reader, .standard)
      case "chunkSize": chunkSize = try reader.integer()
      case "items":
        hasItems = true
        try reader.array { (reader) throws(MalformedMessage) in
          items.append(try Item(from: &reader, number: items.count + 1))
        }
      default: throw reader.malformed("a mission has no member “\(try key.text())”")
      }
    }
    guard hasItems else { throw reader.malformed("a mission needs “items”") }
  }
}

extension MissionDraft.Item {
  fileprivate init(from reader: inout JSONReader, number: Int) throws(MalformedMessage) {
    var (path, file, url): (String?, String?, String?)
    var (size, hash): (Int64?, ContentHash?)
    var (kind, mediaType): (MissionItemKind?, String?)
    var (chunks, after, isHosted) = ([ContentHash](), [String](), Bool?.none)
    try reader.object { (key, reader) throws(MalformedMessage) in
      switch key {
      case "path": path = try reader.string()
      case "file": file = try reader.string()
      case "url": url = try reader.string()
      case "size": size = try reader.integer()
      case "sha256": hash = try ContentHash(from: &reader, .standard)
      case "chunks":
        chunks = try [ContentHash](from: &reader, .standard)
      case "kind":
        let text = try reader.string()
        kind = MissionItemKind(rawValue: text)
        guard kind != nil else {
          let known = MissionItemKind.allCases.map(\.rawValue).joined(separator: ", ")
          throw reader.malformed("item \(path ?? "\(number)"): kind is one of \(known)")
        }
      case "mediaType": mediaType = try reader.string()
      case "hosted": isHosted = try reader.bool()
      case "after":
        after = try [String](from: &reader, .standard)
      default:
        throw reader.malformed("item \(path ?? "\(number)") has no member “\(try key.text())”")
      }
    }
    let name = path ?? file ?? "\(number)"
    let source: MissionDraft.Source
    if let file {
      guard size == nil, hash == nil, chunks.isEmpty, isHosted != false else {
        throw reader.malformed("item \(name): with a “file”, Ferry computes size and hashes")
      }
      if file.isEmpty || file.utf8.contains(0) {
        throw reader.malformed("item \(name): “file” is empty")
      }
      source = .file(file)
    } else if let size, let hash {
      source = .known(
        FileDigest(size: size, hash: hash, chunks: chunks), isHosted: isHosted ?? (url == nil))
    } else {
      throw reader.malformed("item \(name) has neither “file” nor “url” with “sha256” and “size”")
    }
    guard let path = path ?? file else { throw reader.malformed("item \(name) has no “path”") }
    self.init(
      path: path, kind: kind, mediaType: mediaType, source: source, url: url, after: after)
  }
}
