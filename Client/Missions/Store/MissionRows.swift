import FerryProtocol

// The rows created by a store of another kind.

extension MissionRow {
  /// Creates the row of a requested version: incomplete, and ready.
  public init(record: MissionRecord, asked: Int64, askedAt: Int64, alias: Int64? = nil) {
    self.init(
      record: record, state: .ready, reason: nil, isComplete: false, activation: nil,
      isActive: false, asked: asked, bytesDone: 0, itemsDone: 0, askedAt: askedAt,
      completedAt: nil, alias: alias)
  }
}

extension MissionFileRow {
  /// Creates the row of an item of a manifest; the item's content is not complete yet.
  public init(version: MissionVersion, place: Int, item: MissionItem) {
    self.init(
      version: version, place: place, path: item.path, kind: item.kind, mediaType: item.mediaType,
      content: StoredContent(hash: item.hash, size: item.size), url: item.url, localPath: nil,
      completedAt: nil)
  }
}

extension ContentRow {
  /// Creates the row of a content; it is complete if there is an object.
  public init(of content: StoredContent, object: ObjectRow?) {
    self.init(content: content, object: object)
  }
}
