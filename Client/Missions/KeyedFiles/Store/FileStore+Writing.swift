import FerryProtocol

extension FileStore {
  /// Stores bytes as the file of a key. An earlier file stays until the new one replaces it.
  ///
  /// - Parameter hash: the required SHA-256 of the content, if it is known.
  /// - Throws: ``FileStoreError/Kind/damaged`` if the hash differs, ``FileStoreError/Kind/badKey``,
  ///   ``FileStoreError/Kind/limitReached``, ``FileStoreError/Kind/diskFull``; then nothing has
  ///   changed.
  @discardableResult
  public func put(
    _ bytes: [UInt8], for key: String, expecting hash: ContentHash? = nil
  ) async throws(FileStoreError) -> StoredFile {
    try await typed {
      try await put(key, expecting: hash) { draft in
        for start in stride(from: 0, to: bytes.count, by: Self.blockBytes) {
          let end = min(bytes.count, start + Self.blockBytes)
          let isWhole = start == 0 && end == bytes.count
          try await draft.append(isWhole ? bytes : Array(bytes[start..<end]))
        }
      }
    }
  }

  /// Stores a copy of the file at `path` as the file of a key, as `put(_:for:expecting:)`
  /// does.
  @discardableResult
  public func put(
    contentsOf path: String, for key: String, expecting hash: ContentHash? = nil
  ) async throws(FileStoreError) -> StoredFile {
    try await typed {
      try await put(key, expecting: hash) { [folders] draft in
        try await draft.open(path, folders.system)
        while try await draft.copyBlock() { try checkCancellation() }
      }
    }
  }

  /// Stores the parts of a sequence, such as the body of a response, as the file of a key. Only one
  /// part is in memory.
  ///
  /// ```swift
  /// let (parts, source) = AsyncStream<[UInt8]>.makeStream()
  /// source.yield(Array("one part, ".utf8))
  /// source.yield(Array("and another".utf8))
  /// source.finish()
  /// try await files.put(parts, for: "https://example.org/stream")
  /// ```
  ///
  /// - Throws: the errors of `put(_:for:expecting:)` and of the sequence; then nothing has
  ///   changed.
  @discardableResult
  public func put<Parts: AsyncSequence & Sendable>(
    _ parts: Parts, for key: String, expecting hash: ContentHash? = nil
  ) async throws -> StoredFile where Parts.Element == [UInt8] {
    try await put(key, expecting: hash) { draft in
      for try await part in parts {
        try checkCancellation()
        try await draft.append(part)
      }
      // A sequence may end early instead of throwing when the task is cancelled.
      try checkCancellation()
    }
  }

  private static let blockBytes = 4 << 20

  private func put(
    _ key: String, expecting expected: ContentHash?, fill: (DraftWriter) async throws -> Void
  ) async throws -> StoredFile {
    try FileKeys.check(key)
    try checkCancellation()
    let name = keys.name(of: key)
    let plan = RoomPlan(options: options)
    let limit = try await indexed { index in
      plan.bytesMax(
        replaced: try index.row(name)?.bytesOnDisk ?? 0, used: try index.totals().stored)
    }
    let suffix = keys.suffix(of: key)
    let draft = try await writer.perform(FileStoreError.self) { [folders, keys, writer] in
      DraftWriter(
        try FileDraft.begin(of: name, suffix: suffix, in: folders, keys: keys, bytesMax: limit),
        on: writer)
    }
    do {
      try await fill(draft)
      let end = try await draft.finish()
      if let expected, expected != end.hash {
        throw FileStoreError(
          .damaged, "the content for \(key) has the hash \(end.hash) instead of \(expected)")
      }
      let file = try await commit(draft.version, key: key, end, plan)
      await draft.close()
      return file
    } catch {
      await withdraw(draft)
      throw error
    }
  }

  private func commit(
    _ version: FileVersion, key: String, _ end: (hash: ContentHash, size: Int64), _ plan: RoomPlan
  ) async throws(FileStoreError) -> StoredFile {
    let (name, id) = (version.name, version.id)
    let row = FileRow(
      version: version,
      facts: keys.encoded(key: key, hash: end.hash, name: name, id: id, size: end.size),
      size: end.size, bytesOnDisk: keys.bytesOnDisk(name, id: id, size: end.size),
      storedAt: now())
    try await indexed { try $0.commit(row, plan) }
    return StoredFile(
      key: key, size: end.size, hash: end.hash, bytesOnDisk: row.bytesOnDisk,
      storedAt: row.storedAt)
  }

  /// Removes a draft, unless the index has it: a failed move or an unknown outcome of a commit.
  private func withdraw(_ draft: DraftWriter) async {
    let version = draft.version
    let isKept = try? await indexed { try $0.row(version.name)?.version.id == version.id }
    if isKept == false { await draft.discard() } else { await draft.close() }
  }

  private func typed<T>(_ body: () async throws -> T) async throws(FileStoreError) -> T {
    do {
      return try await body()
    } catch let error as FileStoreError {
      throw error
    } catch {
      throw FileStoreError(.files, String(describing: error))
    }
  }
}

/// Throws this module's error if the task is cancelled.
private func checkCancellation() throws(FileStoreError) {
  if Task.isCancelled { throw FileStoreError(.cancelled, "the task was cancelled") }
}
